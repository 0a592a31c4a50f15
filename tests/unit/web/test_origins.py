"""Which pages may talk to the agents."""

import pytest

from ramet.errors import InvalidOptions
from ramet.web.origins import Origins, parse_origins, same_origin

PAGE = "https://page.example"


@pytest.mark.behaviour("D20")
@pytest.mark.parametrize(
    ("allowed", "origin", "answer"),
    [
        (None, None, True),
        (None, "http://here.example", True),
        (None, PAGE, False),
        (None, "null", False),
        ([PAGE], PAGE, True),
        ([PAGE], "HTTPS://PAGE.example", True),
        ([PAGE], "https://page.example.evil", False),
        ([PAGE], "http://here.example", True),
        (["*"], "https://anybody.example", True),
        (["*"], "null", True),
    ],
)
def test_a_page_may_open_a_socket_from_here_or_from_where_it_is_allowed(
    allowed: list[str] | None, origin: str | None, *, answer: bool
) -> None:
    origins = parse_origins(allowed)

    assert origins.allows_socket(origin, host="here.example") is answer


@pytest.mark.parametrize(
    ("origin", "host", "answer"),
    [
        ("http://a.example:8000", "a.example:8000", True),
        ("http://a.example:8000", "a.example:8001", False),
        ("https://a.example", "a.example:443", True),
        ("https://a.example:443", "a.example", True),
        ("http://[::1]:8000", "[::1]:8000", True),
        ("http://A.example", "a.EXAMPLE", True),
        ("http://a.example", None, False),
        ("http://a.example:port", "a.example", False),
        ("", "a.example", False),
        ("http://[broken", "a.example", False),
        ("http://a.example", "[broken", False),
        ("http://user@a.example", "a.example", False),
    ],
)
def test_an_origin_is_the_same_when_host_and_port_are(
    origin: str, host: str | None, *, answer: bool
) -> None:
    assert same_origin(origin, host) is answer


def test_everybody_is_told_by_the_four_headers() -> None:
    assert Origins(("*",)).headers(None) == {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "GET, POST, HEAD, OPTIONS",
        "access-control-allow-headers": "*",
        "access-control-max-age": "86400",
    }


def test_a_listed_origin_is_named_and_may_send_credentials() -> None:
    headers = Origins((PAGE,)).headers(PAGE, asked_headers="authorization")

    assert headers["access-control-allow-origin"] == PAGE
    assert headers["access-control-allow-headers"] == "authorization"
    assert headers["access-control-allow-credentials"] == "true"
    assert headers["vary"] == "Origin"


def test_an_origin_that_is_not_listed_is_granted_nothing() -> None:
    assert Origins((PAGE,)).headers("https://other.example") == {"vary": "Origin"}
    assert Origins().headers(PAGE) == {}


@pytest.mark.parametrize(
    "origin", ["page.example", "https://page.example/path", "https://", "*.page.example"]
)
def test_what_is_no_origin_is_refused_when_the_app_is_made(origin: str) -> None:
    with pytest.raises(InvalidOptions, match="an origin is"):
        parse_origins([origin])


def test_one_text_is_not_a_list_of_origins() -> None:
    with pytest.raises(InvalidOptions, match="is a list of origins"):
        parse_origins("*")
