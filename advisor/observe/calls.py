"""Calls of functions that ``@kernel`` marks, with the sizes of their arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from types import FunctionType
from typing import Any

import advisor
import advisor.annotations as inert
from advisor.compiler.record import PLAIN, guarded
from advisor.observe.messages import seen_argument
from advisor.observed import Seen, SeenArray, SeenNumber

MOST_SHAPES = 1000
"""Different sets of arguments that are kept of one program."""


@dataclass(slots=True)
class Calls:
    """Counts calls by function and by the types and sizes of arguments."""

    _seen: dict[tuple[str, Seen], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def watch(self, function: Any) -> Any:
        """Return a function that does the same and is counted; other callables as they are."""
        if not isinstance(function, FunctionType):
            return function  # compiled ones are seen by their compiler

        @wraps(function)
        def watched(*args: Any, **named: Any) -> Any:
            with guarded("looking at the arguments of a kernel"):
                self.note(function, args, named)
            return function(*args, **named)

        setattr(watched, PLAIN, function)
        return watched

    def note(self, function: FunctionType, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Count one call."""
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = {**dict(zip(names, args, strict=False)), **named}
        for name, value in zip(
            reversed(names[: code.co_argcount]), _defaults(function), strict=False
        ):
            given.setdefault(name, value)
        facts = [seen_argument(name, given[name]) for name in names if name in given]
        seen = Seen(
            function=function.__qualname__,
            line=code.co_firstlineno,
            source="call",
            arrays=tuple(fact for fact in facts if isinstance(fact, SeenArray)),
            numbers=tuple(fact for fact in facts if isinstance(fact, SeenNumber)),
        )
        key = code.co_filename, seen
        with self._lock:
            if key in self._seen or len(self._seen) < MOST_SHAPES:
                self._seen[key] = self._seen.get(key, 0) + 1

    def gathered(self) -> tuple[tuple[str, Seen], ...]:
        """Return what was called, with its files and how often."""
        with self._lock:
            return tuple(
                (file, replace(seen, calls=count)) for (file, seen), count in self._seen.items()
            )


def _defaults(function: FunctionType) -> tuple[Any, ...]:
    return tuple(reversed(function.__defaults__ or ()))


def install(calls: Calls) -> None:
    """Let ``advisor.kernel`` mark functions that are counted, in this process from here on."""
    plain = inert.kernel

    @wraps(plain)
    def kernel(function: Callable[..., object] | None = None, /, **sizes: int) -> Any:
        if function is not None:
            return calls.watch(plain(function))
        mark = plain(**sizes)
        return lambda marked: calls.watch(mark(marked))

    for module in (advisor, inert):
        setattr(module, "kernel", kernel)  # noqa: B010
