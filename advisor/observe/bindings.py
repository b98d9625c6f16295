"""What names are bound to within the program's functions, in the first of their calls.

Python's own trace function looks at a frame line by line: after each line, at what the names that
the line binds denote. It is switched off again where nothing new is to be seen: within other
functions, in lines that were seen often enough, at the end of the frame. Where a debugger or a
coverage tool traces, nothing is looked at.
"""

from __future__ import annotations

import ast
import linecache
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType, MemberDescriptorType
from typing import Any

from advisor.compiler.record import guarded
from advisor.observed import VARIES, SeenArray, SeenBinding, SeenNumber, What, either
from costdb.records import dataclass, field

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
_PLAIN = ("__getattribute__", "__setattr__")


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
    if any(getattr(kind, name) is not getattr(object, name) for name in _PLAIN):
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
            found = self._names[code] = NOTHING
            with guarded("reading the source of a function"):
                found = self._names[code] = names_of(code)
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
