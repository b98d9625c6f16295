"""Objects that are gathered only to add up, or compare, something of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Op, Visit
from costdb.records import replace
from transforms.kit.names import is_binding, is_name, occurrences, within
from transforms.kit.programs import offer, sent_text, shortened
from transforms.kit.ranks import on_all_ranks, same_communicator
from transforms.kit.rewrite import span_of, tree_of
from transforms.messages.combined_parts import combined

_OPERATIONS = {"sum": "SUM", "max": "MAX", "min": "MIN"}


def parts_of_objects(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the reduction of what is added up of each rank's object."""
    for visit, step in function.operations():
        name = step.result or ""
        gathers = step.op in (Op.GATHER, Op.ALLGATHER) and step.pickled and step.blocking
        if not gathers or not is_name(name) or name in function.returned:
            continue
        found = _folded(program, function, name)
        places = [p for p in occurrences(name, function, program) if not is_binding(p, program)]
        places = [place for place in places if not step.statement.contains(place)]
        spans = [span_of(one, program.context.lines) for one in found]
        if not places or not all(within(place, spans) for place in places):
            continue
        operations = {_OPERATIONS[ast.unparse(one.func)] for one in found}
        if len(operations) > 1 or step.span in combined(program):
            continue
        if not on_all_ranks(function.visits(), visit):
            continue
        back = _sent_back(visit, step)
        op = Op.REDUCE if step.op is Op.GATHER and back is None else Op.ALLREDUCE
        call = replace(step, op=op, method=op.value, operation=operations.pop(), result=None)
        yield offer(
            function,
            visit,
            step.span,
            f"let `{op.value}` combine `{sent_text(step)}` of all ranks, do not gather it for"
            f" `{shortened(ast.unparse(found[0]))}`",
            "every part goes to one place, which combines them one by one",
            (step,) if back is None else (step, back),
            (call,),
            f"of `{name}` nothing is used but what is combined of each part; sums of floating-point"
            " numbers are collected in another order, and agree to rounding",
            "what is combined has to be made of the own part, as an array",
        )


def _folded(program: Program, function: SpmdFunction, name: str) -> list[ast.Call]:
    """Return the sums and extremes of an expression for each of the parts with a name."""
    found: list[ast.Call] = []
    for node in ast.walk(tree_of(program.context.source)):
        match node:
            case ast.Call(func=ast.Name(), args=[ast.GeneratorExp(elt=each, generators=[one])]):
                called = ast.unparse(node.func) in _OPERATIONS and not node.keywords
                over = ast.unparse(one.iter) == name and not one.ifs
                whole = ast.unparse(each) == ast.unparse(one.target)
                if called and over and not whole:
                    found.append(node)
    return [one for one in found if function.whole.contains(span_of(one, program.context.lines))]


def _sent_back(visit: Visit, step: Communicate) -> Communicate | None:
    """Return the broadcast of what the root makes, from where it gathered."""
    for one in visit.block[visit.position + 1 :]:
        if isinstance(one, Communicate):
            same = same_communicator(one.communicator, step.communicator) and one.root == step.root
            return one if one.op is Op.BCAST and one.pickled and same else None
    return None
