"""The one place that makes ids and other random values."""

import random
import string
from typing import Self

_URL_SAFE = string.ascii_letters + string.digits + "-_"
_ALPHANUMERIC = string.ascii_letters + string.digits


class Ids:
    """Makes ids; give it a seeded `random.Random` to get the same ones again in tests."""

    def __init__(self, source: random.Random | None = None) -> None:
        self._random = source or random.SystemRandom()

    @classmethod
    def seeded(cls, seed: int) -> Self:
        """Ids that come out the same for the same seed, for tests."""
        return cls(random.Random(seed))

    def url_safe(self, length: int) -> str:
        """A random id of URL-safe characters."""
        return "".join(self._random.choices(_URL_SAFE, k=length))

    def run_id(self) -> str:
        """An id for an agent-tool run without a tool call: 12 URL-safe characters (AT-002)."""
        return self.url_safe(12)

    def request_id(self) -> str:
        """An id for a chat request that the server starts itself."""
        return "".join(self._random.choices(_ALPHANUMERIC, k=16))

    def message_id(self, prefix: str) -> str:
        """An id for a message, such as `asst_…`."""
        return prefix + "".join(self._random.choices(_ALPHANUMERIC, k=16))

    def error_id(self) -> str:
        """A short id that ties a text shown to a client to the full error in the log."""
        return "".join(self._random.choices(string.ascii_lowercase + string.digits, k=8))

    def uniform(self, low: float, high: float) -> float:
        """A random number between two bounds, for jitter."""
        return self._random.uniform(low, high)
