"""What a finding is worth to who runs the file: its class, the time it saves, and of what.

A speed-up of a part says little (Amdahl): what is saved is told, with its share of the kernel or
program. A kernel that is annotated with a distribution is priced as its ranks, and run as one
process: an edit is offered only if it does not slow that process down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from advisor.analysis.lower import Unpriced
from advisor.distribution import MeshSpec, NotDistributed
from advisor.finding import ONE_PROCESS, Applicability, Finding, Fix, Verdict
from advisor.ir.kernel import Kernel, Proposal, Transform, at_sizes, once, proposals_of
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    ScalarBind,
    Scatter,
    Statement,
    Store,
    Unrolled,
    mentioned,
    values_of,
    walk,
    within,
)
from advisor.ir.values import Scalar, parts_of, reads
from advisor.numpy_table import PYTHON_COMPLEX, PYTHON_FLOAT, PYTHON_INTEGER
from advisor.ranking.compare import cost_at, time_s
from advisor.source import Edit, Span
from advisor.transform_registry import transforms
from costdb.evaluate import Missing
from costdb.expr import Expr, ExprError, evaluate, free_symbols
from costdb.machines import Machine
from costdb.records import DOTTED_NAME, dataclass, replace

MORE_STATEMENTS = 2.0
"""From this many times the array statements on, Python is taken to be slower by them."""

Sizes = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Whole:
    """What a finding's place is a part of.

    Attributes
    ----------
    time_s : float or None
        The known part of its time; None where it has no price.
    complete : bool
        Whether that is all of it.
    times : float or None
        How often the place runs in it; None where nobody knows.
    priced_as : str
        Whose time it is.
    """

    time_s: float | None
    complete: bool
    times: float | None
    priced_as: str


def weighed(finding: Finding, whole: Whole, *, plan: bool = False) -> Finding:
    """Return a finding with its class, what it saves, and of what.

    A share of what is known in part only is told where it is too small to matter even so.

    Parameters
    ----------
    finding : Finding
    whole : Whole
    plan : bool
        Whether it changes a distribution that nothing in the file executes.
    """
    prediction = finding.prediction
    share = saves_s = None
    if prediction is not None:
        saves_s = (prediction.before_s - prediction.after_s) * (whole.times or 1.0)
        if whole.time_s and whole.times is not None:
            part = min(saves_s / whole.time_s, 1.0)
            share = part if whole.complete else None
            if not whole.complete and replace(finding, share=part).is_small:
                share = part
    found = replace(finding, saves_s=saves_s, share=share, priced_as=whole.priced_as)
    verdict = Verdict.PLAN if plan else Verdict.GAIN if found.is_gain else Verdict.UNCERTAIN
    return replace(found, verdict=verdict)


def redistributes(kernel: Kernel, variant: Kernel) -> bool:
    """Return whether two kernels differ in how their arrays are said to be laid out.

    Annotations say so, and they are inert: such a change is a plan for a program that is not here.
    """
    return any(
        (array.spec.dims, array.spec.mesh, array.spec.order)
        != (other.spec.dims, other.spec.mesh, other.spec.order)
        for name, array in kernel.arrays.items()
        if (other := variant.arrays.get(name)) is not None
    )


def is_distributed(kernel: Kernel) -> bool:
    """Return whether some array of a kernel is spread over ranks."""
    return any(array.spec.mesh.axes for array in kernel.arrays.values())


def priced_as(machine: Machine, ranks: Expr, sizes: Sizes, *, distributed: bool) -> str:
    """Return whose time is predicted: that of ranks, or of the file as it runs by itself."""
    if not distributed:
        return f"{ONE_PROCESS} on {machine.name}"
    known = free_symbols(ranks) <= sizes.keys()
    count = f"{evaluate(ranks, sizes):g}" if known else "any number of"
    return f"as {count} {'rank' if count == '1' else 'ranks'} of {machine.name}"


@once
def as_one_process(kernel: Kernel) -> Kernel:
    """Return a kernel without its distributions, as Python runs it."""
    arrays = {}
    for name, array in kernel.arrays.items():
        dims, halo = (NotDistributed(),) * len(array.spec.dims), (0,) * len(array.spec.halo)
        spec = replace(array.spec, dims=dims, mesh=MeshSpec(), halo=halo)
        arrays[name] = replace(array, spec=spec)
    return replace(kernel, arrays=arrays)


def offered(
    finding: Finding, kernel: Kernel, variant: Kernel, machine: Machine, sizes: Sizes
) -> Finding:
    """Return a finding as a plan, its edit for the reader, where it slows one process down."""
    fix = finding.fix
    if fix is None or fix.applicability is Applicability.DISPLAY or not is_distributed(kernel):
        return finding
    if machine.section("arrays"):
        before, after = (_alone_s(one, machine, sizes) for one in (kernel, variant))
        slower, what = 1.0, "times as long"
    else:
        # it was measured with compiled programs, and does not say what Python takes for a statement
        before, after = (_statements(one, sizes) for one in (kernel, variant))
        slower, what = MORE_STATEMENTS, "times as many array statements"
    if not before or after is None or after <= slower * before:
        return finding
    argument = (
        f"{fix.legality}; not applied: run as one process, this file would take"
        f" {after / before:.3g} {what}"
    )
    shown = Fix(Applicability.DISPLAY, argument, fix.edits)
    return replace(finding, fix=shown, verdict=Verdict.PLAN)


def _alone_s(kernel: Kernel, machine: Machine, sizes: Sizes) -> float | None:
    try:
        costed = cost_at(as_one_process(kernel), machine, sizes)
        return None if isinstance(costed, Missing) else time_s(costed, sizes)
    except (Unpriced, ExprError):
        return None


def _statements(kernel: Kernel, sizes: Sizes) -> float | None:
    try:
        return _executed(at_sizes(kernel, sizes).body, {})
    except ExprError:
        return None


def _executed(body: Iterable[Statement], inside: Sizes) -> float:
    """Return how many statements run, with each loop's variable taken at its middle."""
    total = 0.0
    for statement in body:
        match statement:
            case Loop():
                low, high = (float(evaluate(e, inside)) for e in (statement.low, statement.high))
                middle = {**inside, statement.variable: int(low + high) // 2}
                trips = max(0.0, (high - low) / statement.step)
                total += trips * _executed(statement.body, middle)
            case Choice():
                total += _executed((*statement.then, *statement.orelse), inside)
            case Unrolled():
                total += _executed(statement.body, inside)
            case _:
                total += 1
    return total


# Whether an edit holds for every argument, not only for those that annotations and runs speak of.
#
# Annotated sizes are usual values. So a kernel is read again with an extent of its own for every
# dimension of every array that it is given: what a rule then offers, with its argument and its
# text, holds whatever the shapes are. Element types that only comments and runs tell are tried in
# turn. Every kind of call that a run showed has to be offered the same text. What else is given
# with them, arrays of a subclass or of other dimensions, and numbers of other types, no run
# can tell of other calls: an edit that rests on it says so.

ELEMENT_TYPES = ("bool", "uint8", "int64", "float32", "float64", "complex128")
"""One of each kind, and one that wraps around or rounds early."""

_NUMBERS = {
    **{"int64": "int of 64 bits", "float64": "float", "complex128": "complex number"},
    **{PYTHON_INTEGER: "int of 64 bits", PYTHON_FLOAT: "float", PYTHON_COMPLEX: "complex number"},
}
_WORD = re.compile(DOTTED_NAME)
_OTHER_AXES = re.compile(r"(, :)+\]")

IF_AS = "if {} are as {}"
IF_NOT_EMPTY = "if no loop of it is empty"


def held(finding: Finding, rule: Transform, kernel: Kernel, proposal: Proposal) -> Finding:
    """Return a finding whose fix is safe only if it is for every argument.

    Parameters
    ----------
    finding : Finding
    rule : Transform
    kernel : Kernel
        As it was read for this finding.
    proposal : Proposal
        What the finding proposes.
    """
    fix = finding.fix
    inert = proposal.variant.body == kernel.body
    if fix is None or fix.applicability is Applicability.DISPLAY or inert:
        return finding
    own = _for_any(rule, kernel, proposal)
    shared, doubtful = _overlaps(kernel, proposal.variant)
    if shared:
        return _only_shown(finding, own, f"{shared} memory in common, and must not")
    if lists := kernel.given_as_lists & _changed(kernel, proposal.variant):
        why = f"{' and '.join(f'`{one}`' for one in sorted(lists))} may be a list"
        return _only_shown(finding, own, why)
    # what only moves does so whatever else is assumed
    moves = kernel.assumed and (getattr(rule, "moves", False) or proposal.of_any_rank)
    for other in () if moves else kernel.kinds():
        alike = (
            _for_any(by, other, one)
            # where elements are rows, another rule proposes the same
            for by in (rule, *transforms())
            for one in proposals_of(other, by.propose)
            if one.span == proposal.span
            if one.legality.applicability is not Applicability.DISPLAY
        )
        same = next((one for one in alike if _written(one) == _written(own)), None)
        told = kernel.assumed and IF_NOT_EMPTY in own.legality
        if same is None or (IF_NOT_EMPTY in same.legality and not told and _may_be_empty(other)):
            source = "which nothing rules out" if kernel.assumed else "as in a run"
            why = f"calls with {_difference(kernel, other)}, {source}, do not allow it"
            return _only_shown(finding, own, why)
        other_argument = same.legality not in own.legality and not kernel.assumed
        if same.applicability is not Applicability.SAFE and other_argument:
            argument = (
                f"{own.legality}; for calls with {_difference(kernel, other)}: {same.legality}"
            )
            own = Fix(Applicability.UNSAFE, argument, own.edits)
    if doubtful and "overlap" not in own.legality:
        argument = f"{own.legality}, and if {doubtful} do not overlap in memory"
        own = Fix(Applicability.UNSAFE, argument, own.edits)
    return replace(finding, fix=own)


def _written(fix: Fix) -> Sequence[tuple[Span, str]]:
    """Return what a fix writes, without axes behind the others of which all is meant."""
    return [(one.span, _OTHER_AXES.sub("]", one.replacement)) for one in fix.edits]


def _only_shown(finding: Finding, fix: Fix, why: str) -> Finding:
    argument = f"not offered, as {why}; {fix.legality}"
    return replace(finding, fix=Fix(Applicability.DISPLAY, argument, fix.edits))


def _overlaps(kernel: Kernel, variant: Kernel) -> tuple[str, str]:
    """Return which names share what changed statements store, and how that is known; which may."""
    kept = set(map(id, variant.body))
    left = (one for one in kernel.body if id(one) not in kept)
    changed = tuple(one for one in left if one not in variant.body)
    stores = (one for one in walk(changed) if isinstance(one, Store | Scatter))
    # what has no name in the source has memory of its own
    stored = {one.array for one in stores if one.array[:1] != "<"}
    used = sorted(frozenset().union(*map(mentioned, changed)))
    same = set(map(id, walk(variant.body)))
    moved = [one for one in walk(changed) if id(one) not in same and not within(one)] or changed
    moving = frozenset().union(*map(mentioned, moved))
    shared = doubtful = ""
    for one, other in product(sorted(stored), used):
        renamed = bool(kernel.aliases & {one, other})
        if one != other and (renamed or kernel.arrays.keys() >= {one, other}):
            named = f"`{one}` and `{other}`"
            if {one, other} in kernel.overlaps or (renamed and kernel.overlaps):
                shared = shared or f"{named} had in a run"
            if other in moving and {one, other} in kernel.linked:
                shared = shared or f"{named} may have"
            doubtful = doubtful or named
    return shared, doubtful


def _for_any(rule: Transform, kernel: Kernel, proposal: Proposal) -> Fix:
    """Return the edits of a proposal as far as they hold for any argument of its kind of call."""
    source = "in the run" if kernel.shown else "declared"
    source = source if kernel.asked else "in the file's calls"
    source = "assumed" if kernel.assumed else source
    if_as_told = IF_AS.format("shapes and element types", source)
    conditions: list[str] = []
    found = _offered(rule, kernel, proposal, None)
    if found is None:
        found = _offered(rule, kernel, proposal, None, runs_through=True)
        conditions.append(IF_NOT_EMPTY)
    if found is None:
        found, conditions = _as_proposed(proposal), [if_as_told]
    applicability, argument, edits = found
    given = as_given(kernel, _changed(kernel, proposal.variant))
    if conditions != [if_as_told] and kernel.general is not None and kernel.types_are_usual:
        # each is another reading: where nobody asked only for what they would decide
        tried = kernel.asked or not (given or conditions or applicability is Applicability.UNSAFE)
        others = (
            _offered(rule, kernel, proposal, dtype, runs_through=bool(conditions))
            for dtype in (ELEMENT_TYPES if tried else ())
        )
        differ = (one is None or (one[0], one[2]) != (applicability, edits) for one in others)
        if not tried or any(differ):
            conditions.append(IF_AS.format("element types", source))
    if given:
        conditions.append(f"if {given}")
    if not conditions:
        return Fix(applicability, argument, edits)
    return Fix(Applicability.UNSAFE, f"{argument}, {', and '.join(conditions)}", edits)


def as_given(kernel: Kernel, names: frozenset[str]) -> str:
    """Return what those of some names have to be that a kernel is given: nothing makes sure."""
    known = kernel.arrays.keys() | kernel.locals.keys()
    arrays = sorted(kernel.shown & names & known - kernel.numbers.keys())
    ranks = dict.fromkeys(f"{len(kernel.extents(name))}-d" for name in arrays)
    each = [f"{len(kernel.extents(name))}-d" for name in arrays]
    told = [f"{', '.join(arrays)} {_are(arrays, 'plain array')}"] if arrays else []
    told[:1] = [f"{one} ({', '.join(each if len(ranks) > 1 else ranks)})" for one in told]
    types: dict[str, list[str]] = {}
    for name in sorted(kernel.numbers.keys() & names):
        dtype = kernel.numbers[name]
        types.setdefault(_NUMBERS.get(dtype, dtype), []).append(name)
    told += (f"{', '.join(named)} {_are(named, kind)}" for kind, named in types.items())
    return ", ".join(told[:-1]) + " and " * (len(told) > 1) + "".join(told[-1:])


def _are(names: Sequence[str], kind: str) -> str:
    article = "an" if kind[0] in "aeio" else "a"
    return f"{'are each' if len(names) > 1 else 'is'} {article} {kind}"


def _changed(kernel: Kernel, variant: Kernel) -> frozenset[str]:
    """Return the arrays and numbers that statements depend on which a variant does not have.

    Not those that it has in another order.
    """
    kept = set(map(_accesses, walk(variant.body)))
    gone = (
        statement
        for statement in walk(kernel.body)
        if not isinstance(statement, Loop) and _accesses(statement) not in kept
    )
    found = frozenset[str]().union(*map(_used, gone))
    made = [one for one in walk(kernel.body) if isinstance(one, Bind | Store | ScalarBind)]
    for one in reversed(made):
        name = one.array if isinstance(one, Store) else one.name
        if name in found and (isinstance(one, Bind | ScalarBind) or name in kernel.locals):
            found |= _used(one)
    for name, value in kernel.context.computed:
        found |= free_symbols(value) if name in found else frozenset()
    return found


def _used(statement: Statement) -> frozenset[str]:
    """Return the names of all arrays and numbers that a statement uses or changes."""
    values = [value for one in walk((statement,)) for value in values_of(one)]
    choices = (one.condition for one in walk((statement,)) if isinstance(one, Choice))
    values += (one for one in choices if one is not None)
    parts = (part for one in values for part in parts_of(one))
    texts = (part.text for part in parts if isinstance(part, Scalar))
    return mentioned(statement).union(*map(_WORD.findall, texts))


def _accesses(statement: Statement) -> object:
    """Return what a statement uses and how, whatever its indices are called."""
    found = tuple(
        (read.array, *map(type, read.region))
        for value in values_of(statement)
        for read in reads(value)
    )
    done = tuple(
        (type(part), *(getattr(part, name, None) for name in ("operation", "function", "fused")))
        for value in values_of(statement)
        for part in parts_of(value)
    )
    return type(statement), statement.span, mentioned(statement), found, done


def _may_be_empty(kernel: Kernel) -> bool:
    """Return whether a loop has no iterations at the sizes of a kernel; an extent of 0 is none."""
    sizes = {name: binding.value for name, binding in kernel.sizes.items()}
    loops = [one for one in walk(kernel.body) if isinstance(one, Loop)]
    variables = {loop.variable for loop in loops}
    trips = [loop.high - loop.low for loop in loops]
    return any(
        not free_symbols(one) <= sizes.keys() or evaluate(one, sizes) <= 0
        for one in trips
        if not free_symbols(one) & variables
    )


def _difference(kernel: Kernel, other: Kernel) -> str:
    """Return in what the arguments of another kind of call differ."""
    for name, array in kernel.arrays.items():
        told = other.arrays.get(name)
        if told is None:
            return f"something else than an array as `{name}`"
        if told.dtype != array.dtype:
            return f"`{name}` of {told.dtype}"
        if len(told.extents) != len(array.extents):
            return f"`{name}` of {len(told.extents)} dimensions"
    return "arrays of other shapes"


_replaced = once(replace)
_Told = tuple[Applicability, str, tuple[Edit, ...]]


def _offered(
    rule: Transform,
    kernel: Kernel,
    proposal: Proposal,
    dtype: str | None,
    *,
    runs_through: bool = False,
) -> _Told | None:
    """Return what a rule offers at the same place, whatever the shapes; None where it does not."""
    if kernel.general is None:
        return _as_proposed(proposal)
    general = kernel.general(dtype)
    general = _replaced(general, runs_through=True) if runs_through else general
    for other in proposals_of(general, rule.propose):
        if (other.span, other.title) == (proposal.span, proposal.title):
            told = _as_proposed(other)
            if told[2] and told[0] is not Applicability.DISPLAY:
                return told
    return None


def _as_proposed(proposal: Proposal) -> _Told:
    legality = proposal.legality
    return legality.applicability, legality.argument, proposal.edits()
