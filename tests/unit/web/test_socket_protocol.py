"""How our server writes data frames."""

import pytest
from websockets.frames import Frame, Opcode

from ramet.web.socket_protocol import encoded


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 100_000])
def test_a_frame_is_written_as_the_library_writes_it(size: int) -> None:
    text = "x" * size

    assert b"".join(encoded(text)) == Frame(Opcode.TEXT, text.encode()).serialize(mask=False)
    assert b"".join(encoded(text.encode())) == Frame(Opcode.BINARY, text.encode()).serialize(
        mask=False
    )
