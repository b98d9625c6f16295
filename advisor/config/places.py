"""On which line of a TOML document a key stands; the standard library's parser does not say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Keys = Sequence[str | int]
"""The way to a value within a document."""

_LINE_END = re.compile(r"(?<=\n)")


def line_of(text: str, keys: Keys) -> int:
    """Return the line, from 1, of the statement that brings `keys` into a valid document.

    A key exists from some line on: the first prefix of the document that parses and has it ends
    with its value, and the longest shorter prefix that parses ends just before it. Both are
    found by bisection, so that a long document costs a dozen parses. Only called for errors.
    """
    lines = _LINE_END.split(text)
    without, having = 0, len(lines)
    while having - without > 1:
        middle = (without + having) // 2
        # within a value of several lines no prefix parses: the next one above, else below
        candidates = (*range(middle, without, -1), *range(middle + 1, having))
        parsed = ((end, _parsed(lines[:end])) for end in candidates)
        end, document = next((one for one in parsed if one[1] is not None), (having, None))
        if document is None:
            break
        if _has(document, keys):
            having = end
        else:
            without = end
    return without + 1


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    import tomllib  # only for errors: a run without any must not pay for it

    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _has(document: Any, keys: Keys) -> bool:
    for key in keys:
        if isinstance(document, list) and isinstance(key, int):
            if key >= len(document):
                return False
        elif not isinstance(document, dict) or key not in document:
            return False
        document = document[key]
    return True
