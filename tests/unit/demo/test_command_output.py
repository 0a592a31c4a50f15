"""What is made of the bytes that a command prints."""

from hypothesis import given
from hypothesis import strategies as st

from ramet.demo.command_output import LONGEST_LINE, MOST_LINES, CommandOutput, LineSplitter


def lines_of(*blocks: bytes) -> list[str]:
    splitter = LineSplitter()
    return [line for block in blocks for line in splitter.feed(block)] + splitter.end()


def output_of(*lines: str) -> CommandOutput:
    output = CommandOutput()
    for line in lines:
        output.take(line)
    return output


def test_lines_are_whole_wherever_the_blocks_end() -> None:
    assert lines_of(b"on", b"e\ntwo\nth", b"ree") == ["one", "two", "three"]
    assert lines_of("ä\n".encode()[:1], "ä\n".encode()[1:]) == ["ä"]
    assert lines_of(b"") == []


def test_colours_and_control_characters_are_left_out() -> None:
    assert lines_of(b"\x1b[32mPASSED\x1b[0m [ 50%]\r\n\x00\x07ok\n") == ["PASSED [ 50%]", "ok"]


def test_a_line_without_an_end_takes_little_room() -> None:
    assert lines_of(*[b"x" * 1000] * 1000) == ["x" * LONGEST_LINE]


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_how_the_bytes_come_does_not_matter(blocks: list[bytes]) -> None:
    assert lines_of(*blocks) == lines_of(b"".join(blocks))


def test_pytest_is_understood() -> None:
    output = output_of(
        "collecting ... collected 812 items",
        "tests/test_a.py::test_one PASSED                        [  0%]",
        "tests/test_a.py::test_two FAILED                        [ 42%]",
        "tests/test_a.py::test_three FAILED                      [ 50%]",
    )
    assert (output.collected, output.fraction) == (812, 0.5)
    assert output.failure is not None
    assert "test_two" in output.failure


def test_a_number_in_the_middle_of_a_line_is_no_progress() -> None:
    assert output_of("saved [ 30%] of the time").fraction is None
    assert output_of("[999%]").fraction == 1.0


def test_only_the_last_lines_are_kept() -> None:
    output = output_of(*map(str, range(1000)))
    assert output.lines == 1000
    assert [*output.last] == [str(number) for number in range(1000 - MOST_LINES, 1000)]
