"""Offers the model the tools that a page executes, beside the agent's own."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from ramet.core.json import JsonObject


@dataclass
class WithPageTools(WrapperToolset[object]):
    """A toolset with tools that are executed in the browser; its own win where names are equal."""

    page_tools: Sequence[JsonObject] = ()
    """As the page describes them: `{"name", "description"?, "parameters"?}`."""

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        """The tools of a step."""
        own = await self.wrapped.get_tools(ctx)
        offered = [_definition(tool) for tool in self.page_tools]
        outside = ExternalToolset[object]([each for each in offered if each.name not in own])
        return {**own, **await outside.get_tools(ctx)}


def with_page_tools(
    toolset: AbstractToolset[object], page_tools: Sequence[JsonObject]
) -> AbstractToolset[object]:
    """The toolset with a page's tools, if there are any."""
    return WithPageTools(toolset, page_tools) if page_tools else toolset


def _definition(tool: JsonObject) -> ToolDefinition:
    description, schema = tool.get("description"), tool.get("parameters")
    definition = ToolDefinition(
        name=str(tool["name"]),
        description=description if isinstance(description, str) else None,
    )
    if isinstance(schema, dict) and schema.get("type") == "object":
        definition.parameters_json_schema = dict(schema)
    return definition
