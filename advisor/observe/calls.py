"""Calls of a program's own functions: what they are given, and what their names come to denote."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, MemberDescriptorType
from typing import Any

from advisor.compiler.record import guarded, is_of_interest
from advisor.observed import (
    FEW_ITEMS,
    VARIES,
    Layout,
    Seen,
    SeenArray,
    SeenBinding,
    SeenNumber,
    What,
    agreeing,
    either,
)
from costdb.records import dataclass, field, replace

# --- bindings -------------------------------------------------------------------------------------
# What names are bound to within the program's functions, in the first of their calls.
#
# Python's own trace function looks at a frame line by line: after each line, at what the names that
# the line binds denote. It is switched off again where nothing new is to be seen: within other
# functions, in lines that were seen often enough, at the end of the frame. Where a debugger or a
# coverage tool traces, nothing is looked at.


MOST_TIMES = 16
"""How often the names of a line are looked at in one call."""
MOST_CALLS = 16
"""Calls of a function whose lines are looked at."""
MOST_EVENTS = 200_000
"""Lines that are looked at in one run; each takes less than a microsecond."""
_FRUITLESS = 1000
"""After so many lines with nothing to see, a frame runs on untraced."""
_WAKES = 20_000
"""After so many calls in lines with nothing to see, nothing more is seen of a frame."""

Look = Callable[[str, Any], SeenArray | SeenNumber | str | None]
"""Says what a value is; None for what takes no array's place."""


# --- which names a function binds and reads, from its source ------------------------------------


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a function that may denote arrays besides its parameters.

    Attributes
    ----------
    bound : mapping of int to tuple of str
        For each line the names that it binds, attributes of parameters included.
    read : tuple of str
        Attributes of parameters, and names from around the function.
    """

    bound: Mapping[int, tuple[str, ...]]
    read: tuple[str, ...]


NOTHING = Names({}, ())


def names_of(code: CodeType) -> Names:
    """Return the names of a function; none where its source cannot be found."""
    tree = _tree(code.co_filename)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
            if code.co_firstlineno in (first, node.lineno):
                return _names_in(node, code)
    return NOTHING


_trees: dict[str, ast.Module | None] = {}


def _tree(file: str) -> ast.Module | None:
    if file not in _trees:
        try:
            _trees[file] = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            _trees[file] = None
    return _trees[file]


_APART = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)  # fmt: skip


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is within a function, but for what has names of its own."""
    for part in ast.iter_child_nodes(node):
        yield part
        if not isinstance(part, _APART):
            yield from _nodes(part)


def _names_in(node: ast.FunctionDef, code: CodeType) -> Names:
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    local = {*code.co_varnames, *code.co_cellvars}
    bound: dict[int, dict[str, None]] = {}
    read: dict[str, None] = {}
    rebound: set[str] = set()
    for part in (one for statement in node.body for one in (statement, *_nodes(statement))):
        if not isinstance(part, ast.Name | ast.Attribute):
            continue
        name = ast.unparse(part)
        root = name.partition(".")[0]
        if isinstance(part, ast.Attribute) and (
            root not in parameters or not name.replace(".", "").isidentifier()
        ):
            continue
        if isinstance(part.ctx, ast.Store):
            bound.setdefault(part.lineno, {})[name] = None
            rebound.add(name)
        elif isinstance(part, ast.Attribute) or name not in local:
            read[name] = None
    return Names(
        {line: tuple(names) for line, names in bound.items()},
        tuple(name for name in read if not rebound & _prefixes(name)),
    )


def _prefixes(name: str) -> set[str]:
    """Return what an attribute is an attribute of."""
    parts = name.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts))}


_MISSING = object()
_NUMBERS = (bool, int, float, complex)
_PLAIN_NAMES = ("__getattribute__", "__setattr__")


def value_of(name: str, frame: FrameType) -> Any:
    """Return what a name or an attribute denotes in a frame, without running anything.

    An attribute is one that the instance itself holds: no property, and nothing else computes it.
    """
    first, *rest = name.split(".")
    value = frame.f_locals.get(first, _MISSING)
    if value is _MISSING:
        value = frame.f_globals.get(first, _MISSING)
    for attribute in rest:
        value = _MISSING if value is _MISSING else _held(value, attribute)
    return value


def _held(value: Any, attribute: str) -> Any:
    kind = type(value)
    if any(getattr(kind, name) is not getattr(object, name) for name in _PLAIN_NAMES):
        return _MISSING
    of_class = next((c.__dict__[attribute] for c in kind.__mro__ if attribute in c.__dict__), None)
    if type(of_class) is MemberDescriptorType:
        return getattr(value, attribute, _MISSING)
    if hasattr(type(of_class), "__set__"):
        return _MISSING
    own = getattr(value, "__dict__", None)
    return own.get(attribute, _MISSING) if type(own) is dict else _MISSING


# --- looking at frames --------------------------------------------------------------------------


@dataclass(slots=True)
class _Frame:
    """A frame that is looked at: the last line that began, and what is still to be seen of each."""

    names: Names
    file: str
    times: dict[int, int]
    entry: dict[str, What]
    bindings: dict[tuple[str, str], What]
    arrays: dict[str, None]
    shared: dict[tuple[str, str], None]
    line: int = 0
    fruitless: int = 0
    wakes: int = _WAKES


@dataclass(slots=True)
class Bindings:
    """Looks at what names are bound to.

    Attributes
    ----------
    look, overlaps : callable
        What a value is; which of some arrays share memory with one.
    watching : int
        Frames of all threads that are looked at.
    """

    look: Look
    overlaps: Callable[[tuple[str, Any], list[tuple[str, Any]]], Iterable[tuple[str, str]]]
    _names: dict[CodeType, Names] = field(default_factory=dict)
    _calls: dict[CodeType, int] = field(default_factory=dict)
    _found: dict[object, dict[tuple[str, str], What]] = field(default_factory=dict)
    _shared: dict[object, dict[tuple[str, str], None]] = field(default_factory=dict)
    _here: Any = field(default_factory=threading.local)
    _events: int = 0
    watching: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def names(self, code: CodeType) -> Names:
        """Return the names of a function, which are looked up once."""
        found = self._names.get(code)
        if found is None:
            found = NOTHING
            with guarded("reading the source of a function"):
                found = names_of(code)
            # not before: another thread may ask meanwhile
            self._names[code] = found
        return found

    def begin(self, frame: FrameType, key: object, entry: Mapping[str, What]) -> None:
        """Look at the lines of a call, once more for a kind of call that is seen again.

        Parameters
        ----------
        frame : frame
            About to begin.
        key : object
            The kind of call.
        entry : mapping of str to SeenArray, SeenNumber or str
            What it found; of tuples their text.
        """
        code = frame.f_code
        names, calls = self.names(code), self._calls.get(code, 0)
        if not names.bound or calls >= MOST_CALLS or self._events > MOST_EVENTS:
            return
        if sys.gettrace() not in (None, self._trace):
            return
        self._calls[code] = calls + 1
        with self._lock:
            self.watching += 1
        self._frames[frame] = _Frame(
            names,
            code.co_filename,
            dict.fromkeys(names.bound, MOST_TIMES),
            {name: what for name, what in entry.items() if name not in frame.f_locals},
            self._found.setdefault(key, {}),
            {name: None for name, what in entry.items() if isinstance(what, SeenArray)},
            self._shared.setdefault(key, {}),
        )
        frame.f_trace = self._trace
        sys.settrace(self._trace)

    def shared(self, key: object) -> tuple[tuple[str, str], ...]:
        """Return the names of arrays that had memory in common in calls of a kind."""
        return tuple(self._shared.get(key, {}))

    def of(self, key: object) -> tuple[SeenBinding, ...]:
        """Return what names came to denote in calls of a kind, each in each line once."""
        found = self._found.get(key, {})
        return tuple(SeenBinding(text, name, what) for (text, name), what in found.items())

    @property
    def _frames(self) -> dict[FrameType, _Frame]:
        """The frames of this thread that are looked at."""
        if not hasattr(self._here, "frames"):
            self._here.frames = {}
        frames: dict[FrameType, _Frame] = self._here.frames
        return frames

    def elsewhere(self, frame: FrameType) -> None:
        """Trace nothing while a function runs that is not looked at."""
        if sys.gettrace() == self._trace and frame not in self._frames:
            sys.settrace(None)

    def back(self, frame: FrameType | None) -> None:
        """Go on with a frame to which control comes back in a line that is still to be seen."""
        known = None if frame is None else self._frames.get(frame)
        if frame is None or known is None or not known.wakes:
            return
        known.wakes -= 1
        if frame.f_lineno in known.times and sys.gettrace() is None:
            known.line, known.fruitless, known.wakes = frame.f_lineno, 0, _WAKES
            frame.f_trace, frame.f_trace_lines = self._trace, True
            sys.settrace(self._trace)

    def end(self, frame: FrameType) -> None:
        """Look a last time at a frame that ends, and forget it."""
        known = self._frames.pop(frame, None)
        if known is not None:
            with self._lock:
                self.watching -= 1
            with guarded("looking at what names are bound to"):
                self._settled(frame, known)
        if not self._frames and sys.gettrace() == self._trace:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        known = self._frames.get(frame)
        if known is None:
            return None
        self._events += 1
        line, known.line = known.line, frame.f_lineno
        if event == "exception":
            # the line that raised bound nothing
            known.line = 0
        elif line in known.times:
            known.fruitless = 0
            with guarded("looking at what names are bound to"):
                self._note(frame, known, line)
        else:
            known.fruitless += 1
        if event == "return":
            self.end(frame)
        elif not known.times or known.fruitless > _FRUITLESS or self._events > MOST_EVENTS:
            # what is left to see is how it ends
            frame.f_trace_lines = False
            sys.settrace(None)
        return self._trace

    def _note(self, frame: FrameType, known: _Frame, line: int) -> None:
        known.times[line] -= 1
        if not known.times[line]:
            del known.times[line]
        text = linecache.getline(known.file, line).strip()
        for name in known.names.bound[line]:
            value = value_of(name, frame)
            if value is not _MISSING:
                what = self._what(name, value)
                self._add(known, text, name, what)
                if isinstance(what, SeenArray):
                    known.arrays[name] = None
                    held = [(one, value_of(one, frame)) for one in known.arrays if one != name]
                    arrays = [(n, v) for n, v in held if isinstance(self.look(n, v), SeenArray)]
                    known.shared.update(dict.fromkeys(self.overlaps((name, value), arrays)))

    def _what(self, name: str, value: Any) -> What:
        if type(value) in _NUMBERS:
            whole = value if type(value) is int and abs(value) < 2**62 else None
            return SeenNumber(name, type(value).__name__, whole)
        return self.look(name, value) or type(value).__name__

    def _add(self, known: _Frame, text: str, name: str, what: What) -> None:
        before = known.bindings.setdefault((text, name), what)
        if before != what:
            known.bindings[text, name] = either(before, what)

    def _settled(self, frame: FrameType, known: _Frame) -> None:
        """Note which attributes came to denote something else than when the call began."""
        for name, before in known.entry.items():
            value = value_of(name, frame)
            what = "nothing" if value is _MISSING else self.look(name, value)
            if type(value) is tuple and all(type(item) in _NUMBERS for item in value):
                what = repr(value)
            same = what == before if isinstance(before, str) else not _differ(before, what)
            if not same:
                self._add(known, "", name, VARIES)


def _differ(before: SeenArray | SeenNumber, what: What | None) -> bool:
    return what is None or isinstance(either(before, what), str)


# --- calls ----------------------------------------------------------------------------------------


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
    if type(value) is tuple and len(value) <= FEW_ITEMS:
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
