"""The engine with a memory: after an edit, only the kernels that it concerns are analysed."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from advisor import engine
from advisor.edits import split_lines
from advisor.engine import FileResult, Options, Ranked
from advisor.finding import Coverage, Finding, Remark, Untold
from advisor.frontend.spmd.bodies import BodyMemory
from advisor.frontend.spmd.called import called
from advisor.frontend.spmd.reader import read_program
from advisor.frontend.syntax.trees import TopLevel, Tree, TreeMemory, top_level
from advisor.ir.kernel import Kernel
from advisor.ir.spmd.program import Program
from advisor.lsp.layout import Excerpt, Layout, Part, layout_of
from advisor.observed import Seen
from advisor.source import Edit, SourceProblem, Span
from advisor.steps import step
from costdb.wording import IDENTIFIER

if TYPE_CHECKING:
    pass


# SPMD programs read again and again, of which an edit concerns a part.


@dataclass(slots=True)
class ProgramMemory:
    """Reads programs as :func:`~advisor.frontend.spmd.reader.read_program` does.

    To be used by one thread at a time.
    """

    trees: TreeMemory = field(default_factory=TreeMemory)
    bodies: BodyMemory = field(default_factory=BodyMemory)
    called_bodies: BodyMemory = field(default_factory=BodyMemory)
    parsed: set[str] = field(default_factory=set)
    """Texts that were parsed since somebody cleared this."""

    def calls(
        self,
        path: str,
        source: str,
        given: Mapping[str, int | float],
        given_by: Mapping[str, str],
    ) -> tuple[Seen, ...]:
        """Return what calls tell of functions that numba compiles.

        Raises
        ------
        SourceProblem
            As :func:`~advisor.frontend.spmd.called.called` does.
        """
        return called(path, source, self.trees, self.called_bodies, given, given_by)

    def read(self, path: str, source: str) -> Program | None:
        """Return the program of a file; None where nothing in it communicates.

        Raises
        ------
        SourceProblem
            As the reader does.
        """
        return read_program(path, source, self._tree, self.bodies)

    def _tree(self, path: str, source: str) -> Tree:
        found = self.trees(path, source)
        self.parsed.add(source)
        return found


# Findings of lines that have moved, with every line that they name.

# How messages name lines: "scan only along axis 1 (line 43)", "N = 1000 (line 19)".
_LINE = re.compile(r"\b(lines? )([0-9]+)((?:(?:, | and | to )[0-9]+)*)")

LineMap = Callable[[int], int]
"""Old line to new line."""


def moved_finding(finding: Finding, now: LineMap) -> Finding:
    """Return a finding where its lines are now."""
    fix = finding.fix
    return replace(
        finding,
        span=moved_span(finding.span, now),
        message=_text(finding.message, now),
        reason=_text(finding.reason, now),
        assumptions=tuple(
            replace(assumption, origin=_text(assumption.origin, now))
            for assumption in finding.assumptions
        ),
        evidence=replace(
            finding.evidence,
            facts=tuple(_text(fact, now) for fact in finding.evidence.facts),
            remarks=tuple(_text(remark, now) for remark in finding.evidence.remarks),
        ),
        alternatives=tuple(
            replace(
                alternative,
                title=_text(alternative.title, now),
                reason=_text(alternative.reason, now),
            )
            for alternative in finding.alternatives
        ),
        fix=None
        if fix is None
        else replace(
            fix,
            legality=_text(fix.legality, now),
            edits=tuple(Edit(moved_span(e.span, now), e.replacement) for e in fix.edits),
        ),
    )


def moved_remark(remark: Remark, now: LineMap) -> Remark:
    """Return a remark where its lines are now."""
    span = moved_span(remark.span, now)
    return replace(remark, span=span, message=_text(remark.message, now))


def moved_coverage(coverage: Coverage, now: LineMap) -> Coverage:
    """Return what was not understood where its lines are now."""
    moved = (replace(one, line=now(one.line)) for one in coverage.not_understood)
    return replace(coverage, not_understood=tuple(moved))


def moved_untold(untold: Untold, now: LineMap) -> Untold:
    """Return a gain that is not told of where its lines are now."""
    return replace(untold, span=moved_span(untold.span, now))


def moved_span(span: Span, now: LineMap) -> Span:
    """Return a span where its lines are now."""
    return Span(now(span.start_line), span.start_column, now(span.end_line), span.end_column)


def _text(text: str, now: LineMap) -> str:
    def renumbered(found: re.Match[str]) -> str:
        more = re.sub(r"[0-9]+", lambda number: str(now(int(number[0]))), found[3])
        return f"{found[1]}{now(int(found[2]))}{more}"

    return _LINE.sub(renumbered, text)


# A text with room between its functions, so that most of what is typed moves nothing else.
#
# What is known of a program's functions is known of their lines. A new line in one of them would
# move all below it; so programs are read with blank lines in front of functions, as many as bring
# each to the start of a block of lines. What is found is told where it stands in the real text.

BLOCK = 32
"""Lines. A function that grows beyond a multiple of it moves those below, by as many."""


@dataclass(frozen=True, slots=True)
class Spaced:
    """A text with blank lines between its functions.

    Attributes
    ----------
    source : str
    lines : tuple of int
        For each of its lines, the line of the real text; blank ones stand for the next.
    """

    source: str
    lines: tuple[int, ...]

    def in_file(self, line: int) -> int:
        """Return the line of the real text for a line of this one, from 1."""
        return self.lines[line - 1] if 1 <= line <= len(self.lines) else line


def spaced(source: str, block: int = BLOCK) -> Spaced | None:
    """Return a text with room between its functions; None when it does not parse."""
    statements = top_level(source)
    if statements is None:
        return None
    lines = split_lines(source)
    # a line feed behind a carriage return would be no line end of its own
    newline = "\r\n" if "\r" in source else "\n"
    texts, numbers = list[str](), list[int]()
    begin = 1
    for first in (*_first_lines(statements, lines), len(lines) + 1):
        texts += lines[begin - 1 : first - 1]
        numbers += range(begin, first)
        if first <= len(lines):
            room = -len(texts) % block
            texts += [newline] * room
            numbers += [first] * room
        begin = first
    return Spaced("".join(texts), tuple(numbers))


def _first_lines(statements: Sequence[TopLevel], lines: Sequence[str]) -> Iterator[int]:
    """Yield where long statements begin, functions mostly, with the comments above them."""
    end = 0
    for one in statements:
        if one.function or one.is_compound:
            first = one.first
            while first - 1 > end and lines[first - 2].lstrip().startswith("#"):
                first -= 1
            if first > end:
                yield first
        end = one.last


_MOST_ENTRIES = 400
_IDENTIFIER = re.compile(IDENTIFIER)

Key = TypeVar("Key")
Value = TypeVar("Value")

Declarations = frozenset[Span]
"""Declarations in the frame that a kernel uses, where they stand in every excerpt."""


@dataclass(slots=True)
class KernelMemory:
    """Checks one text after another and gives what :func:`advisor.engine.check_source` gives.

    Only the edits in findings may be out of date: they tell whether there are any, and are to
    be made anew by the engine when somebody wants them.
    """

    _parses: OrderedDict[str, bool] = field(default_factory=OrderedDict)
    _kernels: OrderedDict[object, tuple[Kernel, ...]] = field(default_factory=OrderedDict)
    _ranked: OrderedDict[object, Ranked] = field(default_factory=OrderedDict)
    _plan_keys: OrderedDict[object, object] = field(default_factory=OrderedDict)
    """Of what is ranked, what its plan follows from; to work that out for every part of a file
    takes as long as to rank one."""
    _complete: OrderedDict[object, tuple[Excerpt, Ranked]] = field(default_factory=OrderedDict)
    _programs: ProgramMemory | None = None

    def check(self, path: str, source: str, options: Options) -> FileResult:
        """Return the findings of a text.

        Raises
        ------
        SourceProblem, MachineError
            As the engine does.
        """
        if not options.observed and not engine.needs_reading(source, path):
            return FileResult(path, source, (), ())
        layout = layout_of(source)
        if layout is None:
            return engine.check_source(path, source, options)
        try:
            observed = engine.seen_functions(path, source, options, self._calls)
            named = frozenset(seen.function.partition(".")[0] for seen in observed)
            parts = tuple(layout.with_kernels(named))
            program, parsed = None, False
            if engine.may_communicate(source, path):
                program, parsed = self._program(path, source, options)
            if not parsed and not self._is_readable(layout, frozenset(parts)):
                return engine.check_source(path, source, options)
            excerpts = [layout.excerpt(part) for part in parts]
            kernels = [self._read(path, excerpt, observed, parsed) for excerpt in excerpts]
            uses = Counter(
                one
                for excerpt, own in zip(excerpts, kernels, strict=True)
                for kernel in own
                for one in _declared(kernel, excerpt)
            )
            shared = frozenset(one for one, count in uses.items() if count > 1)
            told = [
                self._told(path, excerpt, own, shared, replace(options, observed=observed))
                for excerpt, own in zip(excerpts, kernels, strict=True)
            ]
            if program is not None:
                told.append(program)
        except (SourceProblem, RecursionError):
            # of several problems the engine knows which one to name, and where
            return engine.check_source(path, source, options)
        whole = reduce(Ranked.and_also, told, Ranked(path, (), ()))
        return engine.tell(whole, source, options)

    def detailed(self, path: str, source: str, options: Options, finding: Finding) -> Finding:
        """Return a finding of a text with all that it rests on, and where else it pays.

        Parameters
        ----------
        path, source : str
            The text that it was found in; its lines may have moved since.
        options : Options
        finding : Finding
            From :meth:`check`.
        """
        alone = replace(options, select=(finding.code,), details=True)
        for found in self._findings_of(path, source, alone, finding.kernel):
            if (found.fingerprint, found.prediction) == (finding.fingerprint, finding.prediction):
                return replace(
                    finding,
                    assumptions=found.assumptions,
                    evidence=found.evidence,
                    crossovers=found.crossovers,
                )
        return finding

    def _findings_of(
        self, path: str, source: str, options: Options, kernel: str
    ) -> Iterator[Finding]:
        """Yield the findings of the parts of a text that may hold a kernel of some name."""
        whole = engine.may_communicate(source, path) or engine.may_call_compiled(source)
        layout = None if whole else layout_of(source)
        if layout is None:
            yield from self.check(path, source, options).findings
            return
        for part in layout.parts_named(kernel):
            excerpt = layout.excerpt(part)
            own = self._read(path, excerpt, options.observed, parsed=False)
            yield from self._told(path, excerpt, own, frozenset(), options).findings

    def _calls(
        self,
        path: str,
        source: str,
        given: Mapping[str, int | float],
        given_by: Mapping[str, str],
    ) -> tuple[Seen, ...]:
        return self._of_programs().calls(path, source, given, given_by)

    def _of_programs(self) -> ProgramMemory:
        if self._programs is None:
            self._programs = ProgramMemory()
        return self._programs

    def _program(self, path: str, source: str, options: Options) -> tuple[Ranked, bool]:
        """Return what is to be said of the SPMD program in a file, and whether all was parsed."""

        # functions are remembered with their lines, which should not move; what a run showed of
        # messages names real ones
        wide = spaced(source, BLOCK if not options.messages else 1)
        if wide is None:
            return engine.rank_program_in(path, source, options), False
        programs = self._of_programs()
        programs.parsed.clear()
        ranked = engine.rank_program_in(path, wide.source, options, programs.read)
        return _moved(ranked, wide.in_file), wide.source in programs.parsed

    def _is_readable(self, layout: Layout, read: Collection[Part]) -> bool:
        """Return whether the front end's parser takes every function; it is not Python's own.

        Those that are going to be `read` are left out: reading them tells.
        """
        for part in layout.parts:
            if part in read:
                continue
            text = layout.text(part)
            if text not in self._parses:
                _remember(self._parses, text, _parses(text))
            if not self._parses[text]:
                return False
        return True

    def _read(
        self, path: str, excerpt: Excerpt, observed: tuple[Seen, ...], parsed: bool
    ) -> tuple[Kernel, ...]:
        """Return the kernels of a part, with lines as the excerpt has them.

        Parameters
        ----------
        path : str
        excerpt : Excerpt
        observed : tuple of Seen
        parsed : bool
            Whether the front end's parser is known to take the file.

        Raises
        ------
        SourceProblem
            The excerpt does not parse, or an annotation in it cannot be right.
        """
        from advisor.frontend.kernels import read_kernels
        from advisor.frontend.syntax.guard import parse
        from advisor.frontend.syntax.prefilter import may_hold_kernels

        idle = not observed and not may_hold_kernels(excerpt.source)
        if idle and parsed:
            return ()
        key = (excerpt.key, observed)
        if key not in self._kernels:
            step()
            if idle:
                # nothing is read then, but whether the front end could is to be known
                parse(path, excerpt.source)
            found = read_kernels(path, excerpt.source, observed)
            own = tuple(kernel for kernel in found if kernel.span.start_line in excerpt.own)
            _remember(self._kernels, key, own)
        self._kernels.move_to_end(key)
        return self._kernels[key]

    def _told(
        self,
        path: str,
        excerpt: Excerpt,
        kernels: tuple[Kernel, ...],
        shared: Declarations,
        options: Options,
    ) -> Ranked:
        """Return what is to be said of a part, with lines as the file has them."""
        if not kernels:
            return engine.rank_kernels(path, (), options)
        sharing = tuple(_sharing(excerpt, kernel, shared) for kernel in kernels)
        key = (
            path,
            excerpt.key,
            tuple(kernel.context.shared for kernel in sharing),
            _options_key(options),
        )
        fresh = key not in self._ranked
        if fresh:
            step()
            _remember(self._ranked, key, engine.rank_kernels(path, sharing, options))
        if options.plans and self._ranked[key].later:
            step()
            self._ranked[key] = self._ranked[key].completed()
            fresh = True
        self._ranked.move_to_end(key)
        ranked = self._ranked[key]
        if ranked.later or fresh:
            if key not in self._plan_keys:
                _remember(self._plan_keys, key, _plan_key(path, excerpt, sharing, options))
            self._plan_keys.move_to_end(key)
            plan_key = self._plan_keys[key]
        if ranked.later:
            # a plan for the same text with the same sizes stays until it is found anew
            known = self._complete.get(plan_key)
            if known is not None:
                ranked = replace(ranked, remarks=_added(ranked, excerpt, *known))
        elif fresh:
            _remember(self._complete, plan_key, (excerpt, ranked))
            self._complete.move_to_end(plan_key)
        return _moved(ranked, excerpt.in_file)


def _moved(ranked: Ranked, now: LineMap) -> Ranked:
    return Ranked(
        ranked.path,
        tuple(moved_finding(finding, now) for finding in ranked.findings),
        tuple(moved_remark(remark, now) for remark in ranked.remarks),
        tuple(moved_untold(one, now) for one in ranked.untold),
        ranked.later,
        ranked.names,
        moved_coverage(ranked.coverage, now),
    )


def _plan_key(path: str, excerpt: Excerpt, kernels: tuple[Kernel, ...], options: Options) -> object:
    """Return what a plan follows from, wherever its kernels stand and whatever is around."""
    from advisor.ir.content import content_of
    from advisor.ranking.sizes import bind_sizes

    contents = tuple((one.name, content_of(one)) for one in kernels)
    # a kernel knows the numbers of the whole module; those that it does not name say nothing of it
    named = frozenset(_IDENTIFIER.findall(repr(contents)))
    bound = (bind_sizes(one, options.sizes, options.size_origins).values for one in kernels)
    sizes = tuple(tuple(sorted((k, v) for k, v in one.items() if k in named)) for one in bound)
    return path, excerpt.own_text, contents, sizes, _options_key(options)


def _added(
    ranked: Ranked, excerpt: Excerpt, before: Excerpt, complete: Ranked
) -> tuple[Remark, ...]:
    """Return the remarks of a part with those that came later when it was the same part before.

    Those that name a line outside of it are left out: nobody knows where that is now.
    """
    shift = excerpt.own.start - before.own.start

    def now(line: int) -> int:
        if line not in before.own:
            raise LookupError(line)
        return line + shift

    found = list(ranked.remarks)
    for remark in complete.remarks:
        with suppress(LookupError):
            moved = moved_remark(remark, now)
            if moved not in found:
                found.append(moved)
    return tuple(found)


def _declared(kernel: Kernel, excerpt: Excerpt) -> frozenset[Span]:
    """Return the declarations that a kernel uses and that stand in the frame."""
    places = (array.places for array in kernel.arrays.values())
    return frozenset(
        span
        for place in places
        for span in (*place.dimensions, *(where for _, where in place.mesh))
        if span.end_line <= excerpt.frame
    )


def _sharing(excerpt: Excerpt, kernel: Kernel, shared: Declarations) -> Kernel:
    """Tell a kernel which declarations of the frame it shares with kernels of other parts."""
    own = frozenset(span for span in kernel.context.shared if span.end_line > excerpt.frame)
    used = _declared(kernel, excerpt) & shared
    return replace(kernel, context=replace(kernel.context, shared=own | used))


def _parses(text: str) -> bool:
    import libcst

    try:
        libcst.parse_module(text)
    except (libcst.ParserSyntaxError, libcst.CSTValidationError, RecursionError):
        return False
    return True


def _options_key(options: Options) -> object:
    return (
        options.machine,
        tuple(sorted(options.sizes.items())),
        tuple(sorted(options.size_origins.items())),
        options.select,
        options.ignore,
        options.min_speedup,
        tuple(sorted(options.rule_min_speedup.items())),
        options.observed,
        options.details,
        options.everything,
    )


def _remember(memory: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    memory[key] = value
    if len(memory) > _MOST_ENTRIES:
        memory.popitem(last=False)
