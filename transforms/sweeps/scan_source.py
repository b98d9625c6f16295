"""Source of scans: where they are called, and the loops over rows that take their place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind, Store
from advisor.ir.values import Scan
from advisor.source import Edit, Span
from transforms.source.nest_source import span_of, statements_at
from transforms.source.writing import replace_statement, stands_alone


@dataclass(frozen=True, slots=True)
class ScanCall:
    """A call of a scan in a statement.

    Attributes
    ----------
    span : Span
        The call.
    target : str or None
        The name that its result is given, if the statement does nothing else.
    """

    span: Span
    target: str | None


def scan_call(
    statement: Bind | Store, source: str, axis: int, function: str, kernel: Kernel
) -> ScanCall | None:
    """Return the one call in a statement that scans an array along an axis.

    None where there is none that is written out, or several; where the statement is no plain one;
    and where its target is the array itself.

    Parameters
    ----------
    statement : Bind or Store
    source : str
        The array.
    axis : int
        Counted from the first one.
    function : str
        ``"cumsum"`` or ``"cumprod"``.
    kernel : Kernel
    """
    context = kernel.context
    node = statements_at(context).get((statement.span.start_line, statement.span.start_column))
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Return) or node.value is None:
        return None
    dimensions = len(kernel.extents(source))
    found = [
        part
        for part in ast.walk(node.value)
        if isinstance(part, ast.Call)
        and _is_scan(part, source, axis, function, dimensions, context.array_module)
    ]
    if len(found) != 1:
        return None
    target = None
    if isinstance(node, ast.Assign) and node.value is found[0]:
        (named, *others) = node.targets
        if isinstance(named, ast.Name):
            target = named.id
            if others or target == source or target in kernel.arrays:
                return None
    elif isinstance(statement, Bind) and isinstance(node, ast.Assign) and not _computes(node.value):
        # a view of the rows would share their memory
        return None
    return ScanCall(span_of(found[0], context.lines), target)


def _computes(node: ast.expr) -> bool:
    """Return whether an expression is arithmetic, whose result has memory of its own."""
    return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call)


def _is_scan(
    node: ast.Call, source: str, axis: int, function: str, dimensions: int, module: str | None
) -> bool:
    called = node.func
    if not isinstance(called, ast.Attribute) or called.attr != function:
        return False
    if not isinstance(called.value, ast.Name):
        return False
    given = list(node.args)
    if called.value.id != source:
        if called.value.id != module or not given:
            return False
        operand = given.pop(0)
        if not isinstance(operand, ast.Name) or operand.id != source:
            return False
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    if not named.keys() <= {"axis", "dtype"} or len(given) > 2:
        return False
    along = given[0] if given else named.get("axis")
    try:
        place = None if along is None else ast.literal_eval(along)
    except ValueError:
        return False
    return isinstance(place, int) and place % dimensions == axis


def scan_edits(
    call: ScanCall, source: str, scan: Scan, target: str, index: str, span: Span, kernel: Kernel
) -> tuple[Edit, ...]:
    """Return the edits that compute a scan row by row.

    Empty where the statement does not stand alone on its lines, or where NumPy or ``range`` go by
    no name that is certain.

    Parameters
    ----------
    call : ScanCall
    source : str
        The array that is scanned.
    scan : Scan
    target, index : str
        Names for the result and for the rows.
    span : Span
        Of the statement.
    kernel : Kernel
    """
    context = kernel.context
    if context.array_module is None or "range" in context.not_builtins or context.decorators:
        return ()
    if not stands_alone(context, span):
        return ()
    lines = list(_lines(source, scan, target, index, kernel))
    if call.target is not None:
        return (replace_statement(span, lines, context),)
    indent = context.lines[span.start_line - 1][: span.start_column]
    start = Span(span.start_line, span.start_column, span.start_line, span.start_column)
    above = "".join(f"{line}\n{indent}" for line in lines)
    return (Edit(start, above), Edit(call.span, target))


def _lines(source: str, scan: Scan, target: str, index: str, kernel: Kernel) -> Iterator[str]:
    module, indent = kernel.context.array_module, kernel.context.indent
    before = ":, " * scan.axis
    dtype = "" if scan.dtype == kernel.dtype(source) else f", dtype={module}.{scan.dtype}"
    yield f"{target} = {module}.empty_like({source}{dtype})"
    yield f"{target}[{before}:1] = {source}[{before}:1]"
    yield f"for {index} in range(1, {source}.shape[{scan.axis}]):"
    last, own = f"{target}[{before}{index} - 1]", f"{source}[{before}{index}]"
    yield f"{indent}{module}.{scan.operation}({last}, {own}, out={target}[{before}{index}])"
