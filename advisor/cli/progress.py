"""A progress line for what takes long, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

PATIENCE_S = 1.0
_REFRESH_S = 0.2


def watched(items: Sequence[_Item], noun: str = "choices") -> Iterator[_Item]:
    """Yield `items`; after a second, say on a terminal how many are done, as in ``3 of 9 noun``."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield from items
        return
    due = time.monotonic() + PATIENCE_S
    begun = False
    try:
        for done, item in enumerate(items):
            if time.monotonic() >= due:
                begun = True
                due = time.monotonic() + _REFRESH_S
                share = 100 * done // len(items)
                stream.write(f"\r{done} of {len(items)} {noun} ({share} %)")
                stream.flush()
            yield item
    finally:
        if begun:
            stream.write("\r\x1b[K")
            stream.flush()
