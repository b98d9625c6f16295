"""Loops over stores to places that only the data know, as one statement on all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.statements import SET, Loop, Scatter, Statement
from advisor.ir.values import Scalar, reads
from advisor.source import Edit
from transforms.kit.kernels import compiled, overlapping, type_of, with_statement
from transforms.kit.rewrite import first_line, replace_statement, stands_alone, statement_at
from transforms.loops.array_text import text_of


def scattered_stores(kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement for each loop that stores to places, or adds to some of several axes."""
    for one in _scatters(kernel.body):
        argued = _legality(one, kernel)
        if argued is None or not _edits(one, kernel):
            continue
        call = "one assignment" if one.operation == SET else "`add.at`"
        yield Proposal(
            f"store to all places of `{one.array}` by {call}",
            "no interpreter runs for each element",
            first_line(one.span, kernel.context),
            kernel.with_body(with_statement(kernel.body, one, (replace(one, by_element=False),))),
            argued,
            partial(_edits, one, kernel),
        )


def _scatters(body: tuple[Statement, ...]) -> Iterator[Scatter]:
    for one in body:
        if isinstance(one, Loop):
            yield from _scatters(one.body)
        elif isinstance(one, Scatter) and one.by_element and (one.others or one.operation == SET):
            yield one


def _legality(one: Scatter, kernel: Kernel) -> Legality | None:
    values = (*one.all_places, one.value)
    types = [type_of(value, kernel) for value in values]
    named = {read.array for value in values for read in reads(value)}
    target = kernel.dtype(one.array)
    if one.array in named or any(len(found.extents) != 1 for found in types[:-1]):
        return None
    if types[-1].dtype != target and not isinstance(one.value, Scalar):
        return None
    known = compiled(kernel)
    if known is not None:
        return known
    given = [name for name in sorted(named) if name in kernel.arrays]
    if one.array in kernel.arrays and given:
        return overlapping(one.array, given[0])
    if one.operation == SET:
        return Legality(
            Applicability.UNSAFE,
            "results are equal where no place comes twice, or NumPy stores in the order of places,"
            " as it does",
        )
    return Legality(
        Applicability.SAFE, "the same terms are added in the same order, each place for itself"
    )


def _edits(one: Scatter, kernel: Kernel) -> tuple[Edit, ...]:
    context, numpy = kernel.context, kernel.context.array_module
    node: ast.stmt | None = statement_at(one.span, context)
    while isinstance(node, ast.For) and len(node.body) == 1:
        node = node.body[0]
    places = [text_of(place, kernel) for place in one.all_places]
    value, known = text_of(one.value, kernel), [place for place in places if place is not None]
    plain = isinstance(node, ast.Assign | ast.AugAssign) and stands_alone(context, one.span)
    if numpy is None or value is None or len(known) < len(places) or not plain:
        return ()
    at = ", ".join(known)
    line = f"{one.array}[{at}] = {value}"
    if one.operation != SET:
        at = f"({at})" if len(known) > 1 else at
        line = f"{numpy}.{one.operation}.at({one.array}, {at}, {value})"
    return (replace_statement(one.span, [line], context),)
