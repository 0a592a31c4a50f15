"""Callbacks: which methods can be stored by name, and how they are called."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from ramet.core.callbacks import CancelledInside, callback_name, find_callback, run_callback
from ramet.core.json import NotJson, dump_strict
from ramet.core.payloads import dump_payload
from ramet.errors import InvalidArguments, MethodNotFound


def wrapped(method: Callable[..., object]) -> Callable[..., object]:
    def wrapper(*arguments: object) -> object:
        return method(*arguments[:2])

    wrapper.__name__ = method.__name__
    return wrapper


class Agent:
    number = 3

    def __init__(self) -> None:
        self.made = lambda payload: payload

    async def both(self, payload: object, item: object) -> tuple[object, object]:
        return payload, item

    async def one(self, payload: object) -> object:
        return payload

    def none(self) -> str:
        return "called"

    def many(self, *arguments: object) -> int:
        return len(arguments)

    def _private(self) -> None: ...

    @wrapped
    def decorated(self, payload: object) -> object:
        return payload

    @classmethod
    def of_class(cls, payload: object) -> object:
        return cls, payload

    @staticmethod
    def static(payload: object) -> object:
        return payload

    def three(self, payload: object, item: object, third: object) -> None: ...

    def keyword(self, payload: object, *, needed: object) -> None: ...

    @property
    def text(self) -> str:
        raise AssertionError("a property must not be read")


@pytest.mark.parametrize("name", ["both", "one", "none", "many", "_private", "decorated"])
def test_a_method_is_named_by_itself_or_by_its_name(name: str) -> None:
    agent = Agent()
    assert callback_name(agent, name, gives=2) == name
    assert callback_name(agent, getattr(agent, name), gives=2) == name


@pytest.mark.parametrize("name", ["gone", "", "number", "text", "made", "__init__", "both "])
def test_a_name_that_is_no_method_is_refused_naming_it_and_the_class(name: str) -> None:
    with pytest.raises(MethodNotFound) as caught:
        callback_name(Agent(), name, gives=2)
    assert str(caught.value) == f"Agent has no method {name!r}"


@pytest.mark.parametrize(
    "make",
    [
        lambda agent: lambda payload: payload,
        lambda agent: partial(agent.one, 1),
        lambda agent: Agent().one,
        lambda agent: Agent.one,
        lambda agent: agent.made,
        lambda agent: 5,
        lambda agent: None,
        lambda agent: [].append,
    ],
)
def test_what_is_no_method_of_this_agent_cannot_be_stored(make: Callable[[Agent], object]) -> None:
    agent = Agent()
    given = make(agent)
    with pytest.raises(InvalidArguments) as caught:
        callback_name(agent, given, gives=2)
    assert str(caught.value) == (
        f"A callback is a method of this Agent or its name, not {given!r}: "
        "only a name can be stored"
    )


@pytest.mark.parametrize(("name", "missing"), [("three", "third"), ("keyword", "needed")])
def test_a_method_that_needs_more_than_it_gets_is_refused(name: str, missing: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        callback_name(Agent(), name, gives=2)
    assert str(caught.value) == (
        f"Agent.{name} cannot be a callback: it is called with at most 2 arguments, "
        f"so nothing is there for '{missing}'"
    )


def test_a_method_that_is_gone_is_not_found() -> None:
    assert find_callback(Agent(), "gone") is None


async def test_a_callback_gets_as_many_arguments_as_it_takes() -> None:
    agent = Agent()
    arguments = ("payload", "item")
    assert await run_callback(agent.both, arguments) == arguments
    assert await run_callback(agent.one, arguments) == "payload"
    assert await run_callback(agent.none, arguments) == "called"
    assert await run_callback(agent.many, arguments) == 2
    assert await run_callback(agent.decorated, arguments) == "payload"
    assert await run_callback(agent.of_class, arguments) == (Agent, "payload")
    assert await run_callback(agent.static, arguments) == "payload"
    assert await run_callback(lambda: "lambda", arguments) == "lambda"


async def test_a_callback_that_ends_as_cancelled_by_itself_has_failed() -> None:
    async def awaits_a_cancelled_task() -> None:
        inner: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        inner.cancel()
        await inner

    with pytest.raises(CancelledInside, match="nobody had cancelled it"):
        await run_callback(awaits_a_cancelled_task, ())


async def test_a_callback_whose_task_is_cancelled_is_cancelled() -> None:
    async def hang() -> None:
        await asyncio.get_running_loop().create_future()

    task = asyncio.get_running_loop().create_task(run_callback(hang, ()))
    asyncio.get_running_loop().call_soon(task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


def circular() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"at": float("nan")}, "{'at': nan}"),
        ([1, float("-inf")], "[1, -inf]"),
        (b"bytes", "b'bytes'"),
        ({1: 2}, "{1: 2}"),
        (2**70, str(2**70)),
        (circular(), "[[[[[[[...]]]]]]]"),
    ],
)
def test_a_payload_that_is_not_json_is_refused_naming_it(payload: object, named: str) -> None:
    with pytest.raises(NotJson) as caught:
        dump_payload(payload, what="The payload of tick")
    assert str(caught.value).startswith(f"The payload of tick is not JSON: {named} (")


def test_a_huge_payload_is_named_shortly() -> None:
    with pytest.raises(NotJson) as caught:
        dump_payload(["x" * 1_000, object()], what="It")
    assert len(str(caught.value)) < 300


def test_a_value_that_holds_itself_is_not_looked_into_for_ever() -> None:
    with pytest.raises(NotJson):
        dump_strict(circular())
