"""The researcher: searches the Python language reference, reads what fits and sums it up."""

from pydantic_ai.models import Model

import ramet
from ramet.core.json import JsonObject
from ramet.demo.stage import Staged

INSTRUCTIONS = """
You research one question in the Python language reference. Search for its key terms; when nothing
fits, search again with other words. Read the best passages, then answer in a few sentences that
quote them, and list their ids as sources. Asked to be thorough, search under other names too and
read all that fits, one passage after another. Say so when the reference does not cover the
question.
"""

_MOST_HITS = 5
_STEP = 0.8
"""By how much each passage that was read shortens what is left; nobody knows how many there are."""


class Researcher(Staged, ramet.Think[int]):
    """Answers one question from the corpus; a child that the assistant uses as a tool.

    Its state is how many passages it has read, so that a crash takes its progress nowhere.
    """

    initial_state = 0

    instructions = INSTRUCTIONS
    max_steps = 16

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
            fraction=self._fraction(),
            phase="searching",
            message=f"{len(hits)} passages for “{query}”",
        )
        return hits

    async def read(self, id: str) -> JsonObject:
        """Read one passage.

        Args:
            id: The id of a passage that a search has found.
        """
        page = self.stage.corpus.read(id).page()
        first = self.state == 0
        self.set_state(self.state + 1)
        await self.report_progress(
            fraction=self._fraction(),
            phase="reading",
            message=f"Read “{page['title']}”",
        )
        if first:
            await self.report_progress(
                milestone="sources-found",
                message=f"the first source is “{page['title']}”",
                data={"title": page["title"]},
            )
        return page

    def _fraction(self) -> float:
        return round(1 - 0.7 * _STEP**self.state, 2)
