"""What the cost of a kernel follows from: all of it but where it stands in its file."""

from __future__ import annotations

from collections.abc import Hashable

from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind, Choice, Loop, ScalarBind, Statement, Store, Unrolled
from advisor.ir.values import Elementwise, Value, operands


def content_of(kernel: Kernel) -> Hashable:
    """Return what kernels that cost the same have in common, whatever their names and lines.

    A kernel whose comments or blanks were edited has the same content. What only rewrites need,
    such as the source, is not part of it.
    """
    return (
        tuple(
            (name, array.spec, array.dtype, array.extents) for name, array in kernel.arrays.items()
        ),
        tuple(kernel.locals.items()),
        _contents(kernel.body),
        kernel.context.decorators,
    )


def _contents(statements: tuple[Statement, ...]) -> Hashable:
    return tuple([_content(statement) for statement in statements])


def _content(statement: Statement) -> Hashable:
    match statement:
        case Loop(variable, low, high, step, body, _, stated, threads):
            return Loop, variable, low, high, step, _contents(body), stated, threads
        case Choice(probability, then, orelse, _):
            return Choice, probability, _contents(then), _contents(orelse)
        case Unrolled(body, _):
            return Unrolled, _contents(body)
        case Store(array, region, value, _, in_place, held, in_variable):
            # stores that differ in these only are equal, and cost different times
            spent = in_place, held, in_variable, _spellings(value)
            return Store, array, region, value, spent
    names = [name for name in type(statement).__match_args__ if name != "span"]
    spelled = _spellings(statement.value) if isinstance(statement, Bind | ScalarBind) else ()
    return type(statement), spelled, *(getattr(statement, name) for name in names)


def _spellings(value: Value) -> tuple[Hashable, ...]:
    """Return how a value is written, where that makes no difference but of time."""
    own: tuple[Hashable, ...] = ()
    match value:
        case Elementwise(called=called):
            own = (called,)
    return own + tuple(one for part in operands(value) for one in _spellings(part))
