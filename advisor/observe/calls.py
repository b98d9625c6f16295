"""Calls of a program's own functions: what they are given, and what their names come to denote."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from advisor.compiler.record import guarded, is_of_interest
from advisor.observe.bindings import Bindings, value_of
from advisor.observed import Layout, Seen, SeenArray, SeenNumber, What, agreeing
from costdb.records import dataclass, field, replace

# Arguments of a call as facts, without importing NumPy.


_PLAIN = ("numpy.ndarray", "numpy.memmap")
"""Types of arrays whose operators and slices mean what models and rules say."""


def seen_argument(name: str, value: Any) -> SeenArray | SeenNumber | str | None:
    """Return what an argument is: an array, a number, or None for what takes no array's place.

    Of what does, as a list or an array of a subclass, the name of its type is told.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        An array is what has a shape, strides and flags as NumPy's arrays do.
    """
    if isinstance(value, list | tuple):
        return type(value).__name__
    if type(value) is int:
        return SeenNumber(name, "int64", value)
    if type(value) is float:
        return SeenNumber(name, "float64")
    dtype = getattr(value, "dtype", None)
    shape = getattr(value, "shape", None)
    if dtype is None or not isinstance(shape, tuple):
        return None
    if not shape:
        return _scalar(name, value, str(dtype))
    known = f"{type(value).__module__}.{type(value).__qualname__}"
    if known not in _PLAIN:
        return known
    strides, flags = getattr(value, "strides", None), getattr(value, "flags", None)
    if not isinstance(strides, tuple) or flags is None:
        return None
    return SeenArray(name, str(dtype), len(shape), layout_of(flags), shape, strides)


def layout_of(flags: Any) -> Layout:
    """Return the layout that an array's flags tell."""
    if flags.c_contiguous:
        return "C"
    return "F" if flags.f_contiguous else "A"


def overlaps(arrays: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the names of arrays of NumPy that have memory in common, or may have."""
    for place, array in enumerate(arrays):
        yield from overlapping(array, arrays[place + 1 :])


def overlapping(
    array: tuple[str, Any], others: Sequence[tuple[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield the name of an array with those of others that share memory with it, or may."""
    numpy: Any = sys.modules["numpy"]
    name, first = array
    for other, second in others:
        if numpy.may_share_memory(first, second):
            try:
                apart = not numpy.shares_memory(first, second, max_work=_MOST_WORK)
            except (numpy.exceptions.TooHardError, OverflowError):
                apart = False
            if not apart:
                yield name, other


def _scalar(name: str, value: Any, dtype: str) -> SeenNumber | str | None:
    if getattr(value, "flags", None) is not None and hasattr(value, "__setitem__"):
        return "array without dimensions"
    whole = dtype.startswith(("int", "uint"))
    return SeenNumber(name, dtype, int(value) if whole else None)


# Calls of the program's own functions, with the sizes of their arguments.

MOST_SHAPES = 1000
"""Different sets of arguments that are kept of one program."""
FIRST_CALLS = 1000
"""So many calls of a function are each looked at; then one where a hundredth more were made."""
_MOST_WORK = 1000
"""Solutions that are tried for whether views with steps have an element in common."""
_FEW_ITEMS = 8
"""Of a tuple that are each a number of their own."""
_MOST_ITEMS = 10_000
"""Of a list or tuple that are looked at."""
_LOOKED_INTO = 2
"""Calls with arguments of one kind and one set of sizes whose lines are looked at."""
_LATER = frozenset({10, 100, 1000})
"""Later ones whose lines are looked at, by their number."""
_OTHERWISE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _items(name: str, value: Any) -> tuple[SeenNumber, ...]:
    """Return the numbers of a tuple, or how many of which type a list has that holds no others."""
    if type(value) not in (tuple, list) or not 0 < len(value) <= _MOST_ITEMS:
        return ()
    items = (seen_argument(f"{name}[{k}]", item) for k, item in enumerate(value))
    numbers = tuple(item for item in items if isinstance(item, SeenNumber))
    types = {number.dtype for number in numbers}
    if len(numbers) < len(value):
        return ()
    if type(value) is tuple and len(value) <= _FEW_ITEMS:
        return numbers
    if len(types) > 1:
        return ()
    length = SeenNumber(f"len({name})", "int64", len(value))
    return length, SeenNumber(f"{name}[:]", types.pop())


@dataclass(slots=True)
class _Counted:
    """How often a function was called, and from which call on it is to be looked at again."""

    code: CodeType
    is_own: bool
    calls: int = 0
    next: int = 0
    # of the calls with arguments as in the last one that was looked at
    last: list[int] = field(default_factory=lambda: [0])


@dataclass(slots=True)
class Calls:
    """Counts calls by function and by the types and sizes of arguments.

    Attributes
    ----------
    folder : str
        Where the program's own files are.
    """

    folder: str
    _seen: dict[tuple[str, Seen], list[int]] = field(default_factory=dict)
    # by their identity: to hash a code object takes longer than a call
    _calls: dict[int, _Counted] = field(default_factory=dict)
    _values: dict[tuple[CodeType, str], int | None] = field(default_factory=dict)
    _bindings: Bindings = field(default_factory=lambda: Bindings(seen_argument, overlapping))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the calls of functions in this process within the block."""
        threading.setprofile(self._profiled)
        sys.setprofile(self._profiled)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _profiled(self, frame: FrameType, event: str, argument: object) -> None:
        # this is done for every call that a program makes, and so done here
        if event == "call":
            counted = self._calls.get(id(frame.f_code)) or self._first(frame.f_code)
            if counted.is_own:
                counted.calls += 1
                if counted.calls < counted.next:
                    counted.last[0] += 1
                else:
                    self._look(frame, counted)
            if self._bindings.watching:
                self._bindings.elsewhere(frame)
        elif self._bindings.watching:
            if event == "c_return":
                self._bindings.back(frame)
            elif event == "return":
                self._bindings.end(frame)
                self._bindings.back(frame.f_back)

    def _first(self, code: CodeType) -> _Counted:
        made = self._calls[id(code)] = _Counted(code, self._is_own(code))
        return made

    def _look(self, frame: FrameType, counted: _Counted) -> None:
        counted.next = counted.calls + 1 + max(0, counted.calls - FIRST_CALLS) // 100
        with guarded("looking at the arguments of a function"):
            self._note(frame, counted)

    def _is_own(self, code: CodeType) -> bool:
        file = code.co_filename
        return (
            not code.co_name.startswith("<")
            and not code.co_flags & _OTHERWISE
            and file.endswith((".py", ".ipynb"))
            and is_of_interest(file)
            and os.path.realpath(file).startswith(os.path.join(self.folder, ""))  # noqa: PTH118
        )

    def _note(self, frame: FrameType, counted: _Counted) -> None:
        code, given = frame.f_code, frame.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = {name: given[name] for name in names if name in given}
        facts = {name: seen_argument(name, value) for name, value in values.items()}
        if len(values) < len(names):
            return  # what numba shows a profiler of a compiled function
        # of ranks that are given none, their messages tell what they do
        alone = "mpi4py.MPI" not in sys.modules
        alone = alone or any(isinstance(fact, SeenArray) for fact in facts.values())
        for name in self._bindings.names(code).read if alone else ():
            value = values[name] = value_of(name, frame)
            facts[name] = self._around(code, name, seen_argument(name, value))
        for name, value in values.items():
            for item in _items(name, value):
                facts[item.name] = item if name in given else self._around(code, item.name, item)
        arrays = tuple(fact for fact in facts.values() if isinstance(fact, SeenArray))
        numbers = tuple(fact for fact in facts.values() if isinstance(fact, SeenNumber))
        others = tuple((name, fact) for name, fact in facts.items() if isinstance(fact, str))
        shared = tuple(overlaps([(array.name, values[array.name]) for array in arrays]))
        seen = Seen(
            *(code.co_qualname, code.co_firstlineno, "call", arrays, numbers),
            others=others,
            overlaps=shared,
        )
        key = code.co_filename, seen
        with self._lock:
            known = self._seen.get(key)
            if known is None and len(self._seen) < MOST_SHAPES:
                known = self._seen[key] = [0]
            if known is not None:
                known[0] += 1
                counted.last = known
        few = known is not None and known[0] <= _LOOKED_INTO
        if alone and (few or counted.calls in _LATER):
            entry = {
                name: repr(value) if f"{name}[0]" in facts else facts[name]
                for name, value in values.items()
            }
            self._bindings.begin(frame, key, {n: what for n, what in entry.items() if what})

    def _around(self, code: CodeType, name: str, fact: What | None) -> What | None:
        """Return what a function finds that it was not given; no number that changes."""
        if isinstance(fact, SeenNumber) and fact.value is not None:
            known = self._values.setdefault((code, name), fact.value)
            if known != fact.value:
                self._values[code, name] = None
                return replace(fact, value=None)
        return None if isinstance(fact, str) and "." not in name else fact

    def gathered(self) -> tuple[tuple[str, Seen], ...]:
        """Return what was called with arrays or makes some, with its files and how often.

        Calls without any count in the files of those with arrays.
        """
        with self._lock:
            found = [
                (
                    key[0],
                    replace(
                        key[1],
                        calls=count[0],
                        overlaps=(*key[1].overlaps, *self._bindings.shared(key)),
                        bindings=self._bindings.of(key),
                    ),
                )
                for key, count in self._seen.items()
            ]
        files = {file for file, seen in found if seen.has_arrays}
        known = [(file, seen) for file, seen in found if file in files]
        # of a call without any array, that it was is all there is to know
        return agreeing((f, s if s.has_arrays else replace(s, numbers=())) for f, s in known)
