"""Facts gathered while a program runs, and what becomes of an error of ours: one log line."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from advisor.compiler import facts
from advisor.observed import Seen

log = logging.getLogger("advisor")

MOST_FACTS = 10_000
"""Signatures that are kept; a program that compiles more is not advised on the rest."""

PLAIN = "__advise_plain__"
"""Attribute of a function that is watched by another, which holds the function itself."""

_lock = threading.Lock()
_facts: dict[tuple[str, Seen], Seen] = {}
_told: set[str] = set()
_taken: list[bool] = []


@contextmanager
def guarded(doing: str) -> Iterator[None]:
    """Keep an error of ours from the program that runs; it is logged once for each task."""
    try:
        yield
    except Exception as error:
        told(doing, error)


def told(doing: str, error: Exception) -> None:
    """Log an error of ours, once for each task."""
    if doing not in _told:
        _told.add(doing)
        log.warning("advise: error while %s, which goes on: %r", doing, error)


def note(state: Any) -> None:
    """Keep the facts of the function in a compiler's state."""
    file = facts.source_file(state.func_id.func)
    if file is None or not facts.is_of_interest(file):
        return
    seen = facts.seen_in(state)
    if seen is not None:
        keep(file, seen)


def keep(file: str, seen: Seen) -> None:
    """Keep one fact; of one signature the sizes of the first call that came with any."""
    key = file, seen.typed
    with _lock:
        known = _facts.get(key)
        if known is None:
            if len(_facts) < MOST_FACTS:
                _facts[key] = seen
        else:
            sized = known if known.weight else seen
            _facts[key] = replace(sized, loops=known.loops or seen.loops)


def note_cached(dispatcher: Any, args: tuple[Any, ...]) -> None:
    """Keep the facts of the signature that a call has just taken from the cache, if it did."""
    file = facts.source_file(dispatcher.py_func)
    if file is None or not facts.is_of_interest(file) or not dispatcher.stats.cache_hits:
        return
    signature = list(dispatcher.overloads)[-1]
    if len(signature) == dispatcher.py_func.__code__.co_argcount:
        keep(file, facts.seen_of(dispatcher.py_func, signature, args))


def note_underway() -> None:
    """Keep the facts of the call that waits for its compilation on this thread, if one does.

    For the call during which the pass is switched on: it may be served from the cache.
    """
    import numba

    found = facts.call_underway()
    if found is None:
        return
    function, values = found[0].py_func, found[1]
    file = facts.source_file(function)
    if (
        file is not None
        and facts.is_of_interest(file)
        and len(values) == function.__code__.co_argcount
    ):
        keep(file, facts.seen_of(function, [numba.typeof(value) for value in values], values))


def gathered() -> tuple[tuple[str, Seen], ...]:
    """Return all facts with their files, in the order in which they came."""
    with _lock:
        return tuple((file, seen) for (file, _), seen in _facts.items())


def take_over() -> None:
    """Leave the report at the end of this process to the caller."""
    _taken.append(True)


def is_taken() -> bool:
    """Return whether somebody else reports."""
    return bool(_taken)


def forget() -> None:
    """Drop all facts, and what errors were told."""
    with _lock:
        _facts.clear()
    _told.clear()
