"""Patterns of paths: ``*`` and ``?`` within a name, ``**`` across folders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

_PIECE = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)
_MEANING = {
    "**/": "(?:[^/]+/)*",
    "/**": "/.+",
    "**": ".*",
    "*": "[^/]*",
    "?": "[^/]",
}


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern matches `path` or a folder that it lies in.

    Parameters
    ----------
    path : str
        Relative to where the patterns are written, with forward slashes.
    patterns : iterable of str
        One without a slash matches names at any depth; one with a slash, the path from its
        start. A slash at the end changes nothing.
    """
    parts = path.split("/")
    prefixes = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    for pattern in patterns:
        stripped = pattern.removeprefix("./").rstrip("/")
        compiled = _compiled(stripped)
        if any(map(compiled.fullmatch, prefixes if "/" in stripped else parts)):
            return True
    return False


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = (_translated(piece) for piece in _PIECE.findall(pattern))
    return re.compile("".join(pieces), re.DOTALL)


def _translated(piece: str) -> str:
    if piece in _MEANING:
        return _MEANING[piece]
    if len(piece) > 1:
        inside = piece[1:-1].removeprefix("!")
        if not inside:
            return re.escape(piece)
        sign = "^/" if piece.startswith("[!") else ""
        return f"[{sign}{_class(inside)}]"
    return re.escape(piece)


def _class(inside: str) -> str:
    """Return the inside of a character class, its ranges kept where they are ranges."""
    ranges = re.findall(r".-.|.", inside, re.DOTALL)
    return "".join(
        f"{re.escape(one[0])}-{re.escape(one[2])}"
        if len(one) == 3 and one[0] <= one[2]
        else re.escape(one)
        for one in ranges
    )
