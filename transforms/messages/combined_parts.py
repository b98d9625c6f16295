"""What becomes of the parts that a collective brings to one rank, or to all: sums, joined arrays.

The root gathers and adds, and every rank gets the sum: that is `Allreduce`. In general:

=============== =================================== ==========================
brought by      what is made of the parts           goes back to all   stays
=============== =================================== ================== =======
`gather`        their sum                           `Allreduce`        `Reduce`
`gather`        one array, part after part          `Allgatherv`       `Gatherv`
`gather`        nothing                             `allgather`
`reduce`        anything                            `allreduce`
`allgather`     their sum                                              `Allreduce`
`allgather`     one array, part after part                             `Allgatherv`
=============== =================================== ================== =======
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.memory import View
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Op, Step, Visit
from advisor.source import Edit, Span
from costdb.records import replace
from transforms.kit.memory import (
    FLOATS,
    array_payload,
    may_share,
    payload_of,
    plain_array,
    same_memory,
)
from transforms.kit.names import (
    argument,
    is_simple,
    is_uniform,
    keywords,
)
from transforms.kit.programs import collective, offer, sent_text
from transforms.kit.ranks import on_all_ranks, same_communicator
from transforms.kit.rewrite import (
    in_place_of,
    line_of,
    span_of,
    stands_alone,
    starts_line,
    stretch,
    together,
)
from transforms.messages.buffers import Writer, as_buffers, told_first
from transforms.messages.gathered_parts import ROWS, SAME, SUM, Way, way_of

_ON_ALL = {Op.GATHER: Op.ALLGATHER, Op.REDUCE: Op.ALLREDUCE}


def combined_parts(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that brings what is made of the parts, not the parts."""
    yield from _sent_on(program, function)
    for visit, way in _ways(program, function):
        found = _instead(program, way)
        if found is not None:
            yield _proposal(program, function, visit, way, *found)


def _sent_on(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective on all ranks for one to the root, from where a broadcast follows."""
    for visit, step in function.operations():
        behind = visit.block[visit.position + 1 :]
        back = behind[0] if behind else None
        if step.op not in _ON_ALL or step.pickled or step.varying or not step.blocking:
            continue
        if not isinstance(back, Communicate) or back.op is not Op.BCAST or back.pickled:
            continue
        got, sent = plain_array(step.receive), plain_array(step.send)
        brought = plain_array(back.send)
        if got is None or sent is None or brought is None or back.root != step.root:
            continue
        alike = same_communicator(step.communicator, back.communicator) and back.blocking
        if not alike or not got.is_whole or not brought.is_whole or not same_memory(got, brought):
            continue
        if may_share(sent, got) or not on_all_ranks(function.visits(), visit):
            continue
        call = replace(
            collective(step, _ON_ALL[step.op], step.send, back.send), operation=step.operation
        )
        own, into = argument(step, "sendbuf", program), argument(back, "buf", program)
        given = [own, into, *keywords(step, ("op",), program)]
        next_to = step.statement.end_line + 1 == back.statement.start_line
        writable = next_to and is_simple(step, program) and is_simple(back, program)
        place = stretch(step.statement, back.statement)
        line = f"{step.receiver}.{call.method}({', '.join(map(str, given))})"
        yield offer(
            function,
            visit,
            step.span,
            f"bring `{sent_text(step)}` to all ranks at once, by `{call.method}`",
            "the root has to have all of it before it can send it on",
            (step, back),
            (call,),
            "every rank gets what the root got; sums of floating-point numbers may be collected in"
            " another order",
            in_place_of(place, [line], program.context) if writable and own and into else None,
        )


def combined(program: Program) -> frozenset[Span]:
    """Return the calls that go when something is made of their parts on the way."""
    return frozenset(
        one.span
        for function in program.functions
        for _, way in _ways(program, function)
        if _instead(program, way) is not None
        for one in (*way.brought, *((way.back,) if way.back is not None else ()))
    )


def _ways(program: Program, function: SpmdFunction) -> Iterator[tuple[Visit, Way]]:
    told: set[Span] = set()
    for visit, step in function.operations():
        if step.op not in (Op.GATHER, Op.ALLGATHER, Op.REDUCE) or not step.pickled:
            continue
        if step.span in told or not on_all_ranks(function.visits(), visit):
            continue
        way = way_of(program, function, visit, step)
        if way is not None:
            told |= {one.span for one in way.brought}
            yield visit, way


# --- what takes their place -----------------------------------------------------------------------

_Found = tuple[tuple[Step, ...], list[str] | None, str, str]
"""Steps, lines, what is proposed, and why results are the same."""


def _instead(program: Program, way: Way) -> _Found | None:
    step, made = way.brought[0], way.made
    root = way.back is None and step.op is not Op.ALLGATHER
    view = array_payload(step.send)
    if step.op is Op.REDUCE:
        return _reduced_to_all(program, way)
    if made.how == SAME:
        return _gathered_to_all(program, way)
    if view is None or step.send is None:
        # numbers that are added one after another are added in the order of ranks
        return None
    if made.how == SUM:
        op, form = Op.REDUCE if root else Op.ALLREDUCE, "same"
        return _arrays(program, way, view, op, form) if _keeps_type(program, way, view) else None
    # `hstack` puts matrices side by side
    shape, op = view.shape or (), Op.GATHER if root else Op.ALLGATHER
    if not 1 <= len(shape) <= (1 if made.how == "hstack" else len(shape)):
        return None
    # parts that become rows have one shape, or NumPy raises an error
    if made.how in ROWS or (made.how == "vstack" and len(shape) == 1):
        return _arrays(program, way, view, op, "rows")
    return _arrays(program, way, view, op, "joined" if is_uniform(program, shape) else "told")


def _keeps_type(program: Program, way: Way, view: View) -> bool:
    """Return whether NumPy's sum has the element type of what is added."""
    if view.dtype not in FLOATS | {"int64", "uint64"}:
        return False
    start = "0" if way.made.value is None else ast.unparse(way.made.value)
    like = f"zeros_like({argument(way.brought[0], 'sendobj', program)})"
    plain = "dtype" not in start and "_like" not in start and view.dtype == "float64"
    return start in ("0", "0.0") or start.endswith(f".{like}") or plain


def _target(way: Way) -> tuple[str, list[str]]:
    """Return the name of what all ranks get, and what is done with it in the end."""
    back, made = way.back, way.made
    if back is None:
        return (made.name or "made"), [] if made.name else ["return made"]
    if back.result is not None:
        return back.result, []
    return made.name, [f"return {made.name}"]


def _arrays(program: Program, way: Way, view: View, op: Op, form: str) -> _Found:
    """Return the call that adds or joins arrays on their way."""
    step, (target, ended) = way.brought[0], _target(way)
    writer = Writer(program, step, op, view.dtype)
    steps = as_buffers(step, view, op)
    method, sent = op.value.capitalize(), sent_text(step)
    if form != "told":
        lines = writer.alike(view, target, form, ended)
    else:
        steps, method = told_first(step, op, step.send or payload_of(view, step.span)), f"{method}v"
        lines = _told(writer, view, target, ended)
    if form == "same":
        return (
            (*steps[:-1], replace(steps[-1], operation="SUM")),
            lines,
            f"let `{method}` add up `{sent}`, do not gather it to add",
            "the same terms are added, in another order: sums of floating-point numbers agree to"
            " rounding; parts of different shapes, which are added with broadcasting, are not",
        )
    return (
        steps,
        lines,
        f"join `{sent}` of all ranks by `{method}`",
        "the same elements come in the order of ranks, as one array, of the element type that the"
        " source shows",
    )


def _told(writer: Writer, view: View, target: str, ended: list[str]) -> list[str] | None:
    text = argument(writer.step, "sendobj", writer.program)
    if text is None or writer.program.context.array_module is None:
        return None
    own = text if text.isidentifier() else writer.name("sent")
    ahead = [] if own == text else [f"{own} = {text}"]
    joined = "{}" if len(view.shape or ()) == 1 else f"{{}}.reshape(-1, *{own}.shape[1:])"
    root, others = writer.told(own, target, joined)
    return [*ahead, *(writer.branch(root, others) if others else root), *ended]


def _gathered_to_all(program: Program, way: Way) -> _Found:
    step = way.brought[0]
    target, ended = _target(way)
    call = replace(step, op=Op.ALLGATHER, method="allgather", root=None, result=target)
    text = argument(step, "sendobj", program)
    lines = None if text is None else [f"{target} = {step.receiver}.allgather({text})", *ended]
    return (
        (call,),
        lines,
        f"gather `{sent_text(step)}` on all ranks at once, by `allgather`",
        "every rank gets the list that the root got and sent on",
    )


def _reduced_to_all(program: Program, way: Way) -> _Found:
    made, target = way.made, _target(way)
    calls = tuple(
        replace(one, op=Op.ALLREDUCE, method="allreduce", root=None) for one in way.brought
    )
    lines: list[str] | None = []
    for one in way.brought:
        text, op = (argument(one, name, program) for name in ("sendobj", "op"))
        given = f"{text}" if op is None else f"{text}, op={op}"
        result = target[0] if made.how == SAME else one.result
        if text is None or lines is None:
            lines = None
        else:
            lines.append(f"{result} = {one.receiver}.allreduce({given})")
    if lines is not None:
        if made.value is not None:
            lines.append(f"{target[0]} = {ast.unparse(made.value)}")
        lines += target[1]
    return (
        calls,
        lines,
        f"reduce `{sent_text(way.brought[0])}` to all ranks at once, by `allreduce`",
        "every rank makes of the same results what the root made of them; sums of floating-point"
        " numbers may be collected in another order",
    )


def _proposal(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    way: Way,
    after: tuple[Step, ...],
    lines: list[str] | None,
    title: str,
    argument_: str,
) -> ProgramProposal:
    place, context = stretch(way.first, way.last), program.context
    before = [
        one
        for one in visit.block[visit.position :]
        if stretch(way.first, way.last).contains(one.span)
    ]
    gone = [span_of(one, context.lines) for one in way.made.inside]
    if not all(starts_line(one, context) for one in (place, *gone)) or any(
        "#" in context.text(one) or not stands_alone(context, one) for one in (place, *gone)
    ):
        lines = None
    return offer(
        function,
        visit,
        way.brought[0].span,
        title,
        "what is made of the parts goes to where it is used in one call, which has no root that"
        " everybody waits for, and takes arrays as they are in memory",
        tuple(before),
        after,
        f"{argument_}; nothing else uses the parts",
        None
        if lines is None
        else together(
            in_place_of(place, lines, context),
            lambda: tuple(Edit(line_of(one.start_line, one.end_line), "") for one in gone),
        ),
    )
