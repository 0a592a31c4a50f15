"""Calls the methods that users override, as code of their agent, and catches stray errors."""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from ramet.agent.context import AgentContext
from ramet.agent_tools.records import Progress, RunInfo, RunResult
from ramet.connections.connection import Connection
from ramet.core.callbacks import callback_name, find_callback, run_callback
from ramet.core.current import working_for
from ramet.core.http import Request, Response, Target, Verdict
from ramet.core.json import JsonObject
from ramet.errors import RametError
from ramet.fibers.records import InterruptedFiber
from ramet.protocol import frames

_log = logging.getLogger("ramet.agent")

_FINISH_ARGUMENTS = 2
"""The callback of a detached run gets the run and its result."""

NO_MESSAGE_HANDLER = "This agent takes no messages of its own, and the frame is not one it knows."


class Hooked(Protocol):
    """The methods of an agent that its runtime calls; see `ramet.Agent` for what each is for."""

    def on_start(self) -> object: ...
    def on_connect(self, connection: Connection, request: Request) -> object: ...
    def on_message(self, connection: Connection, message: str | bytes) -> object: ...
    def on_close(self, connection: Connection, code: int, reason: str) -> object: ...
    def on_error(self, error: BaseException, connection: Connection | None = None) -> object: ...
    def on_request(self, request: Request) -> object: ...
    def on_state_changed(self, state: object, source: Connection | None) -> object: ...
    def validate_state_change(self, state: object, source: Connection | None) -> None: ...
    def should_connection_be_readonly(self, connection: Connection, request: Request) -> bool: ...
    def should_send_protocol_messages(self, connection: Connection, request: Request) -> bool: ...
    def get_connection_tags(self, connection: Connection, request: Request) -> list[str]: ...
    def on_before_sub_agent(self, request: Request, target: Target) -> object: ...
    def on_fiber_recovered(self, fiber: InterruptedFiber) -> object: ...
    def on_agent_tool_start(self, run: RunInfo) -> object: ...
    def on_agent_tool_finish(self, run: RunInfo, result: RunResult[object]) -> object: ...
    def on_progress(self, run: RunInfo, progress: Progress) -> object: ...
    def can_view_agent_tool_run(self, connection: Connection, run: RunInfo) -> bool: ...


class Hooks:
    """The hooks of one agent, safe to call from anywhere in the framework."""

    def __init__(
        self, agent: Hooked, context: AgentContext, *, overridden: Callable[[str], bool]
    ) -> None:
        self._agent = agent
        self._context = context
        self._overridden = overridden

    async def start(self) -> None:
        """Run `on_start`; what it raises fails the opening of the instance."""
        with working_for(self._agent):
            await _finished(self._agent.on_start())

    def classify(self, connection: Connection) -> None:
        """Ask for tags, read-only and silent, before any frame goes out."""
        link, request = connection.link, connection.link.request
        with working_for(self._agent, connection):
            tags = self._agent.get_connection_tags(connection, request)
            link.tags = (link.id, *tags)
            link.readonly = self._agent.should_connection_be_readonly(connection, request)
            link.silent = not self._agent.should_send_protocol_messages(connection, request)

    def connected(self, connection: Connection) -> None:
        """Run `on_connect`; its frames follow the replay."""
        request = connection.link.request
        self._fire(lambda: self._agent.on_connect(connection, request), connection)

    def receive_message(self, connection: Connection, message: str | bytes) -> None:
        """Hand an application message over; without a handler the client is told (D25)."""
        if not self._overridden("on_message"):
            connection.send_frame(frames.ramet_error(NO_MESSAGE_HANDLER))
            return
        self._fire(lambda: self._agent.on_message(connection, message), connection)

    def disconnected(self, connection: Connection, code: int, reason: str) -> None:
        """Run `on_close`."""
        self._fire(lambda: self._agent.on_close(connection, code, reason), connection)

    async def respond(self, request: Request) -> Response:
        """Run `on_request`."""
        with working_for(self._agent):
            answer = await _finished(self._agent.on_request(request))
        return as_response(answer)

    async def admit_sub_agent(self, request: Request, target: Target, *, known: bool) -> Verdict:
        """Ask `on_before_sub_agent`; without it only known sub-agents exist (D19)."""
        if not self._overridden("on_before_sub_agent"):
            return None if known else Response("Not found", status=404)
        with working_for(self._agent):
            verdict = await _finished(self._agent.on_before_sub_agent(request, target))
        return verdict if verdict is None or isinstance(verdict, Request) else as_response(verdict)

    def validate_state(self, state: object, source: Connection | None) -> None:
        """Run `validate_state_change`, which raises to refuse."""
        with working_for(self._agent, source):
            self._agent.validate_state_change(state, source)

    def state_changed(self, state: object, source: Connection | None) -> None:
        """Run `on_state_changed`, after the broadcast."""
        self._fire(lambda: self._agent.on_state_changed(state, source), source)

    async def fiber_recovered(self, fiber: InterruptedFiber) -> object:
        """Run `on_fiber_recovered`."""
        with working_for(self._agent):
            return await _finished(self._agent.on_fiber_recovered(fiber))

    async def agent_tool_started(self, run: RunInfo) -> None:
        """Run `on_agent_tool_start`; what it raises refuses the run."""
        with working_for(self._agent):
            await _finished(self._agent.on_agent_tool_start(run))

    async def agent_tool_finished(self, run: RunInfo, result: RunResult[object]) -> None:
        """Run `on_agent_tool_finish`."""
        with working_for(self._agent):
            await _finished(self._agent.on_agent_tool_finish(run, result))

    def finish_callback(self, method: object) -> str:
        """The name under which a method for the end of a detached run is stored (AT-231)."""
        return callback_name(self._agent, method, gives=_FINISH_ARGUMENTS)

    async def run_finish_callback(self, name: str, run: RunInfo, result: RunResult[object]) -> None:
        """Call that method, unless the agent does not have it any more (AT-250, AT-267)."""
        callback = find_callback(self._agent, name)
        if callback is None:
            _log.warning("%s has no method %r any more", self._context.path, name)
            return
        with working_for(self._agent):
            await run_callback(callback, (run, result))

    def agent_tool_progress(self, run: RunInfo, progress: Progress) -> None:
        """Run `on_progress`; nothing waits for it."""
        if self._overridden("on_progress"):
            self._fire(lambda: self._agent.on_progress(run, progress), None)

    def can_view(self, connection: Connection, run: RunInfo) -> bool:
        """Ask whether a client may see a run; when that raises, it may not."""
        if not self._overridden("can_view_agent_tool_run"):
            return True
        try:
            with working_for(self._agent, connection):
                return self._agent.can_view_agent_tool_run(connection, run)
        except Exception as error:  # noqa: BLE001 - a hook's fault must not fail the run it asks about
            self.report(error, connection)
            return False

    @property
    def filters_views(self) -> bool:
        """Whether `can_view_agent_tool_run` is overridden, so that it must be asked at all."""
        return self._overridden("can_view_agent_tool_run")

    def report(self, error: BaseException, connection: Connection | None = None) -> None:
        """Hand an error that nobody waits for to `on_error`; what that raises is logged."""
        if self._context.fence.down:
            return
        self._context.background.start(self._run_on_error(error, connection), name="on_error")

    def emit(self, event: str, payload: JsonObject | None = None) -> None:
        """Report an event of the agent."""
        self._context.events.emit(event, payload)

    def _fire(self, call: Callable[[], object], connection: Connection | None) -> None:
        """Run a hook now as far as it goes without waiting, and the rest as a task."""
        if self._context.fence.down:
            return
        try:
            with working_for(self._agent, connection):
                rest = call()
        except Exception as error:  # noqa: BLE001 - a hook's fault goes to on_error, not to the cause
            self.report(error, connection)
            return
        if isinstance(rest, Awaitable):
            self._context.background.start(self._finish(rest, connection), name="hook")

    async def _finish(self, rest: Awaitable[object], connection: Connection | None) -> None:
        try:
            with working_for(self._agent, connection):
                await rest
        except Exception as error:  # noqa: BLE001 - as in `_fire`
            self.report(error, connection)

    async def _run_on_error(self, error: BaseException, connection: Connection | None) -> None:
        try:
            with working_for(self._agent, connection):
                await _finished(self._agent.on_error(error, connection))
        except Exception:  # noqa: BLE001 - the last resort: there is nobody left to tell
            _log.exception("on_error of %s failed", self._context.path)


def as_response(answer: object) -> Response:
    """Take a ramet response as it is, and one of Starlette's by its parts.

    Raises:
        RametError: The hook returned something else.
    """
    if isinstance(answer, Response):
        return answer
    body, status = getattr(answer, "body", None), getattr(answer, "status_code", None)
    headers = getattr(answer, "headers", None)
    if isinstance(body, bytes) and isinstance(status, int) and headers is not None:
        return Response(body, status=status, headers=dict(headers.items()))
    raise RametError(f"Expected a Response, not {type(answer).__name__}")


async def _finished(result: object) -> object:
    return await result if isinstance(result, Awaitable) else result
