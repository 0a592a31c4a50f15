"""Which other web pages may talk to the agents, and the headers that tell browsers so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ramet.errors import InvalidOptions

ANY = "*"
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_METHODS = "GET, POST, HEAD, OPTIONS"
_MAX_AGE = "86400"


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins besides the application's own; `("*",)` stands for all of them."""

    allowed: tuple[str, ...] = ()

    @property
    def shared(self) -> bool:
        """Whether any other origin is allowed, so that browsers have to be told which."""
        return bool(self.allowed)

    def allows_socket(self, origin: str | None, *, host: str | None) -> bool:
        """Whether a WebSocket may be opened from a page of `origin` (D20).

        Without an Origin header it is no browser; same host and port is always right.
        """
        return origin is None or self._lists(origin) or same_origin(origin, host)

    def headers(self, origin: str | None, *, asked_headers: str | None = None) -> Mapping[str, str]:
        """The headers that an HTTP answer needs for a page of `origin` to read it (D20)."""
        if ANY in self.allowed:
            return _grant(ANY, headers=ANY)
        if not self.allowed:
            return {}
        if origin is None or not self._lists(origin):
            return {"vary": "Origin"}
        granted = _grant(origin, headers=asked_headers or ANY)
        return {**granted, "access-control-allow-credentials": "true", "vary": "Origin"}

    def _lists(self, origin: str) -> bool:
        return ANY in self.allowed or origin.lower() in self.allowed


def parse_origins(allowed: Sequence[str] | None) -> Origins:
    """Check configured origins: None is the application's own, `["*"]` is all.

    Raises:
        InvalidOptions: One of them is not `scheme://host[:port]`, or it is not a list.
    """
    if allowed is None:
        return Origins()
    if isinstance(allowed, str):
        raise InvalidOptions(f"allowed_origins is a list of origins, not the text {allowed!r}")
    for origin in allowed:
        if origin not in {ANY, "null"} and not _is_origin(urlsplit(origin)):
            raise InvalidOptions(
                f"allowed_origins holds {origin!r}; an origin is 'https://example.com', or '*'"
            )
    return Origins(tuple(origin.lower() for origin in allowed))


def same_origin(origin: str, host: str | None) -> bool:
    """Whether an Origin header names the host that the request was sent to.

    The scheme is not compared: behind a proxy that ends TLS the application does not know it.
    """
    try:
        here, there = urlsplit(origin.lower()), urlsplit(f"//{(host or '').lower()}")
        default = _DEFAULT_PORTS.get(here.scheme)
        ports = here.port or default, there.port or default
    except ValueError:
        return False
    return _is_origin(here) and here.hostname == there.hostname and ports[0] == ports[1]


def _is_origin(parts: SplitResult) -> bool:
    bare = not (parts.path or parts.query or parts.fragment or parts.username)
    return bool(parts.scheme and parts.hostname) and bare


def _grant(origin: str, *, headers: str) -> dict[str, str]:
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": _METHODS,
        "access-control-allow-headers": headers,
        "access-control-max-age": _MAX_AGE,
    }
