"""A progress line for what takes long, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

PATIENCE_S = 1.0
_REFRESH_S = 0.2
_BAR = 24


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


class Bar:
    """A bar on a terminal, beside what is being done; elsewhere a line for each new thing."""

    def __init__(self) -> None:
        self._title = ""
        self._due = 0.0

    def show(self, title: str, share: float) -> None:
        """Say what is being done, and which share of it is, from 0 to 1."""
        stream = sys.stderr
        if stream is None:
            return
        new, self._title = title != self._title, title
        if not stream.isatty():
            if new:
                stream.write(f"{title}\n")
                stream.flush()
        elif new or time.monotonic() >= self._due:
            self._due = time.monotonic() + _REFRESH_S
            full = round(share * _BAR)
            bar = "#" * full + "." * (_BAR - full)
            stream.write(f"\r\x1b[K[{bar}] {round(100 * share):3d} % {title}")
            stream.flush()

    def clear(self) -> None:
        """Take the bar off the terminal."""
        if self._title and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
