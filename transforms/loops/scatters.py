"""What loops, or calls, combine at places that only the data know: which there are, and as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import whole
from advisor.ir.statements import SET, Bind, Loop, Scatter, Statement, Store, mentioned
from advisor.ir.values import Elementwise, Fill, Gather, Read, Scalar, Tally, Value, reads
from advisor.source import Edit
from transforms.kit.kernels import compiled, type_of, unless_apart, with_statement
from transforms.kit.rewrite import first_line, replace_statement, stands_alone, statement_at
from transforms.loops.array_text import text_of


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
    call = f"{scatter.array} += {{numpy}}.bincount({{given}}, minlength={scatter.array}.shape[0])"
    given = (scatter.places,) if is_count(scatter) else (scatter.places, scatter.value)
    return _proposal(scatter, store, title, reason, argued, (call, ", weights=", given), kernel)


def scattered_stores(kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement for each loop that stores to places, or adds to some of several axes."""
    for one, _ in scatters(kernel.body):
        if not one.by_element or not (one.others or one.operation == SET):
            continue
        argued = _legality(one, kernel)
        call, line = "one assignment", f"{one.array}[{{given}}] = "
        if one.operation != SET:
            places = "({given})" if one.others else "{given}"
            call, line = "`add.at`", f"{{numpy}}.{one.operation}.at({one.array}, {places}, "
        value = text_of(one.value, kernel)
        if argued is None or value is None:
            continue
        line += value.replace("{", "{{").replace("}", "}}") + ")" * (one.operation != SET)
        made = _proposal(
            one,
            replace(one, by_element=False),
            f"store to all places of `{one.array}` by {call}",
            "no interpreter runs for each element",
            argued,
            (line, ", ", one.all_places),
            kernel,
        )
        if made.edits():
            yield made


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
    stored = Store(one.array, (), Gather(one.value, one.places, one.others), one.span)
    if shared := unless_apart([stored], kernel):
        return shared
    if one.operation == SET:
        return Legality(
            Applicability.UNSAFE,
            "results are equal where no place comes twice, or NumPy stores in the order of places,"
            " as it does",
        )
    return Legality(
        Applicability.SAFE, "the same terms are added in the same order, each place for itself"
    )


def _proposal(
    scatter: Scatter,
    made: Statement,
    title: str,
    reason: str,
    argued: Legality,
    written: tuple[str, str, tuple[Value, ...]],
    kernel: Kernel,
) -> Proposal:
    """Return a statement in the place of a scatter: its line, and what it is given, joined."""
    return Proposal(
        title,
        reason,
        first_line(scatter.span, kernel.context),
        kernel.with_body(with_statement(kernel.body, scatter, (made,))),
        argued,
        partial(_edits, scatter, *written, kernel),
    )


def _edits(
    scatter: Scatter, line: str, between: str, given: tuple[Value, ...], kernel: Kernel
) -> tuple[Edit, ...]:
    context = kernel.context
    texts = _given(scatter, given, kernel)
    known = [text for text in texts if text is not None and "\n" not in text]
    numpy = context.array_module
    if numpy is None or not known or len(known) < len(texts):
        return ()
    if not stands_alone(context, scatter.span):
        return ()
    made = line.format(numpy=numpy, given=between.join(known))
    return (replace_statement(scatter.span, [made], context),)


def _given(scatter: Scatter, given: tuple[Value, ...], kernel: Kernel) -> list[str | None]:
    """Return the source of places and values; nothing where it does something else."""
    node: ast.stmt | None = statement_at(scatter.span, kernel.context)
    if scatter.by_element:
        while isinstance(node, ast.For) and len(node.body) == 1:
            node = node.body[0]
        if not isinstance(node, ast.Assign | ast.AugAssign):
            return []
        # in the order of the loops
        several = any(len(type_of(one, kernel).extents) > 1 for one in given)
        texts = [text_of(one, kernel) for one in given]
        return [text if text is None or not several else f"{text}.ravel()" for text in texts]
    match node:
        case ast.Expr(ast.Call(args=[_, *parts])) if len(parts) == 2:
            source = kernel.context.source
            return [ast.get_source_segment(source, one) for one in parts[: len(given)]]
    return []
