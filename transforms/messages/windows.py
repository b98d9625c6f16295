"""One-sided communication, element by element: one call."""

from __future__ import annotations

import ast

from advisor.dtypes import itemsize_of
from advisor.ir.spmd.memory import Origin
from advisor.ir.spmd.payloads import Payload
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import Communicate, Interpret, Loop, Op
from advisor.source import Span
from costdb.expr.nodes import Num
from transforms.kit.memory import SENDABLE, own_memory, plain_array
from transforms.kit.names import argument, bound_in, words
from transforms.kit.rewrite import (
    statement_at,
    tree_of,
)

MOVES = frozenset({Op.PUT, Op.GET})
EPOCHS = frozenset({Op.FENCE, Op.LOCK, Op.UNLOCK, Op.FLUSH})


def epochs_beside(program: Program, step: Communicate, loop: Loop) -> list[Communicate] | None:
    """Return what begins and ends epochs in a loop of one call; None where it does more."""
    others = [one for one in loop.body if one != step and not isinstance(one, Interpret)]
    found = [one for one in others if isinstance(one, Communicate) and one.op in EPOCHS]
    if len(found) < len(others) or any(one.window != step.window for one in found):
        return None
    bound = bound_in(program, loop)
    return None if any(words(program.context.text(one.span)) & bound for one in found) else found


def first_place(
    program: Program, step: Communicate, loop: Loop, payload: Payload
) -> dict[Span, str] | None:
    """Return where in a window the first piece of a loop is; None where pieces lie apart."""
    node, place = statement_at(loop.span, program.context), step.places.get("target")
    text = argument(step, "target", program)
    if text is None or place is None or not isinstance(payload.count, Num):
        return None
    if payload.dtype not in SENDABLE:
        return None
    match node:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args)):
            low = args[0] if len(args) > 1 else ast.Constant(0)
        case _:
            return None
    window, size = _made(program, step), itemsize_of(payload.dtype or "")
    if window is None or not _is_beside_window(window, payload):
        return None
    target = ast.parse(text.strip(), mode="eval").body
    given_unit = [one.value for one in window.keywords if one.arg == "disp_unit"]
    unit = (given_unit or window.args[1:2] or [ast.Constant(1)])[0]
    slope, each = _slope(target, name, size), _number(unit, size)
    if not slope or each is None or slope * each != payload.count.value * size:
        return None

    class First(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return low if node.id == name else node

    given = program.context.text(place).removesuffix(text)
    return {place: given + ast.unparse(First().visit(target))}


def _made(program: Program, step: Communicate) -> ast.Call | None:
    """Return the call that makes a window, where there is one."""
    found: list[ast.Call | None] = []
    for node in ast.walk(tree_of(program.context.source)):
        match node:
            case ast.Assign(targets=[target], value=value) if ast.unparse(target) == step.window:
                found.append(value if isinstance(value, ast.Call) else None)
    call = found[0] if len(found) == 1 else None
    named = "" if call is None else ast.unparse(call.func)
    return call if named.endswith((".Win.Create", ".Win.Allocate")) else None


def _is_beside_window(window: ast.Call, payload: Payload) -> bool:
    """Return whether what is moved is not in the window, where others write or read."""
    view = plain_array(payload)
    either = view is not None and view.buffer.allocation.origin is Origin.EITHER
    if view is None or not (own_memory(view) or either):
        return False
    return {name for name, _ in view.buffer.memories}.isdisjoint(words(ast.unparse(window)))


def _number(node: ast.expr, size: int) -> int | None:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case (
            ast.Attribute(attr="itemsize") | ast.Call(func=ast.Attribute(attr="Get_size"), args=[])
        ):
            return size
    return None


def _slope(node: ast.expr, name: str, size: int) -> int | None:
    """Return by how much an expression grows with a name."""
    if name not in words(ast.unparse(node)):
        return 0
    match node:
        case ast.Name():
            return 1
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            one, other = _slope(left, name, size), _slope(right, name, size)
            if one is None or other is None:
                return None
            return one + other if isinstance(op, ast.Add) else one - other
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for a, b in ((left, right), (right, left)):
                times, slope = _number(b, size), _slope(a, name, size)
                if times is not None and slope is not None:
                    return times * slope
    return None
