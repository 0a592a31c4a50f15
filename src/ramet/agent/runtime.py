"""One live instance from the inside: composes the features of an agent and takes what comes to it.

The host talks to this class only; what kinds of agents exist is decided by its subclasses
(`ChatRuntime`).
"""

from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeAlias

from ramet.agent.calls import MethodCalls
from ramet.agent.child_chunks import ChildChunks
from ramet.agent.context import AgentContext
from ramet.agent.durable import Durable
from ramet.agent.hooks import Hooked, Hooks
from ramet.agent.schema import AGENT_MIGRATIONS
from ramet.agent.stubs import Stub
from ramet.agent_tools.detached.runs import TICK
from ramet.agent_tools.feature import AgentToolPorts, AgentTools, DetachedPorts
from ramet.connections.clients import ClientSet
from ramet.connections.connection import Connection
from ramet.connections.inbox import Inbox
from ramet.connections.link import ClientLink
from ramet.connections.rpc import RpcDispatcher, RpcTable
from ramet.core.alarm import Alarm
from ramet.core.http import Request, Response, Target, Verdict
from ramet.core.paths import AgentPath
from ramet.protocol import frames
from ramet.protocol.incoming import RpcCall, StateUpdate
from ramet.protocol.names import kebab
from ramet.state.feature import State
from ramet.storage import Schema, combined
from ramet.sub_agents.feature import SubAgents
from ramet.sub_agents.registry import SubAgentRegistry

BusyCheck: TypeAlias = Callable[[], str | None]
"""Gives the reason why the instance may not be evicted now, or None (D14)."""

FRAME_TOO_LARGE = "The frame has {size} bytes; at most {limit} are allowed."


class AgentRuntime:
    """The features of one instance and the ways into them."""

    schema: ClassVar[Schema] = combined(*AGENT_MIGRATIONS)

    def __init__(
        self,
        context: AgentContext,
        agent: Hooked,
        *,
        rpc_table: RpcTable,
        overridden: Callable[[str], bool],
    ) -> None:
        self.context = context
        self.agent = agent
        self.clients = ClientSet(context.exit)
        self.hooks = Hooks(agent, context, overridden=overridden)
        self.calls = MethodCalls(agent, name=str(context.path))
        self.inbox = Inbox(self.hooks.receive_message)
        self.state: State[object] = State(
            context.database,
            self.clients,
            self.hooks,
            events=context.events,
            ids=context.ids,
            cls=context.cls,
        )
        self.alarm = Alarm(context.wakeups) if context.wakeups is not None else None
        self.registry = SubAgentRegistry(context.database, context.clock)
        self.sub_agents = SubAgents(
            context.path,
            registry=self.registry,
            lifecycles=context.lifecycles,
            classes=context.classes,
            make_stub=self.stub_of,
        )
        self.internal: dict[str, Callable[..., Awaitable[object]]] = {}
        self.durable = Durable(
            context, agent=agent, hooks=self.hooks, alarm=self.alarm, internal=self.internal
        )
        self.agent_tools = AgentTools(self._agent_tool_ports(), self._detached_ports())
        self.internal[TICK] = self.agent_tools.detached.tick
        self.rpc = RpcDispatcher(
            agent,
            rpc_table,
            background=context.background,
            ids=context.ids,
            events=context.events,
        )
        self.inbox.on(RpcCall, self.rpc.receive)
        self.inbox.on(StateUpdate, self.state.receive)
        self.busy_checks: list[BusyCheck] = [
            self.calls.busy,
            self.rpc.busy,
            self.agent_tools.busy,
            self.durable.busy,
        ]

    async def start(self) -> None:
        """Make the instance ready: nothing reaches it before this has returned.

        What was left unfinished by an earlier instance is noted before `on_start` and taken up
        after it.
        """
        self._take_over_names()
        self.agent_tools.note_unfinished()
        await self.durable.start_up()
        await self.hooks.start()
        self.started()
        await self.durable.resume()
        self.agent_tools.recover_unfinished()

    def started(self) -> None:
        """Take note that `on_start` has returned: what was planned and queued runs from here on."""

    def connect(self, link: ClientLink) -> None:
        """Greet a new client: protocol frames, the replay of runs, then `on_connect`."""
        connection = self.clients.add(link)
        self.hooks.classify(connection)
        self.greet_with_chat(connection)
        self._greet(connection)
        self.agent_tools.replay_to(connection)
        self.hooks.connected(connection)
        self.context.events.emit("connect", {"connectionId": connection.id})

    def adopt(self, link: ClientLink) -> None:
        """Take over a client that was greeted by an earlier instance."""
        self.agent_tools.take_up_replay(self.clients.add(link))

    def receive(self, link: ClientLink, message: str | bytes) -> None:
        """Take a client's frame; returns at once, whatever it starts."""
        connection = self.clients.of(link)
        if connection is None:
            return
        limit = self.context.host_options.max_frame_bytes
        size = len(message) if isinstance(message, bytes) else _utf8_bytes(message)
        if size > limit:
            text = FRAME_TOO_LARGE.format(size=size, limit=limit)
            connection.send_frame(frames.ramet_error(text))
        elif isinstance(message, bytes):
            self.hooks.receive_message(connection, message)
        else:
            self.inbox.receive(connection, message)

    def disconnect(self, link: ClientLink, code: int, reason: str) -> None:
        """Let a client go that has closed or was lost; its turns and runs go on."""
        connection = self.clients.remove(link)
        if connection is not None:
            self.disconnected(connection)
            self.hooks.disconnected(connection, code, reason)
            self.context.events.emit("disconnect", {"connectionId": connection.id, "code": code})

    async def respond(self, request: Request) -> Response:
        """Answer an HTTP request that was addressed to this agent."""
        return await self.hooks.respond(request)

    async def admit_sub_agent(self, request: Request, target: Target) -> Verdict:
        """Say whether a client may reach a sub-agent: the hook decides, else the registry (D19)."""
        return await self.hooks.admit_sub_agent(
            request, target, known=self.registry.has(target.class_name, target.name)
        )

    async def run_internal(self, handler: str, arguments: tuple[object, ...]) -> object:
        """Run a handler of the framework's own, which users cannot name (D16)."""
        return await self.internal[handler](*arguments)

    def stub_of(self, path: AgentPath) -> Stub:
        """A stub of another agent, called in this one's name."""
        cls = self.context.classes.class_of(path.leaf.class_name)
        return Stub(path, cls, self.context.caller)

    def busy(self) -> str | None:
        """Why the instance may not be evicted now; None when it may."""
        return next((reason for check in self.busy_checks if (reason := check())), None)

    def greet_with_chat(self, connection: Connection) -> None:
        """Send what comes before the identity; a chat agent overrides this."""

    def disconnected(self, connection: Connection) -> None:
        """Forget what is kept for a connection; a chat agent overrides this."""

    def _take_over_names(self) -> None:
        """Put what is stored under the former names of classes under those of today (D16)."""
        names = self.context.renamed
        if names:
            with self.context.database.transaction():
                self.registry.rename(names)
                self.durable.rename(names)

    def _greet(self, connection: Connection) -> None:
        if connection.silent:
            return
        state = self.state.greeting()
        if self.context.options.send_identity_on_connect:
            leaf = self.context.path.leaf
            identity = frames.identity(
                leaf.name, kebab(leaf.class_name), state_follows=state is not None
            )
            connection.send_frame(identity)
        if state is not None:
            connection.send_frame(state)
        connection.send_frame(frames.mcp_servers())

    def _agent_tool_ports(self) -> AgentToolPorts:
        context = self.context
        return AgentToolPorts(
            path=context.path,
            database=context.database,
            clock=context.clock,
            ids=context.ids,
            fence=context.fence,
            background=context.background,
            clients=self.clients,
            caller=context.caller,
            lifecycles=context.lifecycles,
            classes=context.classes,
            registry=self.registry,
            hooks=self.hooks,
            errors=self.hooks,
            events=context.events,
            options=context.options,
            host_options=context.host_options,
            chunks=ChildChunks(context),
        )

    def _detached_ports(self) -> DetachedPorts:
        return DetachedPorts(waking=self.durable.schedules, callbacks=self.hooks)


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
