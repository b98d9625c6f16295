"""From the text of a file to its SPMD program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import libcst as cst

from advisor.files import decode_source
from advisor.frontend.advise_comments.comments import read_comments
from advisor.frontend.advise_comments.directives import (
    AnyDirective,
    CommentError,
    KernelComment,
    Pragmas,
    read_pragmas,
)
from advisor.frontend.spmd.frames import Context, Defined, Entered, Frame
from advisor.frontend.spmd.functions import Functions
from advisor.frontend.spmd.joining import join
from advisor.frontend.spmd.operations import is_method
from advisor.frontend.spmd.options import mpirun_ranks
from advisor.frontend.spmd.parameters import unknown_parameters
from advisor.frontend.spmd.run import Run, TooMuch
from advisor.frontend.spmd.siblings import Siblings
from advisor.frontend.spmd.statements import Statements
from advisor.frontend.spmd.symbols import Symbols
from advisor.frontend.spmd.values import External, Record, Text, Value
from advisor.frontend.syntax.prefilter import (
    BUFFER_METHOD,
    callers_of,
    imports_mpi,
    may_be_given_communicator,
    may_communicate,
    sends_by_parameter,
)
from advisor.frontend.syntax.trees import Tree, tree_of
from advisor.ir.kernel import SourceContext
from advisor.ir.spmd.dealing import is_dealt_in_turn
from advisor.ir.spmd.program import (
    MODULE,
    RANKS,
    THREADS,
    CallSite,
    Program,
    SizeFact,
    SpmdFunction,
)
from advisor.ir.spmd.steps import Communicate, Loop, LoopKind, Step, walk
from advisor.source import SourceProblem, Span
from costdb.wording import IDENTIFIER, NAME_PART, NAME_START

_IDENTIFIER = re.compile(IDENTIFIER)
_RECEIVER = re.compile(rf"([{NAME_START}][{NAME_PART}.]*)\.(?:{BUFFER_METHOD})\s*\(")
_CALLED = re.compile(rf"([{NAME_START}][{NAME_PART}.]*)\.({IDENTIFIER})\s*\(")
_RECEIVER_OR_RANK = re.compile(
    rf"([{NAME_START}][{NAME_PART}.]*)\.(?:{BUFFER_METHOD}|Get_rank|Get_size|Create_cart|Barrier)\s*\("
)
_LINE_END = re.compile(r"\r\n|\n|\r")
_START = Span(1, 0, 1, 0)


def read_program(path: str, source: str) -> Program | None:
    """Return the SPMD program of a file; None where nothing in it communicates.

    Parameters
    ----------
    path, source : str

    Raises
    ------
    SourceProblem
        When the file does not parse, or a comment to the tool cannot be right.
    """
    if not may_communicate(source) and not may_be_given_communicator(path, source.encode()):
        return None
    if not imports_mpi(source):
        found = _as_called(path, source)
        if found is not None or not may_communicate(source):
            return found
    tree = tree_of(path, source)
    directives = _directives(path, source)
    beside = Siblings(path)
    follower = _Follower(path, source, tree, read_pragmas(path, directives), beside)
    follower.follow(tree.module)
    functions = follower.functions(tree.span_of(tree.module))
    follower.end()
    if not functions:
        # a module that has MPI's constants of its own may still be given its communicator
        given = imports_mpi(source) and sends_by_parameter(source.encode())
        return _as_called(path, source) if given else None
    facts = follower.facts(
        directive for directive in directives if isinstance(directive, KernelComment)
    )
    context = _context(source, tree.module, follower.imported("numpy"))
    facts |= _threads(functions, follower.run.symbols)
    return Program(path, functions, facts, context, follower.imported("mpi4py.MPI"))


def followed(path: str, source: str) -> tuple[Run, Mapping[str, Defined]] | None:
    """Return the functions of a file as its own statements call them.

    Modules beside it are not followed. None where the file takes too long to follow.

    Raises
    ------
    SourceProblem
        When the file does not parse, or a comment to the tool cannot be right.
    """
    tree = tree_of(path, source)
    pragmas = read_pragmas(path, _directives(path, source))
    follower = _Follower(path, source, tree, pragmas, None)
    follower.follow(tree.module)
    follower.end()
    return None if follower.is_cut_short else (follower.run, follower.table.defined)


def _directives(path: str, source: str) -> tuple[AnyDirective, ...]:
    try:
        return tuple(read_comments(source))
    except CommentError as error:
        raise error.in_file(path) from error


def _context(source: str, module: cst.Module, numpy: str | None) -> SourceContext:
    return SourceContext(
        source=source,
        array_module=numpy,
        scalar_texts={},
        identifiers=frozenset(_IDENTIFIER.findall(source)),
        indent=module.default_indent,
    )


def _as_called(path: str, source: str) -> Program | None:
    """Return a module as the programs beside it call it; None where none passes a communicator.

    Arguments are known then: arrays have their shapes, and a communicator needs no other sign
    of being one.
    """
    name = Path(path).stem
    for caller in callers_of(path):
        try:
            text = decode_source(caller, Path(caller).read_bytes()).text
            program = tree_of(caller, text)
            pragmas = read_pragmas(caller, _directives(caller, text))
        except (OSError, SourceProblem, RecursionError):
            # what is wrong with it is told where it is checked itself
            continue
        siblings = Siblings(caller, {name: source})
        follower = _Follower(caller, text, program, pragmas, siblings)
        follower.run.reading = name
        follower.follow(program.module)
        context = siblings.contexts.get(name)
        if context is None:
            follower.end()
            continue
        functions = follower.functions_of(context, siblings.tables[name])
        follower.end()
        if functions:
            comments = [d for d in _directives(path, source) if isinstance(d, KernelComment)]
            numpy = _imported(context.frame.names, "numpy")
            around = _context(source, siblings.trees[name], numpy)
            facts = follower.facts(comments) | _threads(functions, follower.run.symbols)
            return Program(path, functions, facts, around, None)
    return None


def _threads(functions: Iterable[SpmdFunction], symbols: Symbols) -> dict[str, SizeFact]:
    """Return how many threads there are: as many as parallel loops deal elements out to."""
    if THREADS in symbols.facts:
        return {}
    steps = [visit.step for function in functions for visit in function.visits()]
    shared = [s for s in steps if isinstance(s, Loop) and s.kind is LoopKind.THREADS]
    dealing = [
        loop
        for loop in shared
        if any(isinstance(one, Loop) and is_dealt_in_turn(loop, one) for one in loop.body)
    ]
    counts = {symbols.value(loop.high): loop for loop in dealing}
    if len(counts) == 1:
        ((value, loop),) = counts.items()
        if value is not None:
            line = loop.span.start_line
            return {THREADS: SizeFact(value, f"`prange` in line {line}", loop.span)}
    return {THREADS: SizeFact(None, "nothing says how many threads there are")} if shared else {}


def _imported(names: Mapping[str, Value], module: str) -> str | None:
    return next((name for name, v in names.items() if v == External(module)), None)


class _Follower:
    def __init__(
        self,
        path: str,
        source: str,
        tree: Tree,
        pragmas: Pragmas,
        beside: Siblings | None,
    ) -> None:
        module = tree.module
        self.beside = beside
        receivers = _RECEIVER_OR_RANK if imports_mpi(source) else _RECEIVER
        self.table = Functions(lambda body: self.statements.block(body))
        names: dict[str, Value] = {}
        if module.body and module.get_docstring() is not None:
            names["__doc__"] = Text(module.get_docstring())
        home = Context(
            tree.span_of,
            _LINE_END.split(source),
            path,
            _used_as_communicators(source, receivers),
            self.table,
            Frame(names, MODULE, names),
        )
        self.run = Run(home, Symbols(), beside)
        self.statements = Statements(self.run, pragmas)
        self.module: Entered | None = None
        self.is_cut_short = False

    def follow(self, module: cst.Module) -> None:
        """Follow the module, then every function that it did not enter."""
        run, frame = self.run, self.run.frame
        try:
            with run.block() as body:
                self._followed(module)
                steps = tuple(body)
            self.module = Entered(
                {}, steps, tuple(frame.buffers.values()), tuple(frame.communicators), frozenset()
            )
            self._others(self.table)
        except TooMuch:
            self.is_cut_short = True
            run.unknown("the rest of the file takes too long to follow", _START)
        self._join(self.table)

    def end(self) -> None:
        """Let go of what refers to itself, once all is followed."""
        self.table.end()
        if self.beside is not None:
            self.beside.end()

    def _others(self, table: Functions) -> None:
        """Follow the functions that nothing called."""
        for defined in list(table.defined.values()):
            if not defined.entered:
                self._alone(defined, table)

    def _join(self, table: Functions) -> None:
        for defined in table.defined.values():
            if len(defined.entered) > 1:
                self._joined(defined, table)

    def _followed(self, module: cst.Module) -> None:
        try:
            self.statements.block(module)
        except TooMuch:
            self.is_cut_short = True
            self.run.budget = 20_000
            self.run.unknown("the rest of the file takes too long to follow", _START)

    def _alone(self, defined: Defined, table: Functions) -> None:
        """Follow a function that nothing calls, with what its parameters may be."""
        run = self.run
        owner = None if defined.owner is None else self._instance(defined, table)
        if defined.entered:
            return
        names = unknown_parameters(defined.function.node, owner, run)
        saved = dict(run.frames[0].names)
        try:
            table.follow(run, defined, names, 0)
        except TooMuch:
            self.is_cut_short = True
            run.budget = 5_000
            del run.frames[1:]
        run.frames[0].names.clear()
        run.frames[0].names.update(saved)

    def _instance(self, defined: Defined, table: Functions) -> Record:
        assert defined.owner is not None
        made = self.run.record(defined.owner)
        initialiser = defined.owner.method("__init__")
        if initialiser is not None:
            known = table.defined.get(initialiser.name)
            if known is not None and known.function.node is not defined.function.node:
                names = unknown_parameters(known.function.node, made, self.run)
                with self.run.block():
                    table.follow(self.run, known, names, 0)
        return made

    def _joined(self, defined: Defined, table: Functions) -> None:
        """Follow a function once more, with what holds in all the ways it was entered."""
        first = defined.entered[0]
        if all(other.names == first.names for other in defined.entered[1:]):
            return
        run = self.run
        names = dict(first.names)
        for other in defined.entered[1:]:
            for name, value in other.names.items():
                names[name] = join(names.get(name), value, name, run)
        run.budget = max(run.budget, 5_000)
        try:
            table.follow(run, defined, names, 0)
        except TooMuch:
            self.is_cut_short = True
            del run.frames[1:]
            return
        defined.entered.insert(0, defined.entered.pop())

    def functions(self, whole: Span) -> tuple[SpmdFunction, ...]:
        """Return the functions that communicate."""
        found = list(self._functions_in(self.table))
        if self.module is not None:
            found.append(_function(MODULE, _START, whole, self.module, None, ()))
        return _in_order(found)

    def functions_of(self, context: Context, table: Functions) -> tuple[SpmdFunction, ...]:
        """Return the functions of a module beside the program that communicate.

        None does unless the program passes one of them a communicator.
        """
        if not any(communicates(way.steps) for d in table.defined.values() for way in d.entered):
            return ()
        with self.run.within(context), self.run.block():
            try:
                self._others(table)
                self._join(table)
            except TooMuch:
                pass
            return _in_order(list(self._functions_in(table)))

    def _functions_in(self, table: Functions) -> Iterator[SpmdFunction]:
        for name, defined in table.defined.items():
            if defined.entered:
                way, node = defined.entered[0], defined.function.node
                span, whole = self.run.span(node.name), self.run.span(node)
                yield _function(name, span, whole, way, node, tuple(defined.sites))

    def facts(self, comments: Iterable[KernelComment]) -> dict[str, SizeFact]:
        """Return what is known of every symbol."""
        symbols = self.run.symbols
        for line, count in mpirun_ranks(self.run.file.lines):
            span = Span(line, 0, line, len(self.run.file.lines[line - 1]))
            origin = f"`-n {count}` in line {line}{self.run.place}"
            symbols.note_ranks(count, origin, span)
        for comment in comments:
            symbols.bind(comment.sizes, f"comment in line {comment.line}", comment.span)
        symbols.facts.setdefault(
            RANKS, SizeFact(None, "nothing in the file says how many ranks there are")
        )
        return dict(symbols.facts)

    def imported(self, module: str) -> str | None:
        """Return the name that a module is imported as at the top of the file."""
        return _imported(self.run.frames[0].names, module)


def _in_order(found: list[SpmdFunction]) -> tuple[SpmdFunction, ...]:
    """Return those that communicate, in the order of the source, the module last."""
    return tuple(
        sorted(
            (f for f in found if communicates(f.body)),
            key=lambda f: (f.name == MODULE, f.span),
        )
    )


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


def _function(
    name: str,
    span: Span,
    whole: Span,
    way: Entered,
    node: cst.FunctionDef | None,
    sites: tuple[CallSite, ...],
) -> SpmdFunction:
    parameters = () if node is None else tuple(p.name.value for p in node.params.params)
    return SpmdFunction(
        name=name,
        span=span,
        whole=whole,
        body=way.steps,
        parameters=parameters,
        communicators=way.communicators,
        buffers=way.buffers,
        calls=sites,
        depth=max((site.depth for site in sites), default=0),
        returned=way.returned,
    )


def communicates(body: tuple[Step, ...]) -> bool:
    """Return whether steps communicate, or divide iterations among threads."""
    return any(
        isinstance(visit.step, Communicate)
        or (isinstance(visit.step, Loop) and visit.step.kind is LoopKind.THREADS)
        for visit in walk(body, into_calls=True)
    )
