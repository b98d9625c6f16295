"""Collectives that give every rank what only one rank uses.

Nothing that a rank other than the root gets to needs what comes of them, whatever is computed of it
there: what only goes into what nobody uses is needed by nobody.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, partial

from advisor.ir.changes import Function, Names
from advisor.ir.functions import File, file_of
from advisor.ir.needed import Needed
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Op
from advisor.source import walked
from costdb.expr import num
from costdb.records import replace
from transforms.kit.names import argument, is_simple
from transforms.kit.programs import offer, shortened
from transforms.kit.ranks import on_all_ranks
from transforms.kit.rewrite import Edits, in_place_of, statement_at, without_statement
from transforms.messages.iterations import REDUCTIONS

_NAMED = ("method", "receiver")
_TO_ROOT = {Op.ALLREDUCE: Op.REDUCE, Op.ALLGATHER: Op.GATHER}
_OTHERS = "another rank computes with it, though nobody uses what comes of that"
_Scope = ast.Module | Function


def needed_at_root(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a call that gives the root alone what all ranks are given, or none for a broadcast."""
    operations = list(function.operations())
    if len({step.communicator.text for _, step in operations}) != 1:
        return  # nobody knows whose ranks tests are about
    file = file_of(program.context.source)
    for visit, step in operations:
        if step.op not in (Op.BCAST, *_TO_ROOT) or not step.blocking or step.varying:
            continue
        node = statement_at(step.statement, program.context)
        if node is None or not on_all_ranks(function.visits(), visit):
            continue
        scope, brought = file.scope_at(node.lineno), step.op is Op.BCAST
        for root in _roots(file.names_of(scope)):
            if (brought and step.root != num(root)) or _others(file, root).need(node, scope):
                continue
            if not _others(file, -1).need(node, scope):
                continue  # nobody needs it
            beside = next((s for v, s in operations if v.loops == visit.loops and s != step), None)
            if brought and beside is None:
                continue
            to_root = beside if brought else _rooted(step, root)
            unused = not step.pickled or not _others(file, root, every=True).need(node, scope)
            payload = step.receive or step.send
            got = shortened(step.result or (payload.text if payload else ""))
            yield offer(
                function,
                visit,
                step.span,
                f"do not send `{got}` to all ranks: rank {root} alone uses it"
                if brought
                else f"{_TO_ROOT[step.op]} `{got}` to rank {root}, which alone uses it",
                "every rank waits for what no other rank needs",
                (step, beside) if brought and beside else (step,),
                (to_root,) if to_root else (),
                "no other rank gets to where it is used, or to where anything is that is made of it"
                + "; sums of floating-point numbers agree to rounding" * (step.op in REDUCTIONS),
                _edits(program, step, root) if unused else _OTHERS,
            )
            break


def _rooted(step: Communicate, root: int) -> Communicate:
    op = _TO_ROOT[step.op]
    return replace(step, op=op, method=op if step.pickled else op.capitalize(), root=num(root))


def _edits(program: Program, step: Communicate, root: int) -> Edits | str:
    """Return what leaves out a broadcast, or lets the root alone have what comes of another."""
    if not is_simple(step, program):
        return "the call shares its statement"
    context = program.context
    if step.op is not Op.BCAST:
        given = [context.text(place) for name, place in step.places.items() if name not in _NAMED]
        method = f"{step.receiver}.{_rooted(step, root).method}"
        call = f"{method}({', '.join([*given, f'root={root}'])})"
        text = call if step.result is None else f"{step.result} = {call}"
        return in_place_of(step.statement, [text], context)
    sent = argument(step, "obj", program)
    if step.result is None or step.result == sent:
        return partial(without_statement, step.statement, context)
    return in_place_of(step.statement, [f"{step.result} = {sent}"], context)


def _roots(names: Names) -> frozenset[int]:
    """Return the ranks that tests in a function may name."""
    tests = [one.test for one in names.nodes if isinstance(one, ast.If)]
    found = (part for one in tests for part in walked(one) if isinstance(part, ast.Constant))
    return frozenset(one.value for one in found if type(one.value) is int) | {0}


@cache
def _is_rank(file: File, node: ast.expr, scope: _Scope, depth: int = 4) -> bool:
    """Return whether an expression is the own rank, wherever it comes from."""
    match node:
        case ast.Call(ast.Attribute(_, "Get_rank")):
            return True
        case ast.Attribute(_, "rank") | ast.Name() | ast.Attribute():
            made = file.origins(node, file.names_of(scope)) if depth else [(None, scope)]
            known = [v is not None and _is_rank(file, v, s, depth - 1) for v, s in made]
            return all(known) if known else getattr(node, "attr", "") == "rank"
    return False


@cache
def _others(file: File, root: int, *, every: bool = False) -> _Others:
    return _Others(file, root, every)


class _Others:
    """All ranks but the root, and what they need; or what they use at all, needed or not."""

    def __init__(self, file: File, root: int, every: bool) -> None:
        self.file, self.root, self.every = file, root, every
        self._found: dict[_Scope, Needed | None] = {}

    def need(self, node: ast.stmt, scope: _Scope) -> bool:
        """Return whether one of them may need what a statement makes or returns."""
        if isinstance(node, ast.Return):
            return self._use(scope)
        needed = self._needed(scope)
        if needed is None or node not in needed.behind:
            return True
        made = needed.made(node)
        return not made or not made.isdisjoint(needed.behind[node])

    def _needed(self, scope: _Scope) -> Needed | None:
        """Return what they need in a function; None where nobody knows, as it calls itself."""
        if scope not in self._found:
            self._found[scope] = None
            names, given = self.file.names_of(scope), self._use(scope)

            def arms(node: ast.If) -> tuple[bool, bool]:
                alone, others = self._holds(node.test, scope)
                return not alone, not others

            self._found[scope] = Needed(names, arms, every=self.every, given=given)
        return self._found[scope]

    def _use(self, scope: _Scope) -> bool:
        """Return whether they may need what a function gives to who calls it."""
        for call, around in self.file.calls_of(scope):
            nodes = self.file.names_of(around).nodes
            places = (one for one in nodes if getattr(one, "value", None) is call)
            place = next(places, None)
            if not isinstance(place, ast.stmt) or self.need(place, around):
                return True
        return not self.file.is_all_called(scope)

    def _holds(self, test: ast.expr, scope: _Scope) -> tuple[bool, bool]:
        """Return whether a condition holds on no rank but the root, and whether on all others."""
        match test:
            case ast.Compare(left, [ast.Eq()], [ast.Constant(value)]):
                return value == self.root and _is_rank(self.file, left, scope), False
            case ast.Compare(left, [ast.NotEq() | ast.Gt() as sign], [ast.Constant(value)]):
                fits = value == self.root and (isinstance(sign, ast.NotEq) or self.root == 0)
                return False, fits and _is_rank(self.file, left, scope)
            case ast.UnaryOp(ast.Not(), operand):
                return self._holds(operand, scope)[::-1]
            case ast.BoolOp(op, values):
                alone, others = zip(*(self._holds(one, scope) for one in values), strict=True)
                both = isinstance(op, ast.And)
                return (any(alone), all(others)) if both else (all(alone), any(others))
            case ast.Name() | ast.Attribute():
                if _is_rank(self.file, test, scope):
                    return False, self.root == 0
                match self.file.origins(test, self.file.names_of(scope)):
                    case [(ast.Compare() as told, around)]:
                        return self._holds(told, around)
        return False, False
