"""Work in steps, between which it ends when nobody wants its result any more.

An editor has no use for an answer about a text that has changed since. Whoever starts such work
says how it is known that it is useless; the work asks before each of its longer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Overtaken(Exception):
    """Nobody wants the result any more."""


def _never() -> bool:
    return False


_useless: ContextVar[Callable[[], bool]] = ContextVar("useless", default=_never)


@contextmanager
def ending_when(useless: Callable[[], bool]) -> Iterator[None]:
    """Let work in this context raise `Overtaken` at its next step once `useless` says so."""
    before = _useless.set(useless)
    try:
        yield
    finally:
        _useless.reset(before)


def step() -> None:
    """Begin a step.

    Raises
    ------
    Overtaken
        Nobody wants the result any more.
    """
    if _useless.get()():
        raise Overtaken
