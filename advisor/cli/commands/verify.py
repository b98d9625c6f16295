"""``advise verify``: runs kernels, programs and rewrites; holds predictions against the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Annotated

import typer

from advisor.build.text import NotBuiltError
from advisor.cli import options
from advisor.cli.common import (
    FINDINGS,
    JSON,
    NOTHING_TO_SAY,
    PAGES,
    TEXT,
    Bar,
    complain,
    names_in,
    parse_bindings,
    read_text,
    tell_unused,
    text_style,
    write_out,
    write_result,
    write_shown,
)
from advisor.cli.options import option
from advisor.cli.scope import python_files
from advisor.cli.subjects import kernels_in
from advisor.config.files import CommandError, choose_machine, wrong_use
from advisor.frontend.prefilter import may_hold_kernels
from advisor.ir.kernel import Kernel, symbols_of
from advisor.measure.pieces import (
    HERE,
    Effort,
    Found,
    Kept,
    NoPiece,
    Piece,
    left_out_of,
    sampled,
    ways_of,
)
from advisor.measure.predicted import Measurement, as_json, as_text, changes_between
from advisor.ranking.findings import calibration_of
from advisor.ranking.worth import as_one_process, is_distributed
from advisor.report.pages import of_verification
from advisor.report.style import json_text
from advisor.source import SourceProblem
from advisor.transform_registry import program_transforms, transforms
from advisor.verify import running
from advisor.verify.cases import ORIGINAL, Case, Variant, case_of, program_case
from advisor.verify.verdict import (
    Verdict,
    as_table,
    document_of,
    in_words,
    programs_in_words,
    programs_table,
)
from costdb.calibration.section import Bystanders
from costdb.expr import ExprError
from costdb.launch.processes import CannotRunError
from costdb.machines import Machine, default_machine, load_machine
from costdb.records import counted, dataclass, nearest, replace
from costdb.store.database import keep_result


def verify(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Annotated Python; folders with --all.")
    ],
    machine: options.Machine = None,
    kernel: options.Kernel = None,
    define: options.Arguments = None,
    repeat: Annotated[int, option("--repeat", "Launches of each variant.", min=1)] = 2,
    everything: Annotated[
        bool, option("--all", "Every kernel and program of every file in the folders.")
    ] = False,
    ranks: options.Ranks = None,
    output_format: options.TextJsonOrPage = TEXT,
    output: options.ResultFile = None,
) -> int:
    """RUN kernels, MPI programs and their rewrites; compare predicted with measured times."""
    given = parse_bindings(define or (), only_sizes=False)
    chosen = load_machine(choose_machine(machine))
    sources = {path: read_text(path) for path in _paths(files, everything)}
    _tell_unused(sources, given)
    if not chosen.may_be_here:
        complain(
            f"advise: times are of this machine, predictions of {chosen.name}: "
            "nothing of this is kept as evidence"
        )
    complain(f"advise: running the code of {', '.join(sources)}")
    others, effort = Bystanders(), running.Effort(launches=repeat)
    kernels = list(_cases(sources, kernel, given, chosen, everything=everything))
    groups = list(_ran(kernels, effort, chosen))
    if ranks is not None:
        groups += _ran(_built(sources, kernel, given, ranks, chosen), effort, chosen)
    rules = program_transforms()
    # a kernel that was asked for is no program
    found = (
        program_case(path, source, given, ranks or 2, chosen, rules)
        for path, source in sources.items()
        if kernel is None
    )
    programs = list(_ran([case for case in found if case is not None], effort, chosen))
    if not groups and not programs:
        raise wrong_use("there is no kernel to verify, nor a program that communicates")
    circumstances = {
        "machine": chosen.name,
        "calibration": calibration_of(chosen),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "others_busy_cores": others.busy_cores(),
    }
    document = document_of(groups, programs, circumstances)
    if chosen.may_be_here:
        keep_result(chosen.name, "verify", " ".join(files), document)
    told = in_words(groups) if groups else []
    of_programs = programs_in_words(programs) if programs else []
    if output_format == JSON:
        text = json_text(document, ascii_only=False)
    elif output_format in PAGES:
        text = of_verification(document, [*told, *of_programs], output_format)
    else:
        style = text_style(output)
        text = as_table(groups, style) if groups else ""
        text += "".join(f"{line}\n" for line in told)
        if programs:
            text += "\n" * bool(groups) + programs_table(programs, style)
            text += "".join(f"{line}\n" for line in of_programs)
    write_result(text, output)
    sound = all(one.sound for group in (*groups, *programs) for one in group)
    return NOTHING_TO_SAY if sound else FINDINGS


def _tell_unused(sources: Mapping[str, str], given: Mapping[str, int | float]) -> None:
    """Say which names of ``-D`` no file has, before anything runs with other sizes than meant."""
    if given:
        known = (names_in(path, text, arguments=True) for path, text in sources.items())
        tell_unused(given, frozenset[str]().union(*known))


def _paths(files: list[str], everything: bool) -> list[str]:
    if not everything:
        return files

    def refuse(error: CommandError) -> None:
        raise error

    return list(python_files(files, refuse))


def _cases(
    sources: Mapping[str, str],
    name: str | None,
    given: Mapping[str, int | float],
    machine: Machine,
    *,
    everything: bool,
) -> Iterator[Case]:
    """Yield the kernels to run; of `everything`, those whose sizes have values."""
    for path, source in sources.items():
        for kernel, sizes in kernels_in(path, source, name, given):
            try:
                yield case_of(path, source, kernel, sizes, machine, transforms())
            except ExprError as error:
                why = f"{path}: kernel `{kernel.name}`: {error}: pass -D NAME=VALUE"
                if not everything:
                    raise wrong_use(why) from error
                complain(f"advise: {why}; left out")


def _built(
    sources: Mapping[str, str],
    name: str | None,
    given: Mapping[str, int | float],
    ranks: int,
    machine: Machine,
) -> Iterator[Case]:
    """Yield what is built of kernels, as written and as rules would have it.

    What cannot be built is said, with line and reason.
    """
    for path, source in sources.items():
        for kernel, sizes in kernels_in(path, source, name, given):
            if not is_distributed(kernel):
                continue
            try:
                yield running.distributed_case(
                    path, source, kernel, sizes, machine, transforms(), ranks
                )
            except NotBuiltError as error:
                line = error.span.start_line if error.span else kernel.span.start_line
                complain(f"advise: {path}:{line}: `{kernel.name}` is not built: {error.why}")


def _ran(
    cases: Iterable[Case], effort: running.Effort, machine: Machine
) -> Iterator[list[Verdict]]:
    """Yield what came of each case, and keep it as evidence.

    Where there are no ranks to be had, none is run, which is said.
    """
    for case in cases:
        whose = f"{case.path}: {case.kernel}" if case.kernel else case.path
        on = f", on {case.ranks} ranks" if case.ranks > 1 else ""
        complain(f"advise: {whose}: {counted(len(case.variants), 'variant')}{on}")
        try:
            measured = running.measure(case, effort)
        except CannotRunError as error:
            complain(f"advise: {error}; what runs on ranks is left out")
            return
        group = [Verdict(case, *pair) for pair in zip(case.variants, measured, strict=True)]
        if machine.may_be_here:
            _keep(group, machine)
        yield group


def _keep(group: Sequence[Verdict], machine: Machine) -> None:
    """Store what was measured as evidence, so that later predictions can refer to it."""
    case, original = group[0].case, group[0].measured
    ran = [(one.variant, one.measured) for one in group[1:] if not one.measured.failure]
    found = (
        case.compared(variant, (after.beside or original).times_s, after.times_s, after.equal)
        for variant, after in ran
        if not original.failure and after.equal is not None
    )
    running.keep(machine, case.ranks, filter(None, found))


# --- measure --------------------------------------------------------------------------------------
# ``advise measure``: times programs in short stretches on made-up arrays, running none of them.


RANKS = 2
STRETCHES = "in stretches, on made-up arrays"
BUDGET_S = 60.0
_FIRST, _STEP, _LAST = 64, 4, 2**24
"""At which values of a size that has none a kernel is timed: so many times as large, each."""
_OF_BUDGET = 0.25
"""Which part of the budget the ways of a kernel may take at one of these values."""
_CLOSE = 1.3
"""How far apart values are at most between which the faster way changes."""


def measure(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of Python.")],
    kernel: options.Kernel = None,
    define: options.Arguments = None,
    ranks: options.Ranks = RANKS,
    budget: Annotated[float, option("--budget", "For each launch.", "SECONDS", min=0.1)] = BUDGET_S,
    again: Annotated[bool, option("--again", "Also what was measured before.")] = False,
    show: Annotated[bool, option("--show", "Print what would run, and run nothing.")] = False,
    output_format: options.TextOrJson = TEXT,
    output: options.ResultFile = None,
) -> None:
    """Time kernels, rewrites and scripts here in short stretches."""
    given = parse_bindings(define or (), only_sizes=False)
    ranks = ranks or RANKS
    groups = _groups(files, kernel, given, ranks)
    if not groups:
        found = (kernels_in(path, read_text(path), None, given) for path in files)
        known = [one.name for kernels in found for one, _ in kernels]
        raise wrong_use(f"there is no kernel `{kernel}`{nearest(str(kernel), known)}")
    if show:
        write_out("".join(text for group in groups for text in _shown(group)))
        return
    made = _measured(groups, Effort(budget_s=budget, ranks=ranks), again=again)
    write_shown(made, as_text, as_json, output_format, output)


def measure_kernels(files: Sequence[str], sizes: Mapping[str, int | float]) -> None:
    """Time kernels and programs with their rewrites, as far as that was not done before.

    What is found is kept as evidence; a file that cannot be read is left to who reads it next.
    """
    groups: list[_Group] = []
    for path in files:
        with suppress(CommandError, SourceProblem):
            groups += _groups([path], None, sizes, RANKS)
    # of a script nobody asked how long it takes
    compared = [group for group in groups if group.case.kernel or group.case.ranks > 1]
    _measured(compared, Effort(BUDGET_S), again=False)


@dataclass(frozen=True, slots=True)
class _Group:
    """A kernel, a program or a file with its rewrites.

    Where `at` is not None, a size of the kernel has no value, `free` is its name, and `at` returns
    the group where it has one.
    """

    case: Case
    ways: list[Found]
    free: str = ""
    at: Callable[[int], _Group] | None = None


def _groups(
    files: Sequence[str], kernel: str | None, given: Mapping[str, int | float], ranks: int
) -> list[_Group]:
    """Return kernels, and files without any as a whole, with their rewrites."""
    machine = _calibrated()
    found: list[_Group] = []
    for path in files:
        text = read_text(path)
        kernels = list(_kernels(path, text, kernel, given, machine))
        found += kernels
        if (kernels and may_hold_kernels(text)) or kernel is not None:
            continue
        program = program_case(path, text, given, ranks, machine, program_transforms())
        if program is None:
            script = Variant("", ORIGINAL, text, True, None, None)
            program = Case(path, "", {}, (), (script,))
        found.append(_Group(program, list(ways_of(program, given))))
    return found


def _shown(group: _Group) -> Iterator[str]:
    """Yield what would run, below a line that says of what it is."""
    for way, one in zip(group.case.variants, group.ways, strict=True):
        head = f"# {group.case.path} {group.case.kernel} {way.code}".rstrip()
        if isinstance(one, NoPiece):
            yield f"{head}\n# not sampled: line {one.line}: {one.why}\n\n"
        else:
            yield f"{head}\n{one[0].text}\n"


def _measured(groups: Sequence[_Group], effort: Effort, *, again: bool) -> list[Measurement]:
    machine = _calibrated()
    name = HERE if machine is None else machine.name
    bar = Bar()

    def measured(group: _Group, share: float) -> Measurement:
        case, ways = group.case, group.ways
        at = f" {group.free} = {case.sizes[group.free]}" if group.free else ""

        def told(number: int) -> None:
            code = case.variants[number].code
            bar.show(f"{case.path} {case.kernel} {code}".rstrip() + at, share)

        pieces = Kept(name, effort.ranks, again=again)
        found = sampled(ways, effort, pieces.known, told)
        bar.clear()
        pieces.keep(ways, found, case.sizes)
        made = Measurement(case, tuple(ways), tuple(found), group.free)
        if machine is not None:
            _keep_evidence(made, machine)
        return made

    made: list[Measurement] = []
    for number, group in enumerate(groups):
        share, at = number / len(groups), group.at
        if at is None:
            made.append(measured(group, share))
        else:
            made += _over_sizes(at, partial(measured, share=share), effort.budget_s)
    return made


def _over_sizes(
    at: Callable[[int], _Group], measured: Callable[[_Group], Measurement], budget_s: float
) -> list[Measurement]:
    """Measure at values far apart, as far as the budget goes, then where the faster way changes."""
    made: dict[int, Measurement] = {}
    value, growth = _FIRST, float(_STEP)
    while value <= _LAST:
        made[value] = measured(at(value))
        spent_s = made[value].seconds
        if spent_s is None:
            # too large for the budget, or for memory
            if len(made) > 1:
                del made[value]
            break
        before = made.get(value // _STEP)
        if before is not None and before.seconds:
            growth = max(growth, spent_s / before.seconds)
        if spent_s * growth > _OF_BUDGET * budget_s:
            break
        value *= _STEP
    while True:
        order = sorted(made)
        middles = [
            round((one * other) ** 0.5)
            for one, other in pairwise(order)
            if other > one * _CLOSE and changes_between(made[one], made[other])
        ]
        if not middles:
            return [made[value] for value in order]
        for value in middles:
            made[value] = measured(at(value))


def _calibrated() -> Machine | None:
    """Return this machine, if it is calibrated; without, there are no predictions to hold it to."""
    found = load_machine(default_machine())
    return found if found.may_be_here else None


def _kernels(
    path: str,
    text: str,
    name: str | None,
    given: Mapping[str, int | float],
    machine: Machine | None,
) -> Iterator[_Group]:
    """Yield the kernels of a file with their rewrites."""
    for kernel, sizes in kernels_in(path, text, name, given):
        free = sorted(symbols_of(as_one_process(kernel)) - sizes.keys())
        if len(free) > 1:
            *others, last = free
            why = f"{', '.join(others)} and {last} have no value"
            raise wrong_use(f"{path}: kernel `{kernel.name}`: {why}: pass -D for all but one")

        def group(
            value: int | None,
            kernel: Kernel = kernel,
            sizes: Mapping[str, int | float] = sizes,
            free: str = "".join(free),
        ) -> _Group:
            bound = sizes if value is None else {**sizes, free: value}
            case = case_of(path, text, kernel, bound, machine, transforms())
            return _Group(case, list(ways_of(case, {})), free)

        yield replace(group(_FIRST), at=group) if free else group(None)


def _keep_evidence(measured: Measurement, machine: Machine) -> None:
    """Store what rewrites were measured to gain, so that findings can refer to it."""
    (_, _, before), *others = measured.each
    if not others or not isinstance(before, Piece):
        return
    found = (
        measured.case.compared(way, before.times_s, after.times_s)
        for way, program, after in others
        # a speed-up of what is left of a kernel is none of the kernel
        if isinstance(after, Piece) and not left_out_of(program)
    )
    running.keep(machine, measured.case.ranks, filter(None, found), clock=STRETCHES)
