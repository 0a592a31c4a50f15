"""What a Python client offers is on the page of clients and in the reference."""

import dataclasses
import inspect
import re

import pytest

from ramet import client
from ramet.client import ChatOutcome, ClientOptions
from tests.docs.pages import DOCS, Page

TEXT = Page(file=DOCS / "clients.md").text.partition("\n## From Python\n")[2]
WORDS = set(re.findall(r"\w+", TEXT))
CLASSES = [cls for cls in vars(client).values() if inspect.isclass(cls)]


@pytest.mark.parametrize("name", client.__all__)
def test_a_name_of_the_client_is_in_the_reference(name: str) -> None:
    assert f"`{name}`" in Page(file=DOCS / "reference" / "names.md").text


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_what_can_be_called_and_read_is_on_the_page(cls: type) -> None:
    assert {name for name in vars(cls) if not name.startswith("_")} - WORDS == set()


@pytest.mark.parametrize("cls", [ClientOptions, ChatOutcome], ids=lambda cls: cls.__name__)
def test_every_field_is_on_the_page(cls: type[ClientOptions | ChatOutcome]) -> None:
    assert {field.name for field in dataclasses.fields(cls)} - WORDS == set()


@pytest.mark.parametrize("name", ["first_delay", "call_timeout", "max_retries", "min_uptime"])
def test_a_default_on_the_page_is_the_default(name: str) -> None:
    row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{name}`"))

    assert str(getattr(ClientOptions(), name)) in row
