"""The interpreter's own work: loops over numbers, and functions that a compiler takes from it."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.naming.names import dotted
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import External
from advisor.frontend.syntax.walking import parts_of
from advisor.ir.spmd.steps import Compute, Loop, LoopKind, Step, Unknown, walk
from advisor.source import Span
from costdb.expr import num

_STEPS = (cst.BinaryOperation, cst.BooleanOperation, cst.ComparisonTarget, cst.Call, cst.AugAssign)
_COMPILERS = frozenset({"njit", "jit", "vectorize", "guvectorize", "stencil", "cfunc"})


def interpreted(body: cst.BaseSuite, span: Span) -> tuple[Step, ...]:
    """Return the work of an iteration that touches no array and sends nothing.

    Operators, comparisons and calls count alike, as one operation of the interpreter each.
    """
    count = _count(body)
    return (Compute(None, (), num(count), "interpreted", span),) if count else ()


def _count(node: cst.CSTNode) -> int:
    return isinstance(node, _STEPS) + sum(map(_count, parts_of(node)))


def is_compiled(node: cst.FunctionDef, run: Run) -> bool:
    """Return whether a decorator has numba compile a function."""
    return any(_is_compiler(decorator.decorator, run) for decorator in node.decorators)


def is_compiled_as_called(node: cst.FunctionDef, run: Run) -> bool:
    """Return whether numba compiles a function for the arguments of its calls.

    With signatures of its own they may be converted, and ``vectorize`` hands over elements.
    """
    if len(node.decorators) != 1:
        return False
    decorator = node.decorators[0].decorator
    if _compiler(decorator, run) not in ("njit", "jit"):
        return False
    return not isinstance(decorator, cst.Call) or all(
        argument.keyword is not None and argument.keyword.value != "signature_or_function"
        for argument in decorator.args
    )


def _is_compiler(node: cst.BaseExpression, run: Run) -> bool:
    return _compiler(node, run) in _COMPILERS


def _compiler(node: cst.BaseExpression, run: Run) -> str | None:
    """Return the bare name of a function of numba; None for any other."""
    called = node.func if isinstance(node, cst.Call) else node
    first, _, rest = (dotted(called) or "").partition(".")
    found = run.lookup(first)
    if not isinstance(found, External):
        return None
    path = f"{found.path}.{rest}" if rest else found.path
    return path.rpartition(".")[2] if path.startswith("numba.") else None


def is_sequential(node: cst.FunctionDef, run: Run) -> bool:
    """Return whether a function is compiled without leave to make its loops parallel."""
    return any(
        _is_compiler(one.decorator, run)
        and not (
            isinstance(one.decorator, cst.Call)
            and any(
                a.star or (a.keyword is not None and a.keyword.value == "parallel")
                for a in one.decorator.args
            )
        )
        for one in node.decorators
    )


def compiled(
    name: str, steps: tuple[Step, ...], span: Span, *, sequential: bool
) -> tuple[Step, ...]:
    """Return what a compiled function does: its parallel loops, and else something unknown.

    No model says how long compiled loops over single elements take, and the interpreter's price
    would be a hundred times too much.
    """
    if not steps or (not sequential and _has_parallel_loops(steps)):
        return steps
    return (Unknown(f"the time of `{name}`, which numba compiles, is not modelled", span),)


def _has_parallel_loops(steps: tuple[Step, ...]) -> bool:
    return any(
        isinstance(visit.step, Loop) and visit.step.kind is LoopKind.THREADS
        for visit in walk(steps, into_calls=True)
    )
