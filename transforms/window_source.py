"""Window sums by prefix scans, as source."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.ir.kernel import Kernel, SourceContext
from advisor.ir.statements import Bind
from advisor.source import Edit
from costdb.expr import Expr, maximum, minimum, num, sym
from transforms.windows import Window
from transforms.writing import fresh_name, python_text, replace_statement, stands_alone

_EXTENT = "axis.extent"
_BUILTINS = frozenset({"max", "min"})


@dataclass(frozen=True, slots=True)
class _Names:
    """Pieces of source that the lines of one window are made of."""

    module: str
    running: str
    lag: str
    width: str
    terms: str
    dtype: str
    indent: str


def lag_of(window: Window, extent: Expr) -> Expr:
    """Return the distance between the two prefix sums whose difference is a window.

    It is right for any whole number of terms, and for arrays of any extent, none included.
    """
    if window.periodic:
        # nothing can be wrapped around an empty axis, nor need it be
        return maximum(window.terms * minimum(extent, num(1)), num(1))
    if window.least:
        return maximum(window.terms, num(1))
    # windows of no term at all and windows beyond the edge both come out right
    return minimum(maximum(window.terms, num(0)), extent)


def window_edits(found: tuple[tuple[Window, str], ...], kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edits that write windows as scans.

    Parameters
    ----------
    found : tuple of (Window, str)
        Each window, and the name of the array that is to hold its prefix sums.
    kernel : Kernel

    Returns
    -------
    tuple of Edit
        In order of their places; empty where the source does not allow a mechanical edit:
        several statements on a line, no name for the array module, a size that has no name
        inside the function, or a builtin that means something else there.
    """
    context = kernel.context
    if context.array_module is None or context.not_builtins & _BUILTINS or context.decorators:
        return ()
    taken = set(context.identifiers) | {running for _, running in found}
    lags: dict[str, str] = {}
    edits: list[Edit] = []
    for window, running in found:
        touched = [s for s in (window.start, window.moving, window.loop) if s is not None]
        if not all(stands_alone(context, statement.span) for statement in touched):
            return ()
        names = _names(window, running, context.array_module, kernel, lags, taken)
        if names is None:
            return ()
        edits += _edits_of_one(window, names, len(kernel.extents(window.target)), context)
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _names(
    window: Window,
    running: str,
    module: str,
    kernel: Kernel,
    lags: dict[str, str],
    taken: set[str],
) -> _Names | None:
    context = kernel.context
    texts = {**context.scalar_texts, _EXTENT: f"{window.source}.shape[{window.axis}]"}
    terms = python_text(window.terms, texts)
    width = python_text(lag_of(window, sym(_EXTENT)), texts)
    if terms is None or width is None:
        return None
    if width not in lags:
        # equal widths may share a name; others may not, for windows may be interleaved
        lags[width] = fresh_name("lag", taken)
        taken.add(lags[width])
    target_dtype, source_dtype = kernel.dtype(window.target), kernel.dtype(window.source)
    same = target_dtype == source_dtype
    return _Names(
        module=module,
        running=running,
        lag=lags[width],
        width=width,
        terms=terms,
        dtype=f"{window.source}.dtype" if same else f"{module}.{target_dtype}",
        indent=context.indent,
    )


def _edits_of_one(
    window: Window, names: _Names, dimensions: int, context: SourceContext
) -> list[Edit]:
    write = _periodic if window.periodic else _bounded
    at_start, at_loop = write(window, names, dimensions)
    edits = [
        replace_statement(window.start.span, at_start, context),
        replace_statement(window.loop.span, at_loop, context),
    ]
    if window.moving is not None:
        edits.append(replace_statement(window.moving.span, [], context))
    return edits


def _subscript(text: str, axis: int, dimensions: int) -> str:
    return ", ".join(text if d == axis else ":" for d in range(dimensions))


def _first_value(window: Window, value: str) -> str:
    if isinstance(window.start, Bind):
        return f"{window.target} = {value}.copy()"
    return f"{window.target}[...] = {value}"


def _bounded(window: Window, names: _Names, dimensions: int) -> tuple[list[str], list[str]]:
    """Return the lines at the start and at the loop for windows that end at the edge."""
    axis, lag, running = window.axis, names.lag, names.running

    def part(text: str) -> str:
        return _subscript(text, axis, dimensions)

    forward = window.side < 0
    scanned = window.source if forward else f"{window.source}[{part('::-1')}]"
    back = "" if forward else f"[{part('::-1')}]"
    scan = f"{names.module}.cumsum({scanned}, axis={axis}, dtype={names.dtype}){back}"
    at_start = [f"{running} = {scan}", _first_value(window, running)]
    extent = f"{window.source}.shape[{axis}]"
    short = f":-{lag}" if window.least else f": {extent} - {lag}"
    place, taken = (f"{lag}:", short) if forward else (short, f"{lag}:")
    return at_start, [
        f"{lag} = {names.width}",
        f"{window.target}[{part(place)}] -= {running}[{part(taken)}]",
    ]


def _periodic(window: Window, names: _Names, dimensions: int) -> tuple[list[str], list[str]]:
    """Return the lines for windows that wrap around: the array is extended by its other end."""
    axis, lag, running = window.axis, names.lag, names.running
    widths = (f"({lag} - 1, 0)" if window.side < 0 else f"(0, {lag} - 1)",)
    by_dimension = ", ".join(widths[0] if d == axis else "(0, 0)" for d in range(dimensions))
    comma = "," if dimensions == 1 else ""
    padded = f'{names.module}.pad({window.source}, ({by_dimension}{comma}), mode="wrap")'
    scan = f"{names.module}.cumsum({padded}, axis={axis}, dtype={names.dtype})"
    first = f"{running}[{_subscript(f'{lag} - 1 :', axis, dimensions)}]"
    at_start = [f"{lag} = {names.width}", f"{running} = {scan}", _first_value(window, first)]
    place = _subscript("1:", axis, dimensions)
    taken = _subscript(f":-{lag}", axis, dimensions)
    at_loop = [f"{window.target}[{place}] -= {running}[{taken}]"]
    if not window.least:
        # sums of no term at all, which a window that wraps around cannot express
        at_loop += [f"if {names.terms} < 1:", f"{names.indent}{window.target}[...] = 0"]
    return at_start, at_loop
