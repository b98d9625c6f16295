"""Facts gathered while a program runs, and what becomes of an error of ours: one log line."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import PurePath
from typing import Any

from advisor.observed import Layout, Seen, SeenArray, SeenLoop, SeenNumber

# What numba knows of a function that it is compiling, as facts for the front end.

_COMPILE = "_compile_for_args"  # the method of numba's dispatchers that a first call goes through
_DEEPEST_STACK = 200
_LAYOUTS: dict[str, Layout] = {"C": "C", "F": "F", "A": "A"}


def source_file(function: Any) -> str | None:
    """Return the file of a function's source; None for generated ones and what is installed."""
    name = function.__code__.co_filename
    is_file = name.endswith(".py") and not name.startswith("<")
    return name if is_file and is_of_interest(name) else None


def is_of_interest(file: str) -> bool:
    """Return whether a file may be the user's own: not what is installed beside numba."""
    return not {"site-packages", "dist-packages"} & set(PurePath(file).parts)


def seen_in(state: Any) -> Seen | None:
    """Return the facts of the function in a compiler's state, after it made loops parallel.

    Parameters
    ----------
    state : numba.core.compiler.StateDict
        Types are inferred.

    Returns
    -------
    Seen or None
        None for a function that has no source of its own: generated, or inlined away.
    """
    identity = state.func_id
    if len(identity.arg_names) != len(state.args):
        return None
    values = _first_call(identity.func)
    return seen_of(identity.func, state.args, values, tuple(_parallel_loops(state)))


def seen_of(
    function: Any,
    types: Sequence[Any],
    values: Sequence[object] | None = None,
    loops: tuple[SeenLoop, ...] = (),
) -> Seen:
    """Return the facts of a Python function with arguments of given types of numba.

    Parameters
    ----------
    function : function
    types : sequence of numba types
        One for each parameter.
    values : sequence of object, optional
        Arguments of its first call.
    loops : tuple of SeenLoop
    """
    known: Any = import_module("numba.core.types")
    code = function.__code__
    arrays: list[SeenArray] = []
    numbers: list[SeenNumber] = []
    for place, (name, kind) in enumerate(zip(code.co_varnames, types, strict=False)):
        value = values[place] if values is not None and place < len(values) else None
        if isinstance(kind, known.Omitted):
            value, kind = kind.value, _type_of_default(kind.value)
        kind = known.unliteral(kind)
        if isinstance(kind, known.Array):
            layout = _LAYOUTS.get(kind.layout, "A")
            arrays.append(
                SeenArray(name, str(kind.dtype), kind.ndim, layout, *_extents(value, kind.ndim))
            )
        elif isinstance(kind, known.Number | known.Boolean):
            whole = isinstance(kind, known.Integer) and not isinstance(value, bool)
            numbers.append(SeenNumber(name, str(kind), _whole(value) if whole else None))
    return Seen(
        function=function.__qualname__,
        line=code.co_firstlineno,
        source="numba",
        arrays=tuple(arrays),
        numbers=tuple(numbers),
        loops=loops,
    )


def _type_of_default(value: object) -> Any:
    import numba

    return numba.typeof(value)


def _extents(value: Any, ndim: int) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    shape = getattr(value, "shape", None)
    strides = getattr(value, "strides", None)
    if not isinstance(shape, tuple) or len(shape) != ndim or not isinstance(strides, tuple):
        return None, None
    return tuple(map(int, shape)), tuple(map(int, strides))


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value.__index__())
    except (AttributeError, TypeError):
        return None


def _first_call(function: Any) -> Sequence[object] | None:
    """Return the arguments of the call for which a function is compiled.

    A pass of the compiler is told types only. The call that waits for it is on this thread's
    stack; where there is none, as for a function that another compiled one calls or one with
    signatures given, no size is known.
    """
    found = call_underway()
    return None if found is None or found[0].py_func is not function else found[1]


def call_underway() -> tuple[Any, Sequence[object]] | None:
    """Return the dispatcher and the arguments of the call that waits for its compilation."""
    frame = sys._getframe()
    for _ in range(_DEEPEST_STACK):
        if frame.f_back is None:
            return None
        frame = frame.f_back
        if frame.f_code.co_name == _COMPILE:
            found = frame.f_locals
            if hasattr(found.get("self"), "py_func"):
                return found["self"], tuple(found.get("args", ()))
    return None


def _parallel_loops(state: Any) -> Iterator[SeenLoop]:
    if not state.flags.auto_parallel.enabled:
        return
    from numba.parfors.parfor import Parfor

    for block in state.func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, Parfor):
                # numba deals iterations out in equal blocks unless a chunk size is set at run time
                yield SeenLoop(int(statement.loc.line), len(statement.loop_nests), "static")


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
    file = source_file(state.func_id.func)
    seen = None if file is None else seen_in(state)
    if file is not None and seen is not None:
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
    file = source_file(dispatcher.py_func)
    if file is None or not dispatcher.stats.cache_hits:
        return
    signature = list(dispatcher.overloads)[-1]
    if len(signature) == dispatcher.py_func.__code__.co_argcount:
        keep(file, seen_of(dispatcher.py_func, signature, args))


def note_underway() -> None:
    """Keep the facts of the call that waits for its compilation on this thread, if one does.

    For the call during which the pass is switched on: it may be served from the cache.
    """
    import numba

    found = call_underway()
    if found is None:
        return
    function, values = found[0].py_func, found[1]
    file = source_file(function)
    if file is not None and len(values) == function.__code__.co_argcount:
        keep(file, seen_of(function, [numba.typeof(value) for value in values], values))


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
