"""What loops, or calls, combine at places that only the data know: which there are, and as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import whole
from advisor.ir.statements import Bind, Loop, Scatter, Statement, Store, mentioned
from advisor.ir.values import Elementwise, Fill, Read, Scalar, Tally, Value
from advisor.source import Edit
from transforms.kit.kernels import offered, type_of, with_statement
from transforms.kit.rewrite import (
    first_line,
    replace_statement,
    span_of,
    stands_alone,
    statement_at,
)
from transforms.loops.array_text import NoWords, Words


def scatters(body: tuple[Statement, ...]) -> Iterator[tuple[Scatter, bool]]:
    """Yield scatters, and whether their array was filled with zeros just before."""
    zeros: set[str] = set()
    for statement in body:
        match statement:
            case Scatter():
                yield statement, statement.array in zeros
            case Loop(body=inner):
                yield from scatters(inner)
        zeros -= mentioned(statement)
        match statement:
            case Bind(name=name, value=Fill(value="0" | "0.0" | "0.")):
                zeros.add(name)


def is_count(scatter: Scatter) -> bool:
    """Return whether each place counts by one."""
    return scatter.operation == "add" and scatter.value == Scalar("1", "integer literal")


def tallied(
    scatter: Scatter, title: str, reason: str, argued: Legality, kernel: Kernel
) -> Proposal:
    """Return the proposal to add up by ``bincount`` what comes to each place."""
    extents = kernel.extents(scatter.array)
    region = whole(extents)
    tally = Tally(scatter.places, scatter.value, extents[0], "float64")
    if is_count(scatter):
        tally = Tally(scatter.places, None, extents[0], "int64")
    added = Elementwise("add", (Read(scatter.array, region), tally))
    store = Store(scatter.array, region, added, scatter.span, in_place=True)
    given = (scatter.places,) if is_count(scatter) else (scatter.places, scatter.value)
    return offered(
        kernel,
        first_line(scatter.span, kernel.context),
        title,
        reason,
        kernel.with_body(with_statement(kernel.body, scatter, (store,))),
        argued,
        partial(_edits, scatter, given, kernel),
    )


def _edits(scatter: Scatter, given: tuple[Value, ...], kernel: Kernel) -> tuple[Edit, ...]:
    context, name = kernel.context, scatter.array
    try:
        terms, numpy = ", weights=".join(_given(scatter, given, kernel)), Words(kernel).module
    except NoWords:
        return ()
    if not terms or "\n" in terms or not stands_alone(context, scatter.span):
        return ()
    made = f"{name} += {numpy}.bincount({terms}, minlength={name}.shape[0])"
    return (replace_statement(scatter.span, [made], context),)


def _given(scatter: Scatter, given: tuple[Value, ...], kernel: Kernel) -> list[str]:
    """Return the source of places and values; nothing where it does something else."""
    node: ast.stmt | None = statement_at(scatter.span, kernel.context)
    if scatter.by_element:
        flat = False
        while isinstance(node, ast.For) and len(node.body) == 1:
            flat |= ast.unparse(node.iter).endswith((".flatten()", ".ravel()", ".flat"))
            node = node.body[0]
        if not isinstance(node, ast.Assign | ast.AugAssign):
            return []
        # in the order of the loops
        several = flat or any(len(type_of(one, kernel).extents) > 1 for one in given)
        return [Words(kernel).text(one) + ".ravel()" * several for one in given]
    match node:
        case ast.Expr(ast.Call(args=[_, *parts])) if len(parts) == 2:
            lines = kernel.context.lines
            return [kernel.context.text(span_of(one, lines)) for one in parts[: len(given)]]
    return []
