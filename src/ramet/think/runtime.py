"""A live `Think` from the inside: a chat agent whose turns are answered by the step loop."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import ClassVar

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage

from ramet.agent.context import AgentContext
from ramet.agent.hooks import Hooked
from ramet.agent.schema import AGENT_MIGRATIONS
from ramet.agent_tools.detached.ports import Notices
from ramet.chat.family import THINK, ChatFamily
from ramet.chat.overlap import Overlap
from ramet.chat.runtime import ChatRuntime
from ramet.chat.schema import CHAT_MIGRATIONS
from ramet.chat.turn import Chunk, Turn
from ramet.connections.rpc import RpcTable
from ramet.core.json import JsonObject
from ramet.core.threads import in_thread
from ramet.errors import ConfigurationError
from ramet.protocol import chunks
from ramet.protocol.messages import parts_of, with_parts
from ramet.protocol.parts import apply_chunk_to_parts
from ramet.protocol.ui_message import UIMessage
from ramet.storage import Schema, combined
from ramet.think.approved_calls import approved_calls, known_results, run_approved
from ramet.think.call_runner import CallRunner
from ramet.think.history import History, native_messages
from ramet.think.hooks import StepHooks, settled
from ramet.think.model_seam import resolve_model
from ramet.think.notices import ThinkNotices
from ramet.think.page_tools import with_page_tools
from ramet.think.step_loop import Beginning, LoopParts, StepLoop
from ramet.think.step_store import THINK_MIGRATIONS, StepStore, StoredStep, TurnKey
from ramet.think.submission_store import SUBMISSION_MIGRATIONS
from ramet.think.submissions import DRAIN_SUBMISSIONS, SubmissionPorts, Submissions
from ramet.think.tool_gathering import gather
from ramet.think.toolbox import RETRIES, Toolbox, held_open
from ramet.think.turn_verbs import ThinkTurnVerbs
from ramet.think.verbs import ThinkVerbs
from ramet.think.wire_ids import WireIds


class ThinkRuntime(ChatRuntime):
    """A chat agent that asks a model."""

    schema: ClassVar[Schema] = combined(
        *AGENT_MIGRATIONS, CHAT_MIGRATIONS, THINK_MIGRATIONS, SUBMISSION_MIGRATIONS
    )
    family: ClassVar[ChatFamily] = THINK

    def __init__(
        self,
        context: AgentContext,
        agent: Hooked,
        *,
        rpc_table: RpcTable,
        overridden: Callable[[str], bool],
    ) -> None:
        super().__init__(context, agent, rpc_table=rpc_table, overridden=overridden)
        assert isinstance(agent, ThinkVerbs)
        assert isinstance(agent, ThinkTurnVerbs)
        self._think: ThinkVerbs = agent
        self._steps = StepStore(context.database, context.clock)
        self._told = History()
        self._hooks_overridden = {name for name in _HOOKS if _overrides(type(agent), name)}
        self._models: dict[str, Model] = {}
        self.submissions = Submissions(
            SubmissionPorts(
                chat=self.chat,
                hook=agent.on_submission_status,
                wake=self.durable.schedules.wake,
                recovery_owns=self.recovery_owns,
                recovery_busy=lambda: self.chat.recovery.pending,
            )
        )
        self.internal[DRAIN_SUBMISSIONS] = self.submissions.woken
        self.busy_checks.append(self.submissions.busy)

    def produce(self, turn: Turn) -> AsyncIterator[Chunk]:
        """Answer a turn with the step loop."""
        return self._answer(turn)

    def notices(self) -> Notices:
        """Tells the chat of runs by durable submissions (AT-272)."""
        return ThinkNotices(lambda: self.chat, lambda: self.submissions)

    async def start(self) -> None:
        """Open as any chat agent, then forget the steps of answers that are gone."""
        self.submissions.note_unfinished()
        await super().start()
        self._steps.keep_only(self.chat.expects)
        self.submissions.resume()

    def chat_cleared(self) -> None:
        """Forget what the model said and was told, and skip what was submitted."""
        self._steps.keep_only(self.chat.transcript.__contains__)
        self.submissions.cleared()

    def turn_over(self) -> None:
        """Go on with what was submitted and waits for turns to end."""
        self.submissions.turn_over()

    def runs_here(self, tool_call_id: str) -> bool:
        """Whether the step loop runs a tool call itself."""
        return self._steps.is_own(tool_call_id)

    def recovery_owns(self, request_id: str) -> bool:
        """Whether chat recovery goes on with the turn of a request."""
        return self.chat.recovery.owns(request_id)

    async def _answer(self, turn: Turn) -> AsyncGenerator[JsonObject]:
        think = self._think
        await settled(think.before_turn(turn))
        model = await self._model()
        overlap = Overlap(turn.resumed)
        begun = self._begun(turn)
        messages: list[ModelMessage] = []
        context = RunContext[object](
            deps=think,
            model=model,
            usage=RunUsage(),
            messages=messages,
            max_retries=RETRIES,
            run_id=turn.turn_id,
            conversation_id=str(self.context.path),
        )
        async with held_open(await self._tools(), self.context.background) as toolset:
            hooks = self._hooks()
            toolset = with_page_tools(toolset, turn.client_tools)
            toolbox = Toolbox(toolset, context, ids=self.context.ids, hooks=hooks)
            transcript = [*turn.messages]
            async with aclosing(self._run_approved(turn, transcript, toolbox)) as late:
                async for chunk in late:
                    yield chunk
            messages.extend(self._history(turn, transcript, begun[: overlap.first_step]))
            parts = LoopParts(
                model=model,
                toolbox=toolbox,
                journal=self._steps.journal(
                    TurnKey(turn_id=turn.recovery_root, message_id=turn.assistant_message_id)
                ),
                wire_ids=WireIds(self._steps, self.context.ids, taken=self.chat.tool_calls()),
                background=self.context.background,
                max_steps=think.max_steps,
                instructions=[await self._instructions(), *await toolbox.instructions()],
                usage=context.usage,
                under_way=turn.under_way,
                hooks=hooks,
            )
            known = begun[overlap.first_step :]
            beginning = Beginning(
                first_step=overlap.first_step,
                steps=known,
                cut_calls=() if known else overlap.dangling_calls,
            )
            async with aclosing(StepLoop(parts, messages, beginning).chunks()) as answer:
                async for given in answer:
                    for chunk in overlap.take(given):
                        if "on_chunk" in self._hooks_overridden:
                            await settled(think.on_chunk(chunk))
                        yield chunk

    def _begun(self, turn: Turn) -> Sequence[StoredStep]:
        """The steps that are there of an answer whose first producer was lost (D5)."""
        root, steps = turn.recovery_root, self._steps.steps_of_turn(turn.recovery_root)
        if steps and not turn.resumed:
            self._steps.forget_from(root, 0)
            return ()
        if steps and steps[-1].response.state == "interrupted":
            self._steps.forget_from(root, len(steps) - 1)
            return steps[:-1]
        return steps

    async def _run_approved(
        self, turn: Turn, transcript: list[UIMessage], toolbox: Toolbox
    ) -> AsyncGenerator[JsonObject]:
        """Run what a person has approved of the answer that goes on; its message takes the ends."""
        answer_id = turn.assistant_message_id
        if not turn.continuation or not transcript or transcript[-1]["id"] != answer_id:
            return
        steps = self._steps.steps_of([answer_id]).get(answer_id, ())
        calls = approved_calls(transcript[-1], steps)
        if not calls:
            return
        turn.under_way.update(call.wire_id for call in calls)
        yield chunks.start()
        runner = CallRunner(
            toolbox,
            self.context.background,
            lambda wire_id, result: self._steps.add_late_result(answer_id, wire_id, result),
        )
        known, begun = known_results(steps), bool(turn.resumed)
        ends = run_approved(calls, runner, toolbox, known=known, begun=begun)
        async with aclosing(ends) as given:
            async for chunk in given:
                parts = apply_chunk_to_parts(parts_of(transcript[-1]), chunk)
                transcript[-1] = with_parts(transcript[-1], parts)
                yield chunk
        turn.under_way.clear()

    def _history(
        self, turn: Turn, transcript: Sequence[UIMessage], begun: Sequence[StoredStep]
    ) -> list[ModelMessage]:
        self._steps.keep_only(self.chat.expects)
        ids = [str(message["id"]) for message in transcript]
        own = TurnKey(turn_id=turn.recovery_root, message_id=turn.assistant_message_id)
        told = self._told.tell(transcript, self._steps.steps_of(ids, besides=own))
        return [*told, *native_messages(begun)]

    async def _model(self) -> Model:
        chosen, owner = await settled(self._think.get_model()), type(self._think).__name__
        if isinstance(chosen, str):
            if chosen not in self._models:
                # Importing a provider's library takes seconds: not in the event loop.
                self._models[chosen] = await in_thread(resolve_model, chosen, owner)
            return self._models[chosen]
        if chosen is None or isinstance(chosen, Model):
            return resolve_model(chosen, owner)
        raise ConfigurationError(f"{owner}.get_model gave {chosen!r}: give a pydantic-ai model")

    async def _instructions(self) -> str:
        return str(await settled(self._think.get_system_prompt()) or "")

    async def _tools(self) -> AbstractToolset[object]:
        given = await settled(self._think.get_tools())
        return gather(given if isinstance(given, Iterable) else ())

    def _hooks(self) -> StepHooks:
        think, overridden = self._think, self._hooks_overridden
        return StepHooks(
            before_step=think.before_step if "before_step" in overridden else None,
            before_tool_call=think.before_tool_call if "before_tool_call" in overridden else None,
            after_tool_call=think.after_tool_call if "after_tool_call" in overridden else None,
            on_step_finish=think.on_step_finish if "on_step_finish" in overridden else None,
        )


_HOOKS = ("before_step", "before_tool_call", "after_tool_call", "on_step_finish", "on_chunk")


def _overrides(cls: type, name: str) -> bool:
    return inspect.getattr_static(cls, name) is not inspect.getattr_static(ThinkVerbs, name)
