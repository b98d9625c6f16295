"""Reductions with work, tests and other calls between them, which could be one all the same.

What an earlier one brings is followed from name to name through the statements behind it. A later
one that takes nothing of that can have what it takes computed before both.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from itertools import takewhile

from advisor.finding import MODULE
from advisor.ir.spmd.payloads import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Call, Communicate, Op, Visit, walk
from advisor.source import Span
from costdb.expr import Expr, num
from costdb.records import dataclass, replace
from transforms.kit.memory import new_array, payload_of
from transforms.kit.names import bound_names, loaded_names, words
from transforms.kit.programs import collective, offer, shortened
from transforms.kit.ranks import on_all_ranks, same_communicator
from transforms.kit.rewrite import span_of, tree_of

_REDUCTIONS = frozenset({Op.REDUCE, Op.ALLREDUCE})
_Talking = tuple[Visit, list[Visit]]


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A statement that makes a reduction, itself or by a function that it calls."""

    node: ast.stmt
    visit: Visit
    step: Communicate
    text: str

    @property
    def results(self) -> frozenset[str]:
        """Return the names of what it brings."""
        if isinstance(self.node, ast.Expr) and self.step.receive is not None:
            return words(self.step.receive.text.partition("[")[0])
        return bound_names([self.node])


def reductions_apart(
    program: Program, function: SpmdFunction, told: Collection[Span]
) -> Iterator[ProgramProposal]:
    """Yield one reduction for several, unless it is `told` that they are one."""
    talking = _talking(function)
    if len(talking) < 2:
        return
    tree, lines = tree_of(program.context.source), program.context.lines
    nodes = (one for one in ast.walk(tree) if isinstance(one, ast.stmt))
    within = [one for one in nodes if function.whole.contains(span_of(one, lines))]
    suites = [list(getattr(one, part, ())) for one in within for part in ("body", "orelse")]
    if function.name == MODULE:
        suites.append(tree.body)
    for suite in suites:
        taken: set[ast.stmt] = set()
        for at, node in enumerate(suite):
            first = _reduction(program, talking, node)
            if first is None or node in taken:
                continue
            group = [first, *_independent(program, talking, first, suite[at + 1 :])]
            taken |= {one.node for one in group}
            apart = [one for one in group if one.step.span not in told]
            apart += [one for one in group if one not in apart][:1]
            if len(apart) > 1 and on_all_ranks(function.visits(), first.visit):
                yield _at_once(function, apart)


def _talking(function: SpmdFunction) -> list[_Talking]:
    """Return the calls of a function that communicate, or whose functions do, with what they do."""
    found: list[_Talking] = []
    for visit in function.visits():
        if isinstance(visit.step, Call | Communicate):
            inside = list(walk((visit.step,), into_calls=True))
            if any(isinstance(one.step, Communicate) for one in inside):
                found.append((visit, inside))
    return found


def _reduction(program: Program, talking: list[_Talking], node: ast.stmt) -> _Reduction | None:
    """Return the reduction that a statement makes, if that is all that it sends."""
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
        return None
    place = span_of(node, program.context.lines)
    talks = [
        (visit, one)
        for visit, inside in talking
        if place.contains(visit.step.span)
        for one in inside
        if isinstance(one.step, Communicate)
    ]
    if len(talks) != 1:
        return None
    ((visit, inner),) = talks
    step = inner.step
    if inner.loops or inner.branches or not isinstance(step, Communicate) or not step.blocking:
        return None
    if step.op not in _REDUCTIONS or step.operation is None:
        return None
    text = program.context.text(visit.step.span) if isinstance(visit.step, Call) else ""
    return _Reduction(node, visit, step, text or (step.send.text if step.send else step.method))


def _independent(
    program: Program, talking: list[_Talking], first: _Reduction, nodes: list[ast.stmt]
) -> Iterator[_Reduction]:
    """Yield later reductions of the same kind that take nothing of what the first ones bring."""
    brought = first.results
    for node in takewhile(lambda one: not isinstance(one, ast.For | ast.While), nodes):
        asks = bool(loaded_names([node]) & brought)
        other = None if asks else _reduction(program, talking, node)
        if other is not None and _is_alike(first.step, other.step):
            yield other
            brought |= other.results
        elif asks:
            brought |= bound_names([node])


def _is_alike(one: Communicate, other: Communicate) -> bool:
    return (
        (one.op, one.operation, one.root) == (other.op, other.operation, other.root)
        and same_communicator(one.communicator, other.communicator)
        and not (one.in_place or other.in_place)
    )


def _at_once(function: SpmdFunction, group: list[_Reduction]) -> ProgramProposal:
    steps = [one.step for one in group]
    count = num(0)
    for step in steps:
        count = count + _elements(step.send or step.receive)
    memory = payload_of(new_array("reduced", "float64", (count,), steps[0].span), steps[0].span)
    call = replace(collective(steps[0], steps[0].op, memory, memory), pickled=False)
    texts = [f"`{shortened(one.text)}`" for one in group]
    return offer(
        function,
        group[0].visit,
        group[0].visit.step.span,
        f"reduce {', '.join(texts[:-1])} and {texts[-1]} at once, in one array",
        "a call that carries little is all start-up time, and several take as long as one",
        tuple(steps),
        (call,),
        "the later one takes nothing of what the earlier one brings, so that what it takes can be"
        " computed before both; sums may be collected in another order, and agree to rounding",
        "they carry numbers of several kinds, or there is work between them",
    )


def _elements(payload: Payload | None) -> Expr:
    """Return how many elements a reduction carries; one where nothing is known of it."""
    known = payload is not None and payload.kind is PayloadKind.ARRAY
    return elements(payload) if payload is not None and known else num(1)
