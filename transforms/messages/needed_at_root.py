"""Collectives that give every rank what only one rank uses.

Nothing that a rank other than the root gets to needs what comes of them, whatever is computed of it
there: what only goes into what nobody uses is needed by nobody.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache, partial

from advisor.ir.changes import Function
from advisor.ir.functions import File, file_of
from advisor.ir.needed import Needed
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Op
from costdb.expr import num
from costdb.expr.nodes import Num
from costdb.records import replace
from transforms.kit.names import argument, is_simple
from transforms.kit.programs import offer, shortened
from transforms.kit.ranks import on_all_ranks, same_communicator
from transforms.kit.rewrite import Edits, in_place_of, statement_at, without_statement
from transforms.messages.iterations import REDUCTIONS

_NAMED = ("method", "receiver")
_TO_ROOT = {Op.ALLREDUCE: Op.REDUCE, Op.ALLGATHER: Op.GATHER}
_OTHERS = "another rank computes with it, though nobody uses what comes of that"
_Scope = ast.Module | Function


def needed_at_root(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a call that gives the root alone what all ranks are given, or none for a broadcast."""
    everywhere = [step for one in program.functions for _, step in one.operations()]
    if any(
        not same_communicator(one.communicator, everywhere[0].communicator) for one in everywhere
    ):
        return  # nobody knows whose ranks tests are about
    file, operations = file_of(program.context.source), list(function.operations())
    receivers = frozenset(step.receiver for step in everywhere)
    for visit, step in operations:
        if step.op not in (Op.BCAST, *_TO_ROOT) or not step.blocking or step.varying:
            continue
        node, brought = statement_at(step.statement, program.context), step.op is Op.BCAST
        root = step.root if brought else num(0)
        if not isinstance(root, Num) or node is None or not on_all_ranks(function.visits(), visit):
            continue
        rank, scope = int(root.value), file.scope_at(node.lineno)
        others, all_ranks = (_whose(file, receivers, one) for one in (rank, None))
        beside = next((s for v, s in operations if v.loops == visit.loops and s != step), None)
        if others.need(node, scope) or not all_ranks.need(node, scope) or (brought and not beside):
            continue
        used = _whose(file, receivers, rank, every=True).need(node, scope)
        payload = step.receive or step.send
        got = shortened(step.result or (payload.text if payload else ""))
        yield offer(
            function,
            visit,
            step.span,
            f"do not send `{got}` to all ranks: rank {rank} alone uses it"
            if brought
            else f"{_TO_ROOT[step.op]} `{got}` to rank {rank}, which alone uses it",
            "every rank waits for what no other rank needs",
            (step, beside) if brought and beside else (step,),
            (beside,) if brought and beside else (_rooted(step),),
            "no other rank gets to where it is used, or to where anything is that is made of it"
            + "; sums of floating-point numbers agree to rounding" * (step.op in REDUCTIONS),
            _OTHERS if used else _edits(program, step),
        )


def _rooted(step: Communicate) -> Communicate:
    op = _TO_ROOT[step.op]
    return replace(step, op=op, method=op if step.pickled else op.capitalize(), root=num(0))


def _edits(program: Program, step: Communicate) -> Edits | str:
    """Return what leaves out a broadcast, or lets the root alone have what comes of another."""
    if not is_simple(step, program):
        return "the call shares its statement"
    context = program.context
    if step.in_place:
        return "only the root may have its part where the whole comes"
    if step.op is not Op.BCAST:
        given = [context.text(place) for name, place in step.places.items() if name not in _NAMED]
        method = f"{step.receiver}.{_rooted(step).method}"
        call = f"{method}({', '.join([*given, 'root=0'])})"
        text = call if step.result is None else f"{step.result} = {call}"
        return in_place_of(step.statement, [text], context)
    sent = argument(step, "obj", program)
    if step.result is None or step.result == sent:
        return partial(without_statement, step.statement, context)
    return in_place_of(step.statement, [f"{step.result} = {sent}"], context)


@lru_cache(maxsize=8)
def _whose(
    file: File, receivers: frozenset[str], root: int | None, *, every: bool = False
) -> _Ranks:
    return _Ranks(file, receivers, root, every)


class _Ranks:
    """All ranks, or all but a root, and what they need; or `every` thing that they use at all.

    The own rank is what a communicator says that is called as one of the `receivers`.
    """

    def __init__(
        self, file: File, receivers: frozenset[str], root: int | None, every: bool
    ) -> None:
        self.file, self.receivers, self.root, self.every = file, receivers, root, every
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
                return value == self.root and self._is_rank(left, scope), False
            case ast.Compare(left, [ast.NotEq() | ast.Gt() as sign], [ast.Constant(value)]):
                fits = value == self.root and (isinstance(sign, ast.NotEq) or self.root == 0)
                return False, fits and self._is_rank(left, scope)
            case ast.UnaryOp(ast.Not(), operand):
                return self._holds(operand, scope)[::-1]
            case ast.BoolOp(op, values):
                alone, others = zip(*(self._holds(one, scope) for one in values), strict=True)
                both = isinstance(op, ast.And)
                return (any(alone), all(others)) if both else (all(alone), any(others))
            case ast.Name() | ast.Attribute():
                if self._is_rank(test, scope):
                    return False, self.root == 0
                match self.file.origins(test, self.file.names_of(scope)):
                    case [(ast.Compare() as told, around)]:
                        return self._holds(told, around)
        return False, False

    def _is_rank(self, node: ast.expr, scope: _Scope, depth: int = 4) -> bool:
        """Return whether an expression is the own rank, wherever it comes from."""
        match node:
            case ast.Call(ast.Attribute(of, "Get_rank")) | ast.Attribute(of, "rank") if (
                text := ast.unparse(of)
            ) in self.receivers or text.endswith("COMM_WORLD"):
                return True
            case ast.Name() | ast.Attribute() if depth:
                made = self.file.origins(node, self.file.names_of(scope))
                known = [one is not None and self._is_rank(one, s, depth - 1) for one, s in made]
                return bool(known) and all(known)
        return False
