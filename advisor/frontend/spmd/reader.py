"""From the text of a file to its SPMD program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from advisor.files import decode_source
from advisor.finding import MODULE
from advisor.frontend.comments import read_comments
from advisor.frontend.directives import KernelComment
from advisor.frontend.prefilter import (
    BUFFER_METHOD,
    callers_of,
    imports_mpi,
    may_be_given_communicator,
    may_call_compiled,
    may_communicate,
    sends_by_parameter,
)
from advisor.frontend.spmd.builtin_calls import mpirun_ranks
from advisor.frontend.spmd.expressions import evaluate
from advisor.frontend.spmd.functions import follow, parameters
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
from advisor.frontend.spmd.values import External, Symbols, Text
from advisor.ir.kernel import SourceContext
from advisor.ir.spmd.program import RANKS, THREADS, Program, SizeFact, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Loop, LoopKind, Step, is_dealt_in_turn, walk
from advisor.source import SourceProblem, Span
from costdb.records import DOTTED_NAME, IDENTIFIER, only

_IDENTIFIER = re.compile(IDENTIFIER)
_RECEIVER = re.compile(rf"({DOTTED_NAME})\.(?:{BUFFER_METHOD})\s*\(")
_CALLED = re.compile(rf"({DOTTED_NAME})\.({IDENTIFIER})\s*\(")
_RECEIVER_OR_RANK = re.compile(
    rf"({DOTTED_NAME})\.(?:{BUFFER_METHOD}|Get_rank|Get_size|Create_cart|Barrier)\s*\("
)
_START = Span(1, 0, 1, 0)
BRIEF_STEPS = 6_000
"""Of a file that neither sends nor compiles anything: as `MOST_STEPS` of others."""


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
        """The file without them, or with them where it is a program and followed so anyway."""
        return self.whole if imports_mpi(self.source) else self._reading(None)

    def _reading(self, beside: Siblings | None) -> _Reading:
        reading = _Reading.of(self.path, self.source, beside)
        if not may_communicate(self.source) and not may_call_compiled(self.source):
            # what its calls tell is of use, and worth no wait
            reading.run.budget, reading.is_brief = BRIEF_STEPS, True
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
    is_brief: bool = False

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
            self.run.budget = 0 if self.is_brief else budget
            del self.run.frames[1:]

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is to be followed."""
        return self.is_brief and self.is_cut_short

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
            if not defined.entered and not self.is_spent:
                with self._limited(5_000):
                    self._alone(defined)
        for defined in () if self.is_spent else list(context.defined.values()):
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
        run.frames, run.budget = frames, run.budget if self.is_brief else max(run.budget, 5_000)
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
            origin = f"`-n {count}` in line {line}{self.run.place}"
            symbols.note_ranks(count, origin, span, tried=True)
        for comment in only(KernelComment, read_comments(source)):
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
