"""From source text to ranked findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from advisor.finding import (
    MODULE,
    NOTHING_SEEN,
    REPORTED_FROM,
    UNUSED_SUPPRESSION,
    Coverage,
    Failure,
    Finding,
    Ranked,
    Remark,
    Untold,
    sparing_others,
)
from advisor.frontend import prefilter
from advisor.frontend.prefilter import coverage_of, of_one_function, unsupported
from advisor.frontend.prefilter import needs_decoding as needs_decoding
from advisor.frontend.prefilter import needs_reading as needs_reading
from advisor.source import KEYED, properties_read, span_of, split_lines, with_keys
from costdb.records import dataclass, field, fields, is_dataclass, replace

if TYPE_CHECKING:
    from advisor.frontend.spmd.reader import Followed
    from advisor.ir.kernel import Kernel, Rule
    from advisor.ir.spmd.program import Program, ProgramTransform
    from advisor.observed import Seen, SeenMessages

PLAIN_GAIN = REPORTED_FROM
"""Predicted speed-up from which on a finding is reported."""


@dataclass(frozen=True)
class Options:
    """What the user chose.

    Attributes
    ----------
    machine : str or None
        Name of the profile that predictions are for.
    sizes : mapping of str to int or float
        They go over those that the source states.
    select, ignore : tuple of str
        Codes; no code selected means all.
    min_speedup : float or None
        Smaller predicted gains are not reported; None: `PLAIN_GAIN`.
    size_origins : mapping of str to str
        What bound the sizes, where it was not ``-D``.
    rule_min_speedup : mapping of str to float
        Goes over `min_speedup` for single rules, by code.
    observed : tuple of Seen
        What runs showed of the functions of the file; sizes go over those of the source.
    messages : tuple of SeenMessages
        Likewise of its messages.
    details : bool
        Whether findings tell what they rest on and where else they pay; an editor asks for that
        when somebody looks at one of them.
    plans : bool
        Whether to search for plans of several steps.
    everything : bool
        Whether to report also what saves too little to matter.
    local : bool
        Whether what was measured on this computer counts.
    sparing : bool
        Whether a bug of ours costs only the function that it comes up with.
    """

    machine: str | None
    sizes: Mapping[str, int | float]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    min_speedup: float | None
    size_origins: Mapping[str, str] = field(default_factory=dict)
    rule_min_speedup: Mapping[str, float] = field(default_factory=dict)
    observed: tuple[Seen, ...] = ()
    messages: tuple[SeenMessages, ...] = ()
    details: bool = True
    plans: bool = True
    everything: bool = False
    local: bool = True
    sparing: bool = False

    def reports(self, code: str, speedup: float) -> bool:
        """Return whether a rule's predicted gain is reported."""
        least = self.rule_min_speedup.get(code, self.min_speedup)
        return speedup >= (PLAIN_GAIN if least is None else least)


@dataclass(frozen=True)
class FileResult:
    """What is to be said of one file.

    Attributes
    ----------
    path, source : str
    findings, remarks : tuple
    names : frozenset of str
        Sizes and parameters of the file's kernels and programs, to which a value can be given.
    coverage : Coverage
        What was analysed, and what was not.
    failures : tuple of Failure
        Functions that a bug of ours left out.
    """

    path: str
    source: str
    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]
    names: frozenset[str] = frozenset()
    coverage: Coverage = NOTHING_SEEN
    failures: tuple[Failure, ...] = ()


def may_communicate(source: str, path: str) -> bool:
    """Return whether a file may hold an SPMD program, or a part of one; imports nothing heavy."""
    return prefilter.may_communicate(source) or prefilter.may_be_given_communicator(path, source)


def seen_functions(
    path: str, source: str, options: Options, file: Followed | None = None
) -> tuple[Seen, ...]:
    """Return what runs showed of a file's functions, of others what its own calls tell, and of
    those that it does not call what their text does.

    The `file` is followed for the calls.

    Raises
    ------
    SourceProblem
        The file does not parse, or a comment to the tool cannot be right.
    """
    compiled = prefilter.may_call_compiled(source) or prefilter.imports_mpi(source)
    if not compiled and not prefilter.is_plain(source):
        return options.observed
    from advisor.frontend.assumed import assumed, calls_itself
    from advisor.frontend.spmd.called import called, constants
    from advisor.frontend.spmd.reader import Followed

    shown = frozenset(seen.function for seen in options.observed)
    read = not unsupported(path, source)
    least = assumed(source) if read else ()
    # loops tell what they need; of what has none calls tell
    if not compiled and not least and not (read and calls_itself(source)):
        return options.observed
    cores = _cores(options.machine) if options.machine else None
    file = file or Followed(path, source)
    found = called(path, source, options.sizes, options.size_origins, file, cores)
    known_arrays = constants(file)
    least = tuple(seen.knowing(known_arrays) for seen in least)
    # an MPI program is followed with what it sends: of its functions that tells enough
    text = {} if prefilter.imports_mpi(source) else {seen.function: seen for seen in least}
    found = tuple(seen.assuming(text.get(seen.function)) for seen in found)
    told = (*options.observed, *(seen for seen in found if seen.function not in shown))
    worth = shown | text.keys()
    told = tuple(one for one in told if one.arrays or one.function in worth)
    known = {seen.function for seen in told}
    if prefilter.imports_mpi(source):
        # what it does at its module level is read with what it sends
        known.add(MODULE)
    return (*told, *(seen for seen in least if seen.function not in known))


def _cores(machine: str) -> int | None:
    """Return how many cores a machine has, two at least; None where nobody knows."""
    from costdb.machines import load_machine

    cores = load_machine(machine).quantity("hardware", "cores")
    return None if cores is None or cores.value < 2 else int(cores.value)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What a file says, whichever machine it is for.

    Attributes
    ----------
    path, source : str
    kernels : tuple of Kernel
    program : Program or None
    failures : tuple of Failure
        Functions that could not be read for a bug of ours.
    """

    path: str
    source: str
    kernels: tuple[Kernel, ...]
    program: Program | None
    failures: tuple[Failure, ...] = ()


def read_file(path: str, source: str, options: Options) -> ReadFile:
    """Return what a file says; of the options, sizes and what runs showed count, and the rules.

    Raises
    ------
    SourceProblem
        The file does not parse, or an annotation cannot be right.
    """
    # after the prefilter: LibCST and the models cost more than reading a file without kernels
    from advisor.frontend.kernels import read_kernels

    file = followed_file(path, source)
    observed = seen_functions(path, source, options, file)
    failures: list[Failure] = []
    kernels = read_kernels(path, source, observed, failures if options.sparing else None)
    program = _program_in(path, source, options, file)
    return ReadFile(path, source, kernels, program, tuple(failures))


def check_source(
    path: str, source: str, options: Options, rank: RankKernel | None = None
) -> FileResult:
    """Return the findings of one file, what saves most first.

    Parameters
    ----------
    path, source : str
    options : Options
    rank : callable or None
        What is to be said of a kernel, where some is known already.

    Raises
    ------
    SourceProblem
        The file does not parse, an annotation cannot be right, or a size has no value.
    MachineError
        The machine is unknown or its profile is wrong.
    """
    if not options.observed and not needs_reading(source, path):
        return FileResult(path, source, (), (), coverage=coverage_of(path, source))
    from advisor.frontend.trees import deep_nesting_refused

    with deep_nesting_refused(path):
        return check_read(read_file(path, source, options), options, rank or rank_kernel)


def check_read(read: ReadFile, options: Options, rank: RankKernel) -> FileResult:
    """Return the findings of a file that was read; see :func:`check_source`."""
    path, source, kernels = read.path, read.source, read.kernels
    failures = [*read.failures]
    rank = _sparing(rank, failures) if options.sparing else rank
    ranked = rank_kernels(path, (one for one in kernels if not one.alone), options, rank)
    loops: dict[int, tuple[Finding, ...]] = {}
    inner: set[int] = set()
    # inner loops first: where one tells of something, what is around it need not
    for one in sorted((one for one in kernels if one.alone), key=lambda one: len(one.lines)):
        within = [f for f in ranked.findings if f.span.start_line in one.lines]
        if all(finding.share is None for finding in within):
            # of what a function as a whole tells only a part of the time is known
            own = {*one.lines} - inner
            ranks = rank_kernels(path, (one,), options, rank).findings
            found = tuple(finding for finding in ranks if finding.span.start_line in own)
            if found or not within:
                loops[one.span.start_line] = found
            if found:
                inner |= own
                kept = tuple(f for f in ranked.findings if f not in within)
                ranked = replace(ranked, findings=kept)
    if read.program is not None:
        ranked = ranked.and_also(rank_program(read.program, options, loops))
    else:
        alone = tuple(one for found in loops.values() for one in found)
        ranked = replace(ranked, findings=(*ranked.findings, *alone))
    ranked = replace(ranked, findings=(*ranked.findings, *repeated(read, ranked, options)))
    told = {finding.kernel for finding in ranked.findings}
    from advisor.ranking.told import by_change

    everything, sends = options.everything, may_communicate(source, path)
    shown = by_change(ranked.findings, kernels, source, sends=sends, everything=everything)
    others = (Untold(one.code, one.span) for one in ranked.findings)
    ranked = replace(ranked, findings=shown, untold=(*ranked.untold, *others))
    gaps = [part.line for part in ranked.coverage.not_understood]
    left = {one.name for one in kernels if any(line in one.lines for line in gaps)}
    fine = tuple(name for name in ranked.coverage.fine if name not in told | left)
    ranked = replace(ranked, coverage=replace(ranked.coverage, fine=fine))
    if not prefilter.is_asked(source, path):
        ran = {one.function.partition(".")[0] for one in options.observed if one.arrays}
        called = {one.function for one in options.observed}
        named = {one.name.partition(".")[0] for one in kernels}
        unseen = coverage_of(path, source, ran | told | named, called)
        ranked = replace(ranked, coverage=ranked.coverage.and_also(unseen))
    left_out = tuple(dict.fromkeys(one.name for one in failures))
    ranked = replace(ranked, coverage=ranked.coverage.and_also(Coverage(incomplete=left_out)))
    result = replace(tell(path, ranked, source, options), failures=tuple(failures))
    written: FileResult = as_written(result, source)
    return written


def _sparing(rank: RankKernel, failures: list[Failure]) -> RankKernel:
    """Return `rank` as it is where a bug of ours costs only one kernel."""
    from costdb.machines import MachineError

    def ranked(path: str, kernel: Kernel, options: Options) -> Ranked:
        with sparing_others(kernel.name, kernel.span.start_line, failures, MachineError):
            return rank(path, kernel, options)
        return Ranked()

    return ranked


def as_written(told: Any, source: str) -> Any:
    """Return what is told of a source with keys in brackets, as it has them."""
    return _as_written(told) if KEYED.search(source) or properties_read(source) else told


def _as_written(told: Any) -> Any:
    if type(told) is str:  # what is one of several words stays that
        return with_keys(told)
    if isinstance(told, tuple):
        return tuple(map(_as_written, told))
    if not is_dataclass(told) or isinstance(told, type):
        return told
    parts = {one.name: getattr(told, one.name) for one in fields(told)}
    changed = {name: _as_written(part) for name, part in parts.items()}
    return told if changed == parts else replace(told, **changed)


def repeated(read: ReadFile, others: Ranked, options: Options) -> Iterator[Finding]:
    """Yield findings without a price, where others tell nothing of these lines.

    About what calls, or loops, compute again, and about what loops do for one after another.
    """
    from advisor.ranking.told import AGAIN, GROWN, RAISING, TELLING

    rules = {code: _rules(code, options) for code in {*TELLING.values()}}
    if not any(rules.values()):
        return
    from advisor.ir.one_by_one import one_by_one
    from advisor.ir.same_calls import same_in_calls
    from advisor.ranking.findings import finding_of_one, finding_of_repeated
    from costdb.machines import load_machine

    about = read.path, read.source, load_machine(options.machine or "")
    told = {f.span.start_line for f in others.findings if f.code == AGAIN}
    gaps = {part.line for part in others.coverage.not_understood}
    priced = {place for one in read.kernels for place, _ in one.context.written}
    lines = split_lines(read.source)
    # who receives all at once has nothing to join
    sending = {one.code for one in _program_rules(options)} if read.program is not None else set()
    for again, one in product(rules[AGAIN], same_in_calls(read.source)):
        own = {part.lineno for part in one.found}
        values = {span_of(getattr(part, "value", part), lines) for part in one.found}
        known = one.own and values <= priced and gaps.isdisjoint((one.line, *own))
        if told.isdisjoint(own) and not known:
            yield finding_of_repeated(*about, again, one)
    for call in one_by_one(read.source):
        loop, code = range(call.loop.lineno, (call.loop.end_lineno or 0) + 1), TELLING[call.kind]
        same = {code} if code == AGAIN else RAISING | {code}
        same |= sending if code == GROWN else set()
        # where a loop that grows an array is read, its price tells enough
        read_whole = code == GROWN and gaps.isdisjoint(loop)
        if read_whole and any(call.place.lineno in one.lines for one in read.kernels):
            continue
        if not any(f.code in same and f.span.start_line in loop for f in others.findings):
            for rule in rules[code]:
                yield finding_of_one(*about, rule, call)


def _rules(code: str, options: Options) -> list[Rule]:
    """Return the rule of a code; none where nobody wants it."""
    from advisor.transform_registry import transforms

    return [one for one in transforms() if one.code == code and _is_wanted(code, options)]


def followed_file(path: str, source: str) -> Followed | None:
    """Return a file that will be followed, as an SPMD program is or for what its calls tell."""
    tells = prefilter.may_call_compiled(source) or prefilter.is_plain(source)
    if not may_communicate(source, path) and not tells:
        return None
    from advisor.frontend.spmd.reader import Followed

    return Followed(path, source)


def _program_in(path: str, source: str, options: Options, file: Followed | None) -> Program | None:
    """Return the SPMD program in a file, should there be one that a rule may look at."""
    if not may_communicate(source, path) or not _program_rules(options):
        return None
    from advisor.frontend.spmd.reader import read_program

    return read_program(path, source, file)


def _program_rules(options: Options) -> tuple[ProgramTransform, ...]:
    from advisor.transform_registry import program_transforms

    return tuple(t for t in program_transforms() if _is_wanted(t.code, options))


def rank_program(
    program: Program, options: Options, loops: Mapping[int, tuple[Finding, ...]]
) -> Ranked:
    """Return what is to be said of an SPMD program.

    Findings about loops that were read alone, by their lines, are weighed as parts of it.

    Raises
    ------
    MachineError
        The machine is unknown or its profile is wrong.
    """
    from advisor.ranking import programs
    from costdb.machines import load_machine

    program = programs.as_observed(program, options.messages)
    sizes = programs.bind_program(program, options.sizes, options.size_origins)
    return programs.rank_program(
        program,
        load_machine(options.machine or ""),
        sizes,
        _program_rules(options),
        options.reports,
        details=options.details,
        loops=loops,
    )


RankKernel = Callable[[str, "Kernel", Options], Ranked]
"""Path, kernel and options to what is to be said; raises as :func:`rank_kernel` does."""


def rank_kernels(
    path: str, kernels: Iterable[Kernel], options: Options, rank: RankKernel
) -> Ranked:
    """Return what is to be said of kernels, one after another."""
    functions: dict[object, Ranked] = {}
    for kernel in kernels:
        found = rank(path, kernel, options)
        known = functions.get(kernel.span)
        functions[kernel.span] = found if known is None else known.and_also(found)
    each = (
        replace(one, coverage=of_one_function(one.coverage, told=bool(one.findings)))
        for one in functions.values()
    )
    told = reduce(Ranked.and_also, each, Ranked())
    return replace(told, findings=_once(told.findings), remarks=tuple(dict.fromkeys(told.remarks)))


def rank_kernel(path: str, kernel: Kernel, options: Options) -> Ranked:
    """Return what is to be said of a kernel.

    Raises
    ------
    SourceProblem
        When a size has no value.
    MachineError
        The machine is unknown or its profile is wrong.
    """
    from advisor.ranking.compare import checked_sizes
    from advisor.ranking.rank import rank
    from advisor.transform_registry import transforms
    from costdb.machines import load_machine

    machine = load_machine(options.machine or "")
    sizes = checked_sizes(path, kernel, options.sizes, options.size_origins)
    ranked = rank(
        path,
        kernel,
        machine,
        sizes,
        tuple(t for t in transforms() if _is_wanted(t.code, options)),
        options.reports,
        details=options.details,
        plans=options.plans,
    )
    told = kernel.asked or bool(ranked.findings)
    context = kernel.context
    of_program = not (kernel.asked or context.decorators) and prefilter.imports_mpi(context.source)
    return replace(
        ranked,
        remarks=ranked.remarks if told else (),
        coverage=_of_loops(ranked.coverage) if of_program else ranked.coverage,
    )


def _of_loops(coverage: Coverage) -> Coverage:
    """Return the coverage of a function of a program that sends: its gaps are told of that."""
    gaps = coverage.not_understood or coverage.unpriced or coverage.incomplete
    return NOTHING_SEEN if gaps else coverage


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return of findings about one place the greatest gain.

    A function that was seen with several signatures is read as several kernels.
    """
    best: dict[object, Finding] = {}
    for finding in findings:
        key = (finding.code, finding.span, finding.fingerprint)
        known = best.get(key)
        if known is None or finding.speedup > known.speedup:
            best[key] = finding
    return tuple(best.values())


def tell(path: str, ranked: Ranked, source: str, options: Options) -> FileResult:
    """Return a file's findings without those that its comments suppress, what saves most first.

    Raises
    ------
    SourceProblem
        For a suppression that cannot be read, or lacks its start or end.
    """
    from advisor.evidence import with_evidence
    from advisor.frontend.comments import read_comments
    from advisor.frontend.directives import CommentError, marks_of_nothing
    from advisor.suppress import apply_suppressions

    try:
        directives = read_comments(source)
    except CommentError as error:
        raise error.in_file(path) from error
    findings = with_evidence(ranked.findings) if options.local else ranked.findings
    shown = [f for f in findings if options.everything or not f.is_small]
    small = (Untold(f.code, f.span) for f in findings if f not in shown)
    kept, unused = apply_suppressions(
        path,
        source,
        directives,
        _one_for_an_edit(shown),
        lambda code: _is_wanted(code, options),
        (*ranked.untold, *small),
        _codes_by_word,
    )
    ordered = sorted(kept, key=lambda finding: finding.order)
    idle = marks_of_nothing(path, source, directives)
    remarks = (*ranked.remarks, *idle, *unused)
    return FileResult(
        path,
        source,
        tuple(ordered),
        remarks,
        ranked.names,
        replace(ranked.coverage, unsupported=unsupported(path, source)),
    )


def _one_for_an_edit(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return of findings that would edit the same the one that saves most."""
    best: dict[object, Finding] = {}
    for finding in sorted(findings, key=lambda finding: finding.order):
        edits = finding.fix.edits if finding.fix is not None else ()
        best.setdefault(edits or (finding.fingerprint, finding.span), finding)
    return tuple(best.values())


def _codes_by_word() -> Mapping[str, str]:
    """Return the codes of rules, by code and by name."""
    from advisor.transform_registry import rules

    known = {word: rule.code for rule in rules() for word in (rule.code, rule.name)}
    return {**known, UNUSED_SUPPRESSION: UNUSED_SUPPRESSION}


def _is_wanted(code: str, options: Options) -> bool:
    return (not options.select or code in options.select) and code not in options.ignore
