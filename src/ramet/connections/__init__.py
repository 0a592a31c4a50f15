"""Browser clients: connections, what waits for them, what they send and call."""

from ramet.connections.connection import Connection
from ramet.connections.rpc import RpcStream, rpc

__all__ = ["Connection", "RpcStream", "rpc"]
