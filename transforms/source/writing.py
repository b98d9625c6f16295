"""Writing source: fresh names, size expressions as Python, edits that keep comments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.ir.kernel import SourceContext
from advisor.source import Edit, Span
from costdb.expr import Expr
from costdb.expr.functions import Max, Min
from costdb.expr.nodes import Add, CeilDiv, FloorDiv, Mod, Mul, Num, Sym


def fresh_name(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted`, or the first of ``wanted_2``, ``wanted_3`` ... that nobody uses."""
    used = set(taken)
    name, number = wanted, 1
    while name in used:
        number += 1
        name = f"{wanted}_{number}"
    return name


def python_text(expr: Expr, texts: Mapping[str, str]) -> str | None:
    """Return Python source for a whole-number expression; None where a size has no name there.

    Parameters
    ----------
    expr : Expr
    texts : mapping of str to str
        Source text for each symbol.
    """
    match expr:
        case Num(value):
            return str(value) if isinstance(value, int) else None
        case Sym(name):
            return texts.get(name)
        case Add(terms, constant):
            return _sum(terms, constant, texts)
        case Mul(factors, coefficient):
            parts = [_grouped(factor, texts) for factor in factors]
            if coefficient != 1:
                parts.insert(0, str(coefficient))
            whole = isinstance(coefficient, int)
            return _joined(" * ", parts) if whole else None
        case FloorDiv(dividend, divisor):
            return _joined(" // ", [_grouped(dividend, texts), _grouped(divisor, texts)])
        case CeilDiv(dividend, divisor):
            inner = _joined(" // ", [_grouped(dividend, texts), _grouped(divisor, texts)])
            return None if inner is None else f"-(-{inner})"
        case Mod(dividend, divisor):
            return _joined(" % ", [_grouped(dividend, texts), _grouped(divisor, texts)])
        case Max() | Min():
            name = "max" if isinstance(expr, Max) else "min"
            inner = _joined(", ", [python_text(part, texts) for part in expr.children])
            return None if inner is None else f"{name}({inner})"
    return None


def _joined(between: str, parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return between.join(known) if len(known) == len(parts) else None


def _grouped(expr: Expr, texts: Mapping[str, str]) -> str | None:
    inner = python_text(expr, texts)
    if inner is None or isinstance(expr, Sym | Num | Max | Min):
        return inner
    return f"({inner})"


def _sum(terms: tuple[Expr, ...], constant: object, texts: Mapping[str, str]) -> str | None:
    text = ""
    for term in (*terms, *([Num(constant)] if isinstance(constant, int) and constant else [])):
        inner = python_text(term, texts)
        if inner is None:
            return None
        if not text:
            text = inner
        elif inner.startswith("-"):
            text += f" - {inner[1:]}"
        else:
            text += f" + {inner}"
    return text if isinstance(constant, int) else None


def stands_alone(context: SourceContext, span: Span) -> bool:
    """Return whether nothing but blanks and a comment shares the lines of a statement."""
    lines = context.lines
    before = lines[span.start_line - 1][: span.start_column]
    after = lines[span.end_line - 1][span.end_column :].strip()
    continued = span.start_line > 1 and lines[span.start_line - 2].endswith("\\")
    return not before.strip() and not continued and (not after or after.startswith("#"))


def replace_statement(span: Span, lines: list[str], context: SourceContext) -> Edit:
    """Return the edit that puts `lines` in the place of a statement.

    Comments within the statement come before the new lines. With no lines and no comments the
    statement's own line goes, unless a comment follows on it.
    """
    source_lines = context.lines
    indent = source_lines[span.start_line - 1][: span.start_column]
    kept = [context.text(comment) for comment in context.comments if span.contains(comment)]
    rest = source_lines[span.end_line - 1][span.end_column :]
    if not lines and rest.strip():
        # a comment follows, and takes the place of the statement
        column = span.end_column + len(rest) - len(rest.lstrip())
        before = "".join(f"{comment}\n{indent}" for comment in kept)
        return Edit(Span(span.start_line, span.start_column, span.end_line, column), before)
    if lines or kept:
        return Edit(span, f"\n{indent}".join([*kept, *lines]))
    return Edit(Span(span.start_line, 0, span.end_line + 1, 0), "")
