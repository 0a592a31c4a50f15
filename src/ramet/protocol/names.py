"""How class and method names are written in URLs, in identity frames and by JavaScript callers."""

import re

_CAPITAL = re.compile("[A-Z]")


def kebab(name: str) -> str:
    """Turn a class name into its URL segment: `MyAgent` is `my-agent`, `MY_AGENT` too.

    Every capital stands alone (`HTTPServer` is `h-t-t-p-server`), so two names can share one
    segment; a segment is resolved by converting every registered name.
    """
    if name == name.upper() and name != name.lower():
        return name.lower().replace("_", "-")
    hyphened = _CAPITAL.sub(lambda capital: "-" + capital.group().lower(), name)
    return hyphened.removeprefix("-").replace("_", "-").removesuffix("-")


def camel(name: str) -> str:
    """Turn a method name into the one JavaScript callers write: `start_report` is `startReport`.

    Leading underscores stay; a trailing one, which only avoids a Python keyword, goes.
    """
    bare = name.lstrip("_")
    lead = name[: len(name) - len(bare)]
    first, *others = [word for word in bare.split("_") if word] or [""]
    return lead + first + "".join(word[0].upper() + word[1:] for word in others)
