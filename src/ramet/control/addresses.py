"""How an operator writes which agent is meant: `Assistant/ada/sub/Researcher/r1`."""

from collections.abc import Sequence

from ramet.core.paths import AgentPath, PathStep
from ramet.errors import InvalidArguments
from ramet.protocol.names import kebab
from ramet.protocol.url import SUB, decode_segment, encode_segment

_HOW = "write CLASS/NAME, and /sub/CLASS/NAME behind it for a sub-agent, with %2F for a / in a name"


def address_of(path: AgentPath) -> str:
    """How an agent is written."""
    steps = ((encode_segment(step.class_name), encode_segment(step.name)) for step in path.steps)
    return f"/{SUB}/".join(f"{class_name}/{name}" for class_name, name in steps)


def steps_of(address: str) -> Sequence[PathStep]:
    """The steps that an address names, root first; a class may stand there in its URL form.

    Raises:
        InvalidArguments: It is no address.
    """
    words = [decode_segment(word) for word in address.strip("/").split("/")]
    boundaries = words[2::3]
    if len(words) % 3 != 2 or not all(words) or any(word != SUB for word in boundaries):
        raise InvalidArguments(f"{address!r} is no agent's address: {_HOW}")
    return [PathStep(*words[at : at + 2]) for at in range(0, len(words), 3)]


def means(step: PathStep, *, class_name: str, name: str) -> bool:
    """Whether a step of an address names an agent of that class and name."""
    return step.name == name and step.class_name in {class_name, kebab(class_name)}
