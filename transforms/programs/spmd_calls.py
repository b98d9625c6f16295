"""Calls of SPMD programs as rules rewrite them: their texts, places and surroundings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO
from tokenize import COMMENT, generate_tokens

from advisor.ir.spmd.memory import Contiguity, Order, View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import RANKS, Program, SpmdFunction
from advisor.ir.spmd.steps import Communicate
from advisor.source import Edit, Span
from costdb.expr import Expr, free_symbols
from costdb.wording import IDENTIFIER
from transforms.source.writing import python_text, stands_alone

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = frozenset({"float32", "float64", "complex64", "complex128"})
SENDABLE = INTEGERS | FLOATS
"""Element types that mpi4py maps to those of MPI by itself, on every platform."""

_KEYWORD = re.compile(r"\A\s*\w+\s*=(?!=)\s*")
_NAME = re.compile(IDENTIFIER)


def argument(step: Communicate, name: str, program: Program) -> str | None:
    """Return the text of an argument's value; None where it is left out."""
    place = step.places.get(name)
    if place is None:
        return None
    return _KEYWORD.sub("", program.context.text(place), count=1)


def keywords(step: Communicate, names: Iterable[str], program: Program) -> list[str]:
    """Return arguments as keywords, those that are given."""
    found = ((name, argument(step, name, program)) for name in names)
    return [f"{name}={text}" for name, text in found if text is not None]


def is_simple(step: Communicate, program: Program) -> bool:
    """Return whether a statement is nothing but a call, whose value may get a name.

    It stands alone on its lines, and holds no comment, so that it can be replaced as a whole.
    """
    context = program.context
    statement = context.text(step.statement)
    if "#" in statement or not stands_alone(context, step.statement):
        return False
    call = context.text(step.span)
    if step.result is None:
        return statement == call
    return is_name(step.result) and _without_blanks(statement) == _without_blanks(
        f"{step.result}={call}"
    )


def is_name(text: str) -> bool:
    """Return whether a text is a name."""
    return _NAME.fullmatch(text) is not None


def _without_blanks(text: str) -> str:
    return re.sub(r"\s+", "", text)


def statement_edit(step: Communicate, lines: list[str], program: Program) -> Edit:
    """Return the edit that puts lines in the place of a call's statement."""
    context = program.context
    indent = context.lines[step.statement.start_line - 1][: step.statement.start_column]
    return Edit(step.statement, f"\n{indent}".join(lines))


def comments_within(place: Span, program: Program) -> list[str]:
    """Return the comments that stand in a stretch of source, which an edit would lose."""
    return [
        token.string
        for token in generate_tokens(StringIO(program.context.source).readline)
        if token.type == COMMENT and place.contains(Span(*token.start, *token.end))
    ]


def array_payload(payload: Payload | None) -> View | None:
    """Return the view of a payload that is surely an array of known type and shape.

    None, too, where a new array might not have the order in which it would be sent: strided
    views of one dimension and C-ordered ones are fine, once they are copied to one stretch.
    """
    if payload is None or payload.kind is not PayloadKind.ARRAY or payload.view is None:
        return None
    view = payload.view
    if payload.dtype not in SENDABLE or view.shape is None or payload.count is None:
        return None
    if view.contiguity is Contiguity.UNKNOWN or payload.parts:
        return None
    return view if len(view.shape) == 1 or view.order is Order.C else None


def is_contiguous(view: View) -> bool:
    """Return whether a view can be sent as it stands."""
    return view.contiguity is Contiguity.YES


def is_uniform(program: Program, sizes: Iterable[Expr]) -> bool:
    """Return whether sizes are known, and the same on every rank."""
    return all(
        name == RANKS or (name in program.sizes and program.sizes[name].value is not None)
        for size in sizes
        for name in free_symbols(size)
    )


def shape_text(view: View, function: SpmdFunction, program: Program, place: Span) -> str | None:
    """Return the shape of a view as Python that means it at a place; None where nothing does."""
    shape = view.shape
    if shape is None:
        return None
    texts = {
        name: name
        for size in shape
        for name in free_symbols(size)
        if _has_value_at(name, function, program, place)
    }
    parts = [python_text(size, texts) for size in shape]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return known[0] if len(known) == 1 else f"({', '.join(known)})"


def _has_value_at(name: str, function: SpmdFunction, program: Program, place: Span) -> bool:
    """Return whether a symbol's name surely denotes it at a place, on every rank that gets there.

    That is so for a name with one meaning that is bound before, in a block around the place.
    """
    if not is_name(name) or any(re.fullmatch(rf"{name}_\d+", other) for other in program.sizes):
        return False
    if name in function.parameters:
        return True
    fact = program.sizes.get(name)
    if fact is None or fact.span is None or fact.span.start_line >= place.start_line:
        return False
    column = fact.span.start_column
    if column > 0 and not function.whole.contains(fact.span):
        return False
    between = program.context.lines[fact.span.start_line - 1 : place.start_line]
    if column > 0:
        return all(_indent(line) >= column for line in between if line.strip())
    return program.context.lines[fact.span.start_line - 1].startswith(name)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
