"""The engine as the language server asks it: every outcome is a value, none ends the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from advisor import engine
from advisor.engine import Options, Ranked, RankKernel
from advisor.finding import ONE_PROCESS, Applicability, Finding, Remark
from advisor.ir.kernel import Kernel
from advisor.report.rows import headline
from advisor.source import Edit, ParseProblem, SourceProblem, Span, apply_edits, split_lines
from costdb.records import dataclass, field, replace

# Code actions: which edits are offered for which findings, and how "ignore here" is written.


class Purpose(StrEnum):
    """What an action does."""

    REWRITE = "rewrite"
    IGNORE = "ignore"
    MEASURE = "measure"


QUICK_FIX = "quickfix"
REWRITE = "refactor.rewrite"
KINDS = (QUICK_FIX, REWRITE)


@dataclass(frozen=True, slots=True)
class Offer:
    """An action on a finding, without its edit: that is made when the user picks it.

    Attributes
    ----------
    title : str
        Starts with the class and the gain, for a rewrite.
    kind : str
        One of `KINDS`.
    preferred : bool
        Whether an editor may apply it without asking which.
    """

    purpose: Purpose
    title: str
    kind: str
    preferred: bool
    finding: Finding


def offers(
    findings: Iterable[Finding], only: Sequence[str] | None, here: Callable[[str], bool]
) -> Iterator[Offer]:
    """Yield the actions on findings: rewrites, a measurement of each kernel, suppressions.

    A safe rewrite is a quick fix. An unsafe one is a refactoring, which nobody applies without
    looking; an editor that asks for refactorings only gets the safe ones as such too.

    Parameters
    ----------
    findings : iterable of Finding
    only : sequence of str or None
        The kinds that the editor asks for, each with those below it; None for all.
    here : callable
        Whether a machine may be the one that this runs on.
    """
    chosen = tuple(findings)
    quick, refactoring = _asked(QUICK_FIX, only), _asked(REWRITE, only)
    for finding in chosen:
        applicability = _applicability(finding)
        if applicability is Applicability.SAFE and quick:
            yield Offer(Purpose.REWRITE, headline(finding), QUICK_FIX, True, finding)
        elif applicability is Applicability.SAFE and refactoring:
            yield Offer(Purpose.REWRITE, headline(finding), REWRITE, False, finding)
        elif applicability is Applicability.UNSAFE and refactoring:
            title = f"{headline(finding)} (unsafe: results may differ)"
            yield Offer(Purpose.REWRITE, title, REWRITE, False, finding)
    if quick:
        kernels: dict[str, Finding] = {}
        for finding in chosen:
            if finding.priced_as.startswith(ONE_PROCESS) and here(finding.evidence.machine):
                kernels.setdefault(finding.kernel, finding)
        for name, finding in kernels.items():
            title = f"Measure {name} and its rewrites on this machine"
            yield Offer(Purpose.MEASURE, title, QUICK_FIX, False, finding)
        for finding in chosen:
            title = f"Ignore {finding.code} ({finding.name}) here"
            yield Offer(Purpose.IGNORE, title, QUICK_FIX, False, finding)


def _applicability(finding: Finding) -> Applicability | None:
    fix = finding.fix
    return fix.applicability if fix is not None and fix.edits else None


def _asked(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(
        kind == asked or kind.startswith(f"{asked}.") or asked == "" for asked in only
    )


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one text gave.

    Attributes
    ----------
    findings, remarks : tuple
        Empty unless `understood`.
    problem : SourceProblem or None
        Why the text could not be understood.
    failure : str
        One line when no prediction is possible for any text, as without a machine.
    whole : bool
        Whether there is nothing to add that takes longer to find.
    """

    findings: tuple[Finding, ...] = ()
    remarks: tuple[Remark, ...] = ()
    problem: SourceProblem | None = None
    failure: str = ""
    whole: bool = True

    @property
    def understood(self) -> bool:
        """Whether the findings are about this text."""
        return self.problem is None and not self.failure

    @property
    def half_typed(self) -> bool:
        """Whether the text is no Python, which other tools tell the user."""
        return isinstance(self.problem, ParseProblem)


def analyse(path: str, source: str, options: Options, rank: RankKernel | None = None) -> Analysis:
    """Return what ``advise`` says of a file with this text."""
    from costdb.machines import MachineError

    if not options.observed and not engine.needs_reading(source, path):
        return Analysis()
    if not _is_text(source):
        return Analysis(problem=ParseProblem(path, 1, 0, "holds half of a character"))
    try:
        result = engine.check_source(path, source, options, rank)
    except SourceProblem as problem:
        return Analysis(problem=problem)
    except (MachineError, LookupError) as error:
        return Analysis(failure=str(error))
    return Analysis(result.findings, result.remarks, whole=result.whole)


def with_details(
    path: str, source: str, options: Options, findings: Iterable[Finding]
) -> list[Finding]:
    """Return findings of a text, which may have moved since, with all that they rest on."""
    found = list(findings)
    codes = tuple(sorted({one.code for one in found}))
    full = analyse(path, source, replace(options, select=codes, plans=False)).findings
    known = {(one.fingerprint, one.prediction): one for one in full}
    # what is not there again is shown as it is: it lacks some lines
    detailed = (known.get((one.fingerprint, one.prediction), one) for one in found)
    return [replace(more, span=one.span) for more, one in zip(detailed, found, strict=True)]


def rewrite_edits(
    path: str, source: str, options: Options, finding: Finding
) -> tuple[Edit, ...] | None:
    """Return the edits of a finding's rewrite; None when the finding is not there."""
    wanted = (finding.fingerprint, finding.span)
    for found in analyse(path, source, replace(options, select=(finding.code,))).findings:
        if (found.fingerprint, found.span) == wanted and found.fix is not None:
            return found.fix.edits
    return None


def suppression_edits(
    path: str, source: str, options: Options, finding: Finding
) -> tuple[Edit, ...] | None:
    """Return the edit that adds ``# advise: ignore[CODE]`` for a finding.

    Behind its first line, or above it where that line goes on behind a backslash or within a
    string. None when neither makes the engine leave the finding out.
    """
    alone = replace(options, select=(finding.code,))

    def count(text: str) -> int | None:
        # not by fingerprint, which the comment on its line changes
        analysis = analyse(path, text, alone)
        alike = (_identity(found) == _identity(finding) for found in analysis.findings)
        return sum(alike) if analysis.understood else None

    comment, number = f"# advise: ignore[{finding.code}]", finding.span.start_line
    line = split_lines(source)[number - 1].rstrip("\r\n")
    indent, end = line[: len(line) - len(line.lstrip())], len(line.rstrip())
    behind = Edit(Span(number, end, number, len(line)), f"  {comment}")
    above = Edit(Span(number, 0, number, 0), f"{indent}{comment}\n")
    before = count(source)
    for edit in (behind, above) if before else ():
        after = count(apply_edits(source, (edit,)))
        if after is not None and before is not None and after < before:
            return (edit,)
    return None


def _identity(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.kernel, finding.message


def _is_text(source: str) -> bool:
    """Return whether `source` can be encoded; an editor may send half of a surrogate pair."""
    return source.isascii() or not any("\ud800" <= char <= "\udfff" for char in source)


MOST_KERNELS = 400


@dataclass(slots=True)
class KernelMemo:
    """Ranks kernels as :func:`advisor.engine.rank_kernel` does, unchanged ones only once.

    A kernel is unchanged where its lines are, with their text, and where all that was read of it
    is the same: declarations elsewhere, imports, sizes, what runs showed. Only the edits of its
    findings may be out of date: they tell whether there are any, and are made anew by the engine
    when somebody wants them.
    """

    _known: dict[object, tuple[object, Ranked]] = field(default_factory=dict)

    def rank(self, path: str, kernel: Kernel, options: Options) -> Ranked:
        """Return what is to be said of a kernel; with plans where they are known already.

        Raises
        ------
        SourceProblem, MachineError, Overtaken
            As the engine does.
        """
        from costdb.machines import load_machine

        context = kernel.context
        first, last = context.whole
        text = context.lines[first - 1 : last]
        read = replace(
            kernel,
            general=None,
            kinds=tuple,
            context=replace(context, source="", identifiers=frozenset()),
        )
        rests_on = read, text, replace(options, plans=True), load_machine(options.machine or "")
        # a function that was seen with several signatures is several kernels
        name = path, kernel.name, tuple(array.dtype for array in kernel.arrays.values())
        for plans in (True, options.plans):
            before, found = self._known.get((name, plans), (None, None))
            if found is not None and before == rests_on:
                return found
        found = engine.rank_kernel(path, kernel, options)
        key = name, options.plans or not found.later
        self._known.pop(key, None)
        self._known[key] = rests_on, found
        if len(self._known) > MOST_KERNELS:
            del self._known[next(iter(self._known))]
        return found
