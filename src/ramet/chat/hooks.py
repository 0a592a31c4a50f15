"""Calls the methods that users of chat agents override, as code of their agent."""

import math
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from ramet.agent_tools.records import ChildRun, Milestone, RunInfo, RunResult
from ramet.chat.concurrency import MessageConcurrency
from ramet.chat.recovery_options import (
    ChatRecovery,
    ChatRecoveryContext,
    ChatRecoveryDecision,
)
from ramet.chat.turn import ChatErrorContext, ChatResult
from ramet.core.clock import Clock
from ramet.core.current import working_for
from ramet.core.durations import Duration, seconds_of
from ramet.core.json import JsonValue, without_surrogates
from ramet.core.ports import Background, ErrorHook
from ramet.core.public_errors import own_words
from ramet.errors import InvalidOptions, UnknownModelResult


@runtime_checkable
class ChatHooked(Protocol):
    """The methods of a chat agent that are called for it; see `ChatVerbs` for what each is for."""

    message_concurrency: MessageConcurrency
    chat_recovery: ChatRecovery | bool
    chat_stream_stall_timeout: Duration
    max_persisted_messages: int | None

    def on_chat_response(self, result: ChatResult) -> object: ...  # noqa: D102 - see ChatVerbs
    def on_chat_error(self, error: BaseException, ctx: ChatErrorContext) -> object: ...  # noqa: D102 - see ChatVerbs
    def on_chat_recovery(self, ctx: ChatRecoveryContext) -> object: ...  # noqa: D102 - see ChatVerbs
    def format_agent_tool_input(self, input: JsonValue, run: ChildRun) -> object: ...  # noqa: D102 - see ChatVerbs
    def get_agent_tool_output(self, run_id: str) -> object: ...  # noqa: D102 - see ChatVerbs
    def get_agent_tool_summary(self, run_id: str, output: object) -> object: ...  # noqa: D102 - see ChatVerbs
    def format_detached_completion(self, run: RunInfo, result: RunResult[object]) -> object: ...  # noqa: D102 - see ChatVerbs
    def format_detached_milestone(self, run: RunInfo, milestone: Milestone) -> object: ...  # noqa: D102 - see ChatVerbs


_deciding: ContextVar[bool] = ContextVar("ramet_deciding", default=False)


def is_deciding() -> bool:
    """Whether the running code is a hook by which recovery decides."""
    return _deciding.get()


class ChatHooks:
    """The hooks of one chat agent."""

    def __init__(self, agent: ChatHooked, background: Background, errors: ErrorHook) -> None:
        self._agent = agent
        self._background = background
        self._errors = errors
        self._running = 0

    def busy(self) -> str | None:
        """Why the instance may not be evicted."""
        return "on_chat_response is running" if self._running else None

    def responded(self, result: ChatResult) -> None:
        """Run `on_chat_response` by itself, after the turn: it may start another."""
        self._running += 1
        self._background.start(self._respond(result), name="on_chat_response")

    async def failed(self, error: BaseException, ctx: ChatErrorContext) -> str | None:
        """Run `on_chat_error`; gives the text that it wants clients to see, if any."""
        try:
            answer = await self._ask(lambda: self._agent.on_chat_error(error, ctx))
        except Exception as fault:  # noqa: BLE001 - a hook's fault must not hide the turn's
            self._errors.report(fault)
            return None
        if isinstance(answer, BaseException):
            return own_words(answer) or None
        return without_surrogates(answer) if isinstance(answer, str) else None

    def stall_timeout(self) -> float:
        """Seconds without a chunk after which an answer counts as stalled; 0 for never."""
        return seconds_of(self._agent.chat_stream_stall_timeout, name="chat_stream_stall_timeout")

    def most_messages(self) -> int | None:
        """How many messages are kept; None for all.

        Raises:
            InvalidOptions: The agent's `max_persisted_messages` is no number of messages.
        """
        most: object = self._agent.max_persisted_messages
        if most is None or (isinstance(most, int) and not isinstance(most, bool) and most > 0):
            return most
        raise InvalidOptions(f"max_persisted_messages is 1 or more, or None, not {most!r}")

    async def recovery_of(
        self, ctx: ChatRecoveryContext, *, clock: Clock, seconds: float
    ) -> ChatRecoveryDecision:
        """Run `on_chat_recovery`; what it does not decide is done as usual.

        Raises:
            TimeoutError: It took longer than so many seconds.
            UnknownModelResult: It gave something that is no decision.
        """
        try:
            async with clock.timeout(None if math.isinf(seconds) else seconds):
                decision = await self.decide_by(lambda: self._agent.on_chat_recovery(ctx))
        except TimeoutError as error:
            raise TimeoutError(
                f"on_chat_recovery timed out: it may take {seconds:g} s (ChatRecovery.hook_timeout)"
            ) from error
        if decision is None:
            return ChatRecoveryDecision()
        if not isinstance(decision, ChatRecoveryDecision):
            raise UnknownModelResult(
                f"on_chat_recovery gave {decision!r}: it gives None to go on, or a "
                "ChatRecoveryDecision, such as ChatRecoveryDecision(proceed=False) to stop"
            )
        return decision

    async def tool_input(self, input: JsonValue, run: ChildRun) -> object:
        """Run `format_agent_tool_input`."""
        return await self._ask(lambda: self._agent.format_agent_tool_input(input, run))

    async def tool_output(self, run_id: str) -> object:
        """Run `get_agent_tool_output`."""
        return await self._ask(lambda: self._agent.get_agent_tool_output(run_id))

    async def tool_summary(self, run_id: str, output: object) -> str:
        """Run `get_agent_tool_summary`."""
        return str(await self._ask(lambda: self._agent.get_agent_tool_summary(run_id, output)))

    async def detached_completion(self, run: RunInfo, result: RunResult[object]) -> str:
        """Run `format_detached_completion`; empty when nothing is to be told (AT-271)."""
        return _told(await self._ask(lambda: self._agent.format_detached_completion(run, result)))

    async def detached_milestone(self, run: RunInfo, milestone: Milestone) -> str:
        """Run `format_detached_milestone`; empty when nothing is to be told."""
        return _told(await self._ask(lambda: self._agent.format_detached_milestone(run, milestone)))

    async def _respond(self, result: ChatResult) -> None:
        try:
            await self._ask(lambda: self._agent.on_chat_response(result))
        except Exception as fault:  # noqa: BLE001 - nobody waits for the hook
            self._errors.report(fault)
        finally:
            self._running -= 1

    async def decide_by(self, call: Callable[[], object]) -> object:
        """Run a hook by which recovery decides: it waits for no lost turn, which waits for it."""
        token = _deciding.set(True)
        try:
            return await self._ask(call)
        finally:
            _deciding.reset(token)

    async def _ask(self, call: Callable[[], object]) -> object:
        with working_for(self._agent):
            answer = call()
            return await answer if isinstance(answer, Awaitable) else answer


def _told(text: object) -> str:
    return "" if text is None else str(text)
