"""Random chunks, right and wrong, over few enough ids that they meet each other."""

from hypothesis import strategies as st

from ramet.core.json import JsonObject, JsonValue
from ramet.protocol import chunks

ids = st.sampled_from(["a", "b"])
texts = st.text("xyz", max_size=3)
values: st.SearchStrategy[JsonValue] = st.sampled_from([None, 1, "x", '{"q":1}', {"q": 2}, []])
metadata: st.SearchStrategy[JsonObject] = st.sampled_from(
    [{}, {"p": {"k": 1}}, {"p": {"l": 2}, "q": 3}]
)

_wrong: st.SearchStrategy[JsonValue] = st.sampled_from([None, 7, ["no"]])
_types = st.sampled_from(
    [
        value
        for name, value in vars(chunks).items()
        if name.isupper() and isinstance(value, str) and name != "DATA_PREFIX"
    ]
    + ["data-chart", "step-start", "reset-step", "unknown"]
)
_fields: dict[str, st.SearchStrategy[JsonValue]] = {
    "id": ids,
    "delta": texts,
    "toolCallId": ids,
    "toolName": st.sampled_from(["search", "plan"]),
    "dynamic": st.booleans(),
    "input": values,
    "output": values,
    "preliminary": st.booleans(),
    "errorText": texts,
    "approvalId": ids,
    "approved": st.booleans(),
    "data": values,
    "transient": st.booleans(),
    "url": texts,
    "mediaType": texts,
    "sourceId": texts,
    "title": texts,
    "messageId": ids,
    "messageMetadata": metadata,
    "providerMetadata": metadata,
}


@st.composite
def any_chunk(draw: st.DrawFn) -> JsonObject:
    """Draw a chunk of any type that has most fields, a few of them of a wrong type."""
    chunk: JsonObject = {"type": draw(_types)}
    for name, strategy in _fields.items():
        kind = draw(st.integers(0, 9))
        if kind > 1:
            chunk[name] = draw(strategy)
        elif kind == 1:
            chunk[name] = draw(_wrong)
    return chunk


chunk_lists = st.lists(any_chunk(), max_size=25)
