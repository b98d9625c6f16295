"""From the text of a file to its SPMD program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

import libcst as cst

from advisor.dtypes import dtype_of
from advisor.files import decode_source
from advisor.finding import MODULE
from advisor.frontend.comments import read_comments
from advisor.frontend.directives import KernelComment
from advisor.frontend.prefilter import (
    BUFFER_METHOD,
    callers_of,
    imports_mpi,
    may_be_given_communicator,
    may_communicate,
    sends_by_parameter,
)
from advisor.frontend.spmd.builtin_calls import mpirun_ranks
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.functions import follow, is_kernel_as_called, parameters
from advisor.frontend.spmd.joining import join, meet
from advisor.frontend.spmd.operations import is_method
from advisor.frontend.spmd.run import (
    Context,
    Defined,
    Entered,
    Frame,
    Run,
    Siblings,
    TooMuch,
    file_of,
)
from advisor.frontend.spmd.statements import block
from advisor.frontend.spmd.values import Array, External, Number, Symbols, Text, Value
from advisor.ir.kernel import SourceContext
from advisor.ir.spmd.memory import Contiguity, Order, View
from advisor.ir.spmd.program import RANK, RANKS, THREADS, Program, SizeFact, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Loop, LoopKind, Step, is_dealt_in_turn, walk
from advisor.observed import Layout, Seen, SeenArray, SeenNumber
from advisor.source import SourceProblem, Span
from costdb.expr import Expr, free_symbols, to_text
from costdb.wording import DOTTED_NAME, IDENTIFIER

_IDENTIFIER = re.compile(IDENTIFIER)
_RECEIVER = re.compile(rf"({DOTTED_NAME})\.(?:{BUFFER_METHOD})\s*\(")
_CALLED = re.compile(rf"({DOTTED_NAME})\.({IDENTIFIER})\s*\(")
_RECEIVER_OR_RANK = re.compile(
    rf"({DOTTED_NAME})\.(?:{BUFFER_METHOD}|Get_rank|Get_size|Create_cart|Barrier)\s*\("
)
_START = Span(1, 0, 1, 0)


class Followed:
    """A file, followed from its top at most once by whoever asks what its statements do.

    Parameters
    ----------
    path, source : str
    """

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source

    @cached_property
    def whole(self) -> _Reading:
        """The file with the modules beside it."""
        return self._reading(Siblings(self.path))

    @cached_property
    def alone(self) -> _Reading:
        """The file without them: the same where it imports none."""
        if may_communicate(self.source) and not any(self.whole.contexts.values()):
            return self.whole
        return self._reading(None)

    def _reading(self, beside: Siblings | None) -> _Reading:
        reading = _Reading.of(self.path, self.source, beside)
        reading.follow(reading.run.home, top=True)
        sent = reading.run.sent
        if reading.run.missed and sent:
            # what comes in is made further down: once more, knowing what is sent
            reading = _Reading.of(self.path, self.source, beside and Siblings(self.path))
            reading.run.sent = sent
            reading.follow(reading.run.home, top=True)
        return reading


def read_program(path: str, source: str, file: Followed | None = None) -> Program | None:
    """Return the SPMD program of a file; None where nothing in it communicates.

    Parameters
    ----------
    path, source : str
    file : Followed, optional
        The same file, where somebody else may have followed it.

    Raises
    ------
    SourceProblem
        When the file does not parse, or a comment to the tool cannot be right.
    """
    if not may_communicate(source) and not may_be_given_communicator(path, source):
        return None
    if not imports_mpi(source):
        found = _as_called(path, source)
        if found is not None or not may_communicate(source):
            return found
    reading = (file or Followed(path, source)).whole
    home = reading.run.home
    functions = reading.functions_of(home)
    if functions:
        return reading.program(home, source, functions)
    # a module that has MPI's constants of its own may still be given its communicator
    given = imports_mpi(source) and sends_by_parameter(source)
    return _as_called(path, source) if given else None


def _as_called(path: str, source: str) -> Program | None:
    """Return a module as the programs beside it call it; None where none passes a communicator.

    Arguments are known then: arrays have their shapes, and a communicator needs no other sign
    of being one.
    """
    name = Path(path).stem
    for caller in callers_of(path):
        try:
            text = decode_source(caller, Path(caller).read_bytes()).text
            reading = _Reading.of(caller, text, Siblings(caller, {name: source}), name)
        except (OSError, SourceProblem, RecursionError):
            # what is wrong with it is told where it is checked itself
            continue
        reading.follow(reading.run.home, top=True)
        context = reading.contexts.get(name)
        ways = [] if context is None else [d.entered for d in context.defined.values()]
        if context is None or not any(communicates(way.steps) for many in ways for way in many):
            continue
        with reading.run.within(context), reading.run.block():
            reading.follow(context)
            functions = reading.functions_of(context)
        return reading.program(context, source, functions)
    return None


def _threads(functions: Iterable[SpmdFunction], symbols: Symbols) -> dict[str, SizeFact]:
    """Return how many threads there are: as many as parallel loops deal elements out to."""
    if THREADS in symbols.facts:
        return {}
    steps = [visit.step for function in functions for visit in function.visits()]
    shared = [s for s in steps if isinstance(s, Loop) and s.kind is LoopKind.THREADS]
    dealing = {
        symbols.value(loop.high): loop
        for loop in shared
        if any(isinstance(one, Loop) and is_dealt_in_turn(loop, one) for one in loop.body)
    }
    match [*dealing.items()]:
        case [(int() as value, loop)]:
            origin = f"`prange` in line {loop.span.start_line}"
            return {THREADS: SizeFact(value, origin, loop.span)}
    return {THREADS: SizeFact(None, "nothing says how many threads there are")} if shared else {}


@dataclass(slots=True)
class _Reading:
    """A pass over a program, or over one that calls the module that is read."""

    run: Run
    contexts: Mapping[str, Context | None]
    top: Entered | None = None
    is_cut_short: bool = False

    @classmethod
    def of(cls, path: str, source: str, beside: Siblings | None, reading: str = "") -> _Reading:
        """Return a pass that has followed nothing yet."""
        receivers = _RECEIVER_OR_RANK if imports_mpi(source) else _RECEIVER
        home = file_of(path, source, _used_as_communicators(source, receivers))
        module = home.tree.module
        if module.body and module.get_docstring() is not None:
            home.frame.names["__doc__"] = Text(module.get_docstring())
        run = Run(home, evaluate, block, beside, reading)
        return cls(run, {} if beside is None else beside.contexts)

    @contextmanager
    def _limited(self, budget: int) -> Iterator[None]:
        """Go on behind what takes too long to follow, with less patience."""
        try:
            yield
        except TooMuch:
            self.is_cut_short = True
            self.run.budget = budget
            del self.run.frames[1:]

    def follow(self, context: Context, *, top: bool = False) -> None:
        """Follow a file from its top, and then every function that this did not enter."""
        run, frame = self.run, context.frame
        if top:
            with run.block() as body:
                with self._limited(20_000):
                    block(context.tree.module, run)
                if self.is_cut_short:
                    run.unknown("the rest of the file takes too long to follow", _START)
                self.top = frame.entered({}, tuple(body))
        for defined in list(context.defined.values()):
            if not defined.entered:
                with self._limited(5_000):
                    self._alone(defined)
        for defined in context.defined.values():
            with self._limited(5_000):
                self._in_all_ways(defined)

    def _alone(self, defined: Defined) -> None:
        """Follow a function that nothing calls, with what its parameters may be."""
        run, function = self.run, defined.function
        if defined.owner is not None:
            made = run.record(defined.owner)
            initialiser = defined.owner.method("__init__")
            known = None if initialiser is None else run.file.defined.get(initialiser.name)
            if known is not None and known is not defined:
                whole = replace(known.function, owner=made)
                with run.block():
                    follow(run, known, parameters(whole, None, run))
            function = replace(function, owner=made)
        if defined.entered:
            return
        names = parameters(function, None, run)
        saved = dict(run.frames[0].names)
        try:
            follow(run, defined, names)
        finally:
            run.frames[0].names.clear()
            run.frames[0].names.update(saved)

    def _in_all_ways(self, defined: Defined) -> None:
        """Follow a function once more, with what holds in all the ways it was entered."""
        run, ways = self.run, defined.entered
        told = [(way.names, way.around) for way in ways]
        if all(way == told[0] for way in told):
            return
        first, *others = told
        frames, saved, names = run.frames, run.state(), dict(first[0])
        shared = dict(defined.shared)
        if defined.shared is not frames[0].names:
            run.frames = [frames[0], Frame(defined.shared, "", defined.shared)]
        for frame, asked in zip(run.frames, first[1][0], strict=False):
            frame.names.update(asked)
        run.own.clear()
        run.kept = dict(first[1][1])
        for other, around in others:
            meet(around, run)
            for name, value in other.items():
                names[name] = join(names.get(name), value, name, run)
        run.frames, run.budget = frames, max(run.budget, 5_000)
        try:
            follow(run, defined, names)
            ways.insert(0, ways.pop())
        finally:
            run.restore(saved)
            defined.shared.clear()
            defined.shared.update(shared)

    def functions_of(self, context: Context) -> tuple[SpmdFunction, ...]:
        """Return the functions that communicate, in the order of the source, the module last."""
        run = self.run
        found = []
        for name, defined in context.defined.items():
            if defined.entered:
                way, node, sites = defined.entered[0], defined.function.node, defined.sites
                made = SpmdFunction(
                    name=name,
                    span=run.span(node.name),
                    whole=run.span(node),
                    body=way.steps,
                    parameters=tuple(p.name.value for p in node.params.params),
                    buffers=way.buffers,
                    calls=tuple(sites),
                    depth=max((site.depth for site in sites), default=0),
                    returned=way.returned,
                )
                found.append(made)
        found.sort(key=lambda function: function.span)
        if self.top is not None and context is run.home:
            way, whole = self.top, run.span(context.tree.module)
            found.append(SpmdFunction(MODULE, _START, whole, way.steps, (), way.buffers))
        return tuple(function for function in found if communicates(function.body))

    def program(
        self, context: Context, source: str, functions: tuple[SpmdFunction, ...]
    ) -> Program:
        """Return the program that a file is."""
        around = SourceContext(
            source=source,
            array_module=_imported(context, "numpy"),
            scalar_texts={},
            identifiers=frozenset(_IDENTIFIER.findall(source)),
            indent=context.tree.module.default_indent,
        )
        facts = self._facts(source) | _threads(functions, self.run.symbols)
        own = context is self.run.home
        mpi = _imported(context, "mpi4py.MPI") if own else None
        path = context.path if own else str(Path(context.path))
        return Program(path, functions, facts, around, mpi)

    def _facts(self, source: str) -> dict[str, SizeFact]:
        """Return what is known of every symbol, with what comments of the file that is read say."""
        symbols, lines = self.run.symbols, self.run.home.lines
        for line, count in mpirun_ranks(lines):
            span = Span(line, 0, line, len(lines[line - 1]))
            symbols.note_ranks(count, f"`-n {count}` in line {line}{self.run.place}", span)
        for comment in read_comments(source):
            if isinstance(comment, KernelComment):
                symbols.bind(comment.sizes, f"comment in line {comment.line}", comment.span)
        symbols.facts.setdefault(
            RANKS, SizeFact(None, "nothing in the file says how many ranks there are")
        )
        return dict(symbols.facts)


def _imported(context: Context, module: str) -> str | None:
    """Return the name that a module is imported as at the top of a file."""
    names = context.frame.names.items()
    return next((name for name, value in names if value == External(module)), None)


def _used_as_communicators(source: str, receivers: re.Pattern[str]) -> frozenset[str]:
    """Return the dotted names that are used as mpi4py's communicators, and as nothing else.

    A wrapper has methods that mpi4py's communicators do not have; whatever is called like it in
    this file may be one.
    """
    found = frozenset(receivers.findall(source))
    if not found:
        return found
    wrappers = {
        name.rpartition(".")[2] for name, method in _CALLED.findall(source) if not is_method(method)
    }
    return frozenset(name for name in found if name.rpartition(".")[2] not in wrappers)


def communicates(body: tuple[Step, ...]) -> bool:
    """Return whether steps communicate, or divide iterations among threads."""
    return any(
        isinstance(visit.step, Communicate)
        or (isinstance(visit.step, Loop) and visit.step.kind is LoopKind.THREADS)
        for visit in walk(body, into_calls=True)
    )


# What the calls in a file tell of the arguments of its functions.
#
# The file is followed as SPMD programs are: arrays have the shape, element type and storage order
# of the place that makes them. What all calls of a function agree on is a fact of its parameters,
# as if a run had shown it; what they differ in stays unknown. Calls from other files may pass other
# things: facts are what findings are priced with, and never why an edit is allowed.


_TEXT_LENGTH = 60


def called(
    path: str,
    source: str,
    given: Mapping[str, int | float] = MappingProxyType({}),
    given_by: Mapping[str, str] = MappingProxyType({}),
    file: Followed | None = None,
) -> tuple[Seen, ...]:
    """Return what a file's own calls tell of its functions, in the order of the source.

    Functions that it does not call are left out, and so are those of which calls differ in the
    element type or the storage order of an array; compiled ones also where arguments share memory,
    as what is said of their loops holds where arrays do not overlap. Sizes that differ from rank to
    rank are those of the first one.

    Parameters
    ----------
    path, source : str
    given : mapping of str to number
        Sizes of the file, over what its source says of them.
    given_by : mapping of str to str
        What gave them, where it was not ``-D``.
    file : Followed, optional
        The same file, where somebody else may follow it too.

    Raises
    ------
    SourceProblem
        When the file does not parse, or a comment to the tool cannot be right.
    """
    reading = (file or Followed(path, source)).alone
    if reading.is_cut_short:
        return ()
    run, functions = reading.run, reading.run.home.defined
    facts = run.symbols.facts
    stated = dict(facts)
    for name in (facts.keys() | {RANKS}) & given.keys():
        facts[name] = SizeFact(given[name], given_by.get(name, "-D"))
    facts.setdefault(RANK, SizeFact(0, "the first rank"))
    # one name for several functions: a call may be of any
    several = {name.partition(":")[0] for name in functions if ":" in name}
    made = [
        seen
        for name, defined in functions.items()
        if name.partition(":")[0] not in several
        and defined.sites
        and is_kernel_as_called(defined.function.node, run)
        and (seen := _seen(name, defined, run)) is not None
    ]
    # the program that the file may be is read with what its source says
    facts.clear()
    facts.update(stated)
    return tuple(sorted(made, key=lambda seen: seen.line))


def _seen(name: str, defined: Defined, run: Run) -> Seen | None:
    node = defined.function.node
    line = run.span(node.name).start_line
    # the first way is what holds in all of them
    names = defined.entered[0].names
    call = f"call in line {defined.sites[0].span.start_line}"
    arrays: list[SeenArray] = []
    numbers: list[SeenNumber] = []
    for parameter in _parameters(node):
        value = names.get(parameter)
        if isinstance(value, Array):
            array = _array(parameter, value.view, _shapes(parameter, defined), run)
            if array is None:
                return None
            arrays.append(array)
        elif isinstance(value, Number):
            numbers.append(_number(parameter, value, call, run))
        elif _is_an_array_elsewhere(parameter, defined):
            return None
    if not arrays:
        return None
    ways = [_in_one_memory(way.names, _parameters(node)) for way in defined.entered]
    overlaps = tuple(dict.fromkeys(pair for way in ways for pair in way))
    if overlaps and node.decorators:
        return None
    calls = len(defined.sites)
    return Seen(name, line, "text", tuple(arrays), tuple(numbers), calls=calls, overlaps=overlaps)


def _parameters(node: cst.FunctionDef) -> tuple[str, ...]:
    params = node.params
    found = (*params.posonly_params, *params.params, *params.kwonly_params)
    return tuple(parameter.name.value for parameter in found)


def _in_one_memory(
    names: Mapping[str, Value], parameters: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of arguments that are parts of one array."""
    given = [
        (name, value.view) for name in parameters if isinstance(value := names.get(name), Array)
    ]
    for (one, view), (other, same) in combinations(given, 2):
        if view.buffer.memory == same.buffer.memory:
            yield one, other


def _is_an_array_elsewhere(parameter: str, defined: Defined) -> bool:
    """Return whether a call passes an array where not all do, or not one of the same kind."""
    return any(isinstance(way.names.get(parameter), Array) for way in defined.entered)


def _shapes(parameter: str, defined: Defined) -> str:
    """Return the shapes that an argument has in all calls, in their terms."""
    first, *others = defined.entered
    # where ways differ, the first one is what they have in common
    ways = others if any(way.names != first.names for way in others) else [first]
    found = [way.names.get(parameter) for way in ways]
    shapes = [value.view.shape for value in found if isinstance(value, Array)]
    told = [", ".join(map(to_text, shape)) for shape in shapes if shape is not None]
    return "; ".join(told) if len(told) == len(ways) else ""


def _array(name: str, view: View, shapes: str, run: Run) -> SeenArray | None:
    """Return an argument; None where its element type or how it lies in memory is not known."""
    layout, shape = _layout(view), view.shape
    if layout is None or shape is None or view.dtype is None:
        return None
    values = [run.symbols.value(extent) for extent in shape]
    extents = tuple(value for value in values if value is not None and value >= 0)
    known = extents if len(extents) == len(shape) else None
    return SeenArray(
        name, view.dtype, len(shape), layout, known, None, _made(view, shape, run), shapes
    )


def _layout(view: View) -> Layout | None:
    contiguity = view.contiguity
    if contiguity is Contiguity.NO:
        return "A"
    several = view.shape is None or len(view.shape) > 1
    if contiguity is Contiguity.UNKNOWN or (several and view.order is Order.UNKNOWN):
        return None
    return "F" if several and view.order is Order.F else "C"


def _made(view: View, shape: tuple[Expr, ...], run: Run) -> str:
    """Return which line makes an array, and what binds the sizes that it is made of."""
    allocation = view.buffer.allocation
    text = " ".join(allocation.text.split())
    if len(text) > _TEXT_LENGTH:
        text = f"{text[: _TEXT_LENGTH - 4]} ..."
    facts = run.symbols.facts
    names = sorted(frozenset().union(*map(free_symbols, shape)) & facts.keys())
    sizes = "".join(f"; {name}: {facts[name].origin}" for name in names)
    return f"line {allocation.span.start_line}: {text}{sizes}"


def _number(name: str, value: Value, call: str, run: Run) -> SeenNumber:
    assert isinstance(value, Number)
    whole = value.dtype == "int" and not value.varies
    known = run.symbols.value(value.expr) if whole else None
    return SeenNumber(name, dtype_of(value.dtype).name, known, call)
