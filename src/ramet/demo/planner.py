"""The planner: inspects the files of one folder, changes nothing, and proposes steps."""

from pydantic_ai.models import Model

import ramet
from ramet.core.json import JsonObject, to_json
from ramet.demo.stage import Staged

INSTRUCTIONS = """
You plan a change to the project in one folder. Look at what the folder holds, search it for the
words of the goal, read the files that matter, then give a short numbered plan that names files and
lines. You cannot change anything.
"""


class Planner(Staged, ramet.Think):
    """Plans from real files; a child that the assistant uses as a tool.

    Its tools are ordinary blocking functions: they run in threads, so that other agents go on.
    """

    instructions = INSTRUCTIONS

    def get_model(self) -> Model:
        """The model that the demo was started with."""
        return self.stage.model

    def get_tools(self) -> list[object]:
        """Three ways to look at the folder."""
        return [self.list_files, self.search_files, self.read_file]

    def list_files(self) -> JsonObject:
        """Describe the folder: languages, counts, the largest files and the paths near the top."""
        return self.stage.folder.describe().to_json()

    def search_files(self, words: str) -> object:
        """Find the lines of the folder's files that have any of the words.

        Args:
            words: Words separated by spaces.
        """
        return [to_json(match) for match in self.stage.folder.search_text(words)]

    def read_file(self, path: str, start_line: int = 1) -> object:
        """Read up to 200 lines of one file.

        Args:
            path: Relative to the folder.
            start_line: The first line, from 1.
        """
        return to_json(self.stage.folder.read_text(path, start_line))
