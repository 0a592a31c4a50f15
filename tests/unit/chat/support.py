"""A chat agent's database on disk, and chunks to put into it."""

from pathlib import Path
from typing import Literal

from ramet.chat.schema import CHAT_MIGRATIONS
from ramet.core.json import JsonObject, dumps
from ramet.storage import Database, combined
from tests.support.databases import open_database


def chat_database(folder: Path | None = None) -> Database:
    """A database with the tables of a chat, on disk, or in memory for many examples."""
    path: Path | Literal[":memory:"] = ":memory:" if folder is None else folder / "chat.db"
    return open_database(path, combined(CHAT_MIGRATIONS))


def delta(text: str) -> JsonObject:
    return {"type": "text-delta", "id": "t1", "delta": text}


def body(number: int) -> str:
    return dumps(delta(f"w{number} "))
