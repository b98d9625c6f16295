"""Communicators that a loop makes in each iteration, and of the same as before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Loop, Op
from costdb.expr import num
from costdb.records import replace
from transforms.kit.names import bound_in, words
from transforms.kit.programs import offer
from transforms.kit.rewrite import span_of, statement_at

_MAKES = frozenset({"Split", "Split_type", "Dup", "Clone", "Create_cart", "Create_group", "Sub"})


def made_again(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a communicator that is made once, before the loop."""
    lines = program.context.lines
    known = {step.receiver: step for _, step in function.operations()}
    for visit in function.visits():
        loop = visit.step
        node = statement_at(loop.span, program.context) if isinstance(loop, Loop) else None
        if not isinstance(loop, Loop) or not isinstance(node, ast.For) or loop.trips is None:
            continue
        for one in node.body:
            match one:
                case ast.Assign(
                    targets=[ast.Name() as target],
                    value=ast.Call(func=ast.Attribute(value=of, attr=method)) as call,
                ) if method in _MAKES:
                    first = known.get(ast.unparse(of))
                    if first is None or words(ast.unparse(call)) & bound_in(program, loop):
                        continue
                    place = span_of(call, lines)
                    told = _least(replace(first, span=place, statement=place, method=method))
                    yield offer(
                        function,
                        visit,
                        place,
                        f"make `{target.id}` once, before the loop",
                        "all ranks have to agree on who is in a communicator: that takes as many"
                        " messages as a gather of two numbers on all ranks, at least",
                        (replace(loop, body=(told,)),),
                        (told,),
                        "each iteration makes it of the same",
                        "what frees it goes behind the loop, which may have no iteration",
                    )


def _least(step: Communicate) -> Communicate:
    """Return the messages that it takes at least to make a communicator."""
    two = Payload(PayloadKind.ARRAY, "", step.span, dtype="int64", count=num(2))
    return replace(step, op=Op.ALLGATHER, pickled=False, send=two, receive=None, places={})
