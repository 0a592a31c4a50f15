"""The `type` of every frame on the wire, as a constant."""

from typing import Final

IDENTITY: Final = "cf_agent_identity"
STATE: Final = "cf_agent_state"
STATE_ERROR: Final = "cf_agent_state_error"
MCP_SERVERS: Final = "cf_agent_mcp_servers"
RPC: Final = "rpc"

CHAT_REQUEST: Final = "cf_agent_use_chat_request"
CHAT_RESPONSE: Final = "cf_agent_use_chat_response"
CHAT_MESSAGES: Final = "cf_agent_chat_messages"
CHAT_CLEAR: Final = "cf_agent_chat_clear"
CHAT_CANCEL: Final = "cf_agent_chat_request_cancel"
STREAM_RESUME_REQUEST: Final = "cf_agent_stream_resume_request"
STREAM_RESUMING: Final = "cf_agent_stream_resuming"
STREAM_RESUME_ACK: Final = "cf_agent_stream_resume_ack"
STREAM_PENDING: Final = "cf_agent_stream_pending"
STREAM_RESUME_NONE: Final = "cf_agent_stream_resume_none"
TOOL_RESULT: Final = "cf_agent_tool_result"
TOOL_APPROVAL: Final = "cf_agent_tool_approval"
MESSAGE_UPDATED: Final = "cf_agent_message_updated"
CHAT_RECOVERING: Final = "cf_agent_chat_recovering"

AGENT_TOOL_EVENT: Final = "agent-tool-event"

RAMET_ERROR: Final = "ramet_error"
