"""The researcher: searches the Python language reference, reads what fits and sums it up."""

from pydantic_ai.models import Model

import ramet
from ramet.core.json import JsonObject
from ramet.demo.stage import Staged

INSTRUCTIONS = """
You research one question in the Python language reference. Search for its key terms; when nothing
fits, search again with other words. Read the best passages, then answer in a few sentences that
quote them, and list their ids as sources. Say so when the reference does not cover the question.
"""

_MOST_HITS = 5
_ENOUGH = 0.9


class Researcher(Staged, ramet.Think):
    """Answers one question from the corpus; a child that the assistant uses as a tool."""

    instructions = INSTRUCTIONS

    def __init__(self) -> None:
        self._read = 0

    def get_model(self) -> Model:
        """The model that the demo was started with."""
        return self.stage.model

    def get_tools(self) -> list[object]:
        """Search and read, over the corpus that ships with Python."""
        return [self.search, self.read]

    async def search(self, query: str) -> list[JsonObject]:
        """Search the language reference; gives the passages that fit best, with their ids.

        Args:
            query: A few key terms.
        """
        hits = [passage.hit() for passage in self.stage.corpus.search(query, limit=_MOST_HITS)]
        await self.report_progress(
            fraction=0.3, phase="searching", message=f"{len(hits)} passages for “{query}”"
        )
        return hits

    async def read(self, id: str) -> JsonObject:
        """Read one passage.

        Args:
            id: The id of a passage that a search has found.
        """
        page = self.stage.corpus.read(id).page()
        first = self._read == 0
        self._read += 1
        await self.report_progress(
            fraction=min(_ENOUGH, 0.4 + 0.15 * self._read),
            phase="reading",
            message=f"Read “{page['title']}”",
        )
        if first:
            await self.report_progress(milestone="sources-found", data={"title": page["title"]})
        return page
