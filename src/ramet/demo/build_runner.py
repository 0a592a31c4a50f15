"""The build runner: runs one fixed command of the project and reports while it prints."""

from collections.abc import AsyncIterator

import ramet
from ramet.core.json import JsonObject, loads_object
from ramet.demo.command_output import CommandOutput
from ramet.demo.leashed_command import leashed
from ramet.demo.stage import Staged
from ramet.demo.tasks import Task


class BuildRunner(Staged, ramet.AIChatAgent[JsonObject | None]):
    """A child that runs a process: `{"task": NAME}` starts the task of that name.

    What the process prints is progress, not chunks: however much it is, only its last lines are
    kept. Cancelling the run ends the turn, and with the turn the process and all that it started.
    When the server dies the process ends too; the turn is then taken up by the next server, and
    runs the task again from the start.
    """

    initial_state: JsonObject | None = None

    async def on_chat_message(self, turn: ramet.Turn) -> AsyncIterator[str]:
        """Run the task that the last message names; nothing that is written here is a command."""
        asked = loads_object(ramet.text_of(turn.messages[-1])) or {}
        task = self.stage.tasks.get(str(asked.get("task")))
        if task is None:
            yield f"I run one of these and nothing else: {', '.join(self.stage.tasks)}."
            return
        if turn.trigger.startswith("recovery"):
            await self.report_progress(
                milestone="started-again", message="The server had stopped meanwhile"
            )
        yield await self._run(task)

    async def _run(self, task: Task) -> str:
        output = CommandOutput()
        await self.report_progress(phase="starting", message=task.shown())
        async with leashed(task.command, folder=self.stage.folder.root) as command:
            async for lines in command.lines():
                await self._take(lines, output)
            code = await command.exit_code()
        self.set_state({"task": task.name, "exit_code": code, "last_lines": [*output.last]})
        return _report(task, code, output)

    async def _take(self, lines: list[str], output: CommandOutput) -> None:
        """Report what a block of lines says; the framework holds back what comes too quickly."""
        for line in lines:
            before = (output.collected, output.failure)
            output.take(line)
            if output.collected is not None and before[0] is None:
                await self.report_progress(
                    milestone="collected", message=line, data={"items": output.collected}
                )
            if output.failure is not None and before[1] is None:
                await self.report_progress(milestone="first-failure", message=line)
        told = next((text for line in reversed(lines) if (text := line.strip(" =-_"))), None)
        if told is not None:
            phase = "collecting" if output.collected is None else "running"
            await self.report_progress(fraction=output.fraction, phase=phase, message=told)

    def get_agent_tool_output(self, run_id: str) -> JsonObject | None:
        """The exit code with the last lines."""
        return self.state

    def get_agent_tool_summary(self, run_id: str, output: object) -> str:
        """The report, as people and models read it."""
        return ramet.text_of(self.agent_tool_child_run(run_id).messages[-1])


def _report(task: Task, code: int, output: CommandOutput) -> str:
    """What came of it, in Markdown."""
    ended = "ended well (exit code 0)" if code == 0 else f"failed with exit code {code}"
    lines = "\n".join(output.last)
    fence = "`" * 3
    while fence in lines:
        fence += "`"
    shown = f"the last {len(output.last)} of {output.lines} lines"
    return f"{task.title} {ended}; {shown}:\n\n{fence}text\n{lines}\n{fence}"
