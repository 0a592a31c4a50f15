"""`Agent`: what users subclass. A façade: every method names a feature and hands over to it."""

import logging
from typing import Any, ClassVar, Generic

from typing_extensions import TypeVar

from ramet.agent.durable_verbs import DurableVerbs
from ramet.agent.runtime import AgentRuntime
from ramet.agent_tools.records import Progress, RunInfo, RunResult
from ramet.agent_tools.verbs import AgentToolVerbs
from ramet.connections.connection import Connection
from ramet.connections.rpc import RpcTable
from ramet.connections.verbs import ClientVerbs
from ramet.core.http import Request, Response, Target, Verdict
from ramet.core.options import AgentOptions
from ramet.core.paths import AgentPath
from ramet.state.verbs import StateVerbs
from ramet.storage import Row, Schema, SqlValue
from ramet.sub_agents.verbs import SubAgentVerbs

S = TypeVar("S", default=Any)

_log = logging.getLogger("ramet.agent")


class Agent(
    StateVerbs[S],
    ClientVerbs,
    SubAgentVerbs,
    DurableVerbs,
    AgentToolVerbs,
    Generic[S],
):
    """A durable, addressable actor with its own SQLite database, browser clients and sub-agents.

    One instance lives for each class and name. It is opened on first use, may leave memory when it
    is idle and comes back on the next frame, call or request; what it stored is still there,
    attributes of `self` are not. Methods run in one event loop and interleave where they await.

    `Agent[T]` gives the state a type: a pydantic model, a dataclass, a TypedDict or any JSON value.
    """

    options: ClassVar[AgentOptions] = AgentOptions()
    """Options of the class; keys left out come from the classes it derives from."""

    _runtime_type: ClassVar[type[AgentRuntime]] = AgentRuntime
    _ramet_rpc_table: ClassVar[RpcTable]
    _ramet: AgentRuntime

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Check the class when it is defined: callable methods must not collide."""
        super().__init_subclass__(**kwargs)
        cls._ramet_rpc_table = RpcTable(cls)

    @property
    def name(self) -> str:
        """The name of this agent among those of its class (and parent)."""
        return self._ramet.context.path.leaf.name

    @property
    def path(self) -> AgentPath:
        """Where this agent stands: class and name of every agent from its root down to it."""
        return self._ramet.context.path

    @property
    def self_path(self) -> AgentPath:
        """The same as `path`."""
        return self._ramet.context.path

    @property
    def parent_path(self) -> AgentPath | None:
        """The path of the agent above; None for a root."""
        return self._ramet.context.path.parent

    def sql(self, query: str, *params: SqlValue) -> list[Row]:
        """Run one statement on the agent's own database and return its rows.

        Synchronous, for tables of your own (names that begin with `cf_` belong to ramet). It is
        committed when the call returns; BEGIN, COMMIT and the like are refused.

        Raises:
            InvalidArguments: The statement would change the connection itself.
        """
        return self._ramet.context.database.query_of_user(query, *params)

    async def destroy(self) -> None:
        """Remove this agent with everything it and the agents below it stored.

        The instance ends with the call, which therefore may not return.
        """
        await self._ramet.context.lifecycles.delete(self._ramet.context.path)

    def on_start(self) -> object:
        """Run when an instance was opened, before anything else reaches it; may be async."""

    def on_connect(self, connection: Connection, request: Request) -> object:
        """Run for each new client, after it was greeted; may be async."""

    def on_message(self, connection: Connection, message: str | bytes) -> object:
        """Take a message that is no frame of the protocol; may be async."""

    def on_close(self, connection: Connection, code: int, reason: str) -> object:
        """Run when a client has gone; may be async."""

    def on_error(  # type: ignore[return] # like every hook it may return nothing
        self, error: BaseException, connection: Connection | None = None
    ) -> object:
        """Take an error that nobody waits for; by default it is logged. May be async."""
        where = f" (connection {connection.id})" if connection else ""
        _log.error("Error in %s%s", self.path, where, exc_info=error)

    def on_request(self, request: Request) -> object:
        """Answer an HTTP request with a `Response`; may be async. Without it: 404."""
        return Response("Not implemented", status=404)

    def on_state_changed(self, state: S, source: Connection | None) -> object:
        """Run after a state was stored and broadcast; `source` is the client that sent it."""

    def validate_state_change(self, state: S, source: Connection | None) -> None:
        """Raise to refuse a state that the agent or a client sets."""

    def should_connection_be_readonly(self, connection: Connection, request: Request) -> bool:
        """Say whether a new client may not change the state."""
        return False

    def should_send_protocol_messages(self, connection: Connection, request: Request) -> bool:
        """Say whether a new client gets identity, state and MCP frames."""
        return True

    def get_connection_tags(self, connection: Connection, request: Request) -> list[str]:
        """Give tags to a new client, for `get_connections(tag)`."""
        return []

    async def on_before_sub_agent(self, request: Request, target: Target) -> Verdict:
        """Say whether a client may reach a sub-agent through this agent.

        None lets it pass, a `Request` lets it pass changed, a `Response` refuses. When this is not
        overridden only sub-agents that this agent has made exist; any other name is a 404.
        """

    def on_agent_tool_start(self, run: RunInfo) -> object:
        """Run before a child is started; raising refuses the run. May be async."""

    def on_agent_tool_finish(self, run: RunInfo, result: RunResult[object]) -> object:
        """Run after a run has ended and clients were told. May be async.

        Once for each end that is stored; an `interrupted` run that turns out to have come to
        something ends a second time. A server that dies between an end and its hook loses the call,
        so what must not be missed is read from `list_agent_tool_runs` at the start.
        """

    def on_progress(self, run: RunInfo, progress: Progress) -> object:
        """Take note of a child's progress or milestone; nothing waits for it. May be async."""

    def can_view_agent_tool_run(self, connection: Connection, run: RunInfo) -> bool:
        """Say whether a client may see a run's frames, live and replayed."""
        return True

    @classmethod
    def ramet_schema(cls) -> Schema:
        """The database schema that agents of this class have."""
        return cls._runtime_type.schema

    def _bind(self, runtime: AgentRuntime) -> None:
        """Take the features of this instance; called before `__init__`."""
        self._ramet = runtime
        self._ramet_state = runtime.state  # type: ignore[assignment] # its type is S by `Agent[S]`
        self._ramet_clients, self._ramet_sub_agents = runtime.clients, runtime.sub_agents
        self._bind_durable(runtime.durable)
        self._ramet_agent_tools = runtime.agent_tools
