"""The assistant lets go of a research, goes on talking, and is told what came of it."""

from pathlib import Path

from tests.integration.demo.stage import opened_demo


async def test_the_result_is_a_message_of_its_own(tmp_path: Path) -> None:
    async with opened_demo(tmp_path) as demo:
        answer = await demo.ask("Research generators in the background")
        assert answer.startswith("At work in the background: **Research on “generators”**.")
        await demo.reported("completed")

        first, started, *later = demo.texts()
        assert (first, started) == (
            "user: Research generators in the background",
            f"assistant: {answer}",
        )
        milestone, notice, told = later
        assert milestone.startswith("assistant: In the background: Research on “generators” — ")
        assert notice.startswith("user: In the background: Research on “generators” has finished.")
        assert told.startswith("assistant: **Research on “generators”** is done.")
        assert "**Sources**" in told


async def test_the_conversation_goes_on_meanwhile(tmp_path: Path) -> None:
    async with opened_demo(tmp_path) as demo:
        await demo.ask("Research generators in the background")
        answer = await demo.ask("Compare lists and generators")
        assert "questions were answered" in answer
        await demo.harness.settle()
        told = [text for text in demo.texts() if "”** is done." in text]
        assert len(told) == 1


async def test_a_crash_in_between_costs_no_result_and_gives_none_twice(tmp_path: Path) -> None:
    async with opened_demo(tmp_path) as demo:
        await demo.ask("Research generators in the background")
        await demo.harness.crash()
        await demo.harness.restart()
        await demo.harness.advance(30)
        again = await demo.reopened()
        told = [text for text in again.texts() if "”** is done." in text]
        assert len(told) == 1
        assert again.run().status == "completed"
