"""What a transcript becomes by the list that a client sends (PROTOCOL 4.8)."""

from ramet.chat.submitted import added, replaced
from ramet.protocol.ui_message import UIMessage, UIRole


def message(message_id: str, role: UIRole = "user", text: str = "x") -> UIMessage:
    return {"id": message_id, "role": role, "parts": [{"type": "text", "text": text}]}


U1, A1, U2, U3 = message("u1"), message("a1", "assistant"), message("u2"), message("u3")


def test_the_clients_list_stands_for_the_transcript() -> None:
    assert replaced([U1, A1, U2], [U1, A1], asked=()) == [U1, A1, U2]
    assert replaced([U2], [U1, A1], asked=()) == [U2]
    assert replaced([], [U1], asked=()) == []


def test_a_question_of_another_tab_stays_before_the_new_one() -> None:
    assert replaced([U1, A1, U3], [U1, A1, U2], asked={"u2"}) == [U1, A1, U2, U3]
    assert replaced([U1, A1], [U1, A1, U2], asked={"u2"}) == [U1, A1, U2]
    assert replaced([U1, A1, U2, U3], [U1, A1, U2], asked={"u2"}) == [U1, A1, U2, U3]


def test_where_the_servers_list_counts_answers_are_not_changed_by_clients() -> None:
    edited = message("u1", text="edited")
    other = message("a1", "assistant", "not what was said")
    assert added([edited, other, U2], [U1, A1]) == [edited, U2]
    assert added([U1, A1], [U1, A1]) == []
