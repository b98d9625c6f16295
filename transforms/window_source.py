"""Window sums by prefix scans, as source."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind
from advisor.source import Edit
from transforms.windows import Window
from transforms.writing import fresh_name, python_text, replace_statement, stands_alone


@dataclass(frozen=True, slots=True)
class _Names:
    """Pieces of source that the lines of one window are made of."""

    module: str
    running: str
    lag: str
    terms: str
    width: str
    dtype: str
    indent: str


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
        several statements on a line, no name for the array module, or a size that has no
        name inside the function.
    """
    edits: list[Edit] = []
    for window, running in found:
        made = _edits_of_one(window, running, kernel)
        if made is None:
            return ()
        edits.extend(made)
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _edits_of_one(window: Window, running: str, kernel: Kernel) -> list[Edit] | None:
    context = kernel.context
    source_lines = context.source.splitlines()
    touched = [s for s in (window.start, window.moving, window.loop) if s is not None]
    if context.array_module is None or not all(
        stands_alone(source_lines, statement.span) for statement in touched
    ):
        return None
    terms = python_text(window.terms, context.scalar_texts)
    if terms is None:
        return None
    target_dtype, source_dtype = kernel.dtype(window.target), kernel.dtype(window.source)
    least = 1 if window.periodic else window.least
    names = _Names(
        module=context.array_module,
        running=running,
        lag=fresh_name("lag", context.identifiers),
        terms=terms,
        width=f"max({terms}, {least})",
        indent=context.indent,
        dtype=(
            f"{window.source}.dtype"
            if target_dtype == source_dtype
            else f"{context.array_module}.{target_dtype}"
        ),
    )
    dimensions = len(kernel.extents(window.target))
    write = _periodic if window.periodic else _bounded
    at_start, at_loop = write(window, names, dimensions)
    source = context.source
    edits = [
        replace_statement(window.start, at_start, source, source_lines),
        replace_statement(window.loop, at_loop, source, source_lines),
    ]
    if window.moving is not None:
        edits.append(replace_statement(window.moving, [], source, source_lines))
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
    if window.least:
        distance, short = names.width, f":-{lag}"
    else:
        # windows of no term at all and windows beyond the edge both come out right
        distance, short = f"min({names.width}, {extent})", f": {extent} - {lag}"
    place, taken = (f"{lag}:", short) if forward else (short, f"{lag}:")
    return at_start, [
        f"{lag} = {distance}",
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
