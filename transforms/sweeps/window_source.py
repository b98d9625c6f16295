"""Window sums by prefix scans, as source."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.ir.kernel import Kernel, SourceContext
from advisor.ir.statements import Bind
from advisor.source import Edit
from costdb.expr import Expr, maximum, minimum, num, sym
from transforms.kit.rewrite import fresh_name, python_text, replace_statement, stands_alone
from transforms.sweeps.windows import Window

_EXTENT = "axis.extent"
_LAG = "window.lag"
_BUILTINS = frozenset({"max", "min"})


@dataclass(frozen=True, slots=True)
class _Names:
    """Pieces of source that the lines of one window are made of.

    `ahead` names what `reach` computes, where windows reach to both sides.
    """

    module: str
    target: str
    running: str
    lag: str
    width: str
    dtype: str
    ahead: str | None
    reach: str


def lag_of(window: Window, extent: Expr) -> Expr:
    """Return the distance between the two prefix sums whose difference is a window.

    It is right for any whole number of terms, and for arrays of any extent, none included.
    """
    terms = maximum(window.terms, num(window.least))
    if window.periodic:
        # nothing can be wrapped around an empty axis, nor need it be
        return terms * minimum(extent, num(1))
    # windows of no term at all and windows beyond the edge both come out right
    return terms if window.least else minimum(terms, extent)


def ahead_of(window: Window, lag: Expr) -> Expr:
    """Return by how much a periodic window is moved to its other side, none if it has no term."""
    return num(0) if window.ahead == num(0) else minimum(maximum(window.ahead, num(0)), lag)


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
    width = python_text(lag_of(window, sym(_EXTENT)), texts)
    if width is None:
        return None
    if width not in lags:
        # equal widths may share a name; others may not, for windows may be interleaved
        lags[width] = fresh_name("lag", taken)
        taken.add(lags[width])
    reach = python_text(ahead_of(window, sym(_LAG)), {**texts, _LAG: lags[width]})
    if reach is None:
        return None
    ahead = None
    if reach != "0":
        ahead = fresh_name("ahead", taken)
        taken.add(ahead)
    target_dtype, source_dtype = kernel.dtype(window.target), kernel.dtype(window.source)
    same = target_dtype == source_dtype
    return _Names(
        module=module,
        target=_declared(window, context),
        running=running,
        lag=lags[width],
        width=width,
        ahead=ahead,
        reach=reach,
        dtype=f"{window.source}.dtype" if same else f"{module}.{target_dtype}",
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


def _declared(window: Window, context: SourceContext) -> str:
    """Return the name of the sums as their first statement binds it, annotation included."""
    if not isinstance(window.start, Bind):
        return window.target
    import ast  # only wanted where something is edited

    text = context.text(window.start.span)
    match ast.parse(text).body:
        case [ast.AnnAssign(annotation=annotation)]:
            segment = ast.get_source_segment(text, annotation)
            if segment is None or "\n" in segment:
                segment = ast.unparse(annotation)
            return f"{window.target}: {segment}"
    return window.target


def _assigned(window: Window, names: _Names, fresh: str, stored: str) -> str:
    if isinstance(window.start, Bind):
        return f"{names.target} = {fresh}"
    return f"{window.target}[...] = {stored}"


def _scanned(window: Window, names: _Names, source: str, dimensions: int) -> str:
    """Return the prefix sums of a source, or its suffix sums where windows reach upwards."""
    back = "" if window.side < 0 else f"[{_subscript('::-1', window.axis, dimensions)}]"
    scan = f"{names.module}.cumsum({source}{back}, axis={window.axis}, dtype={names.dtype}){back}"
    return f"{names.running} = {scan}"


def _bounded(window: Window, names: _Names, dimensions: int) -> tuple[list[str], list[str]]:
    """Return the lines at the start and at the loop for windows that end at the edge."""
    lag, running = names.lag, names.running
    extent = f"{window.source}.shape[{window.axis}]"
    short = f":-{lag}" if window.least else f": {extent} - {lag}"
    place, taken = (f"{lag}:", short) if window.side < 0 else (short, f"{lag}:")
    place, taken = (_subscript(text, window.axis, dimensions) for text in (place, taken))
    at_start = [
        _scanned(window, names, window.source, dimensions),
        _assigned(window, names, f"{running}.copy()", running),
    ]
    return at_start, [
        f"{lag} = {names.width}",
        f"{window.target}[{place}] -= {running}[{taken}]",
    ]


def _periodic(window: Window, names: _Names, dimensions: int) -> tuple[list[str], list[str]]:
    """Return the lines for windows that wrap around: the array is extended by its other end."""
    lag, running = names.lag, names.running
    far, near = (lag, "0") if names.ahead is None else (f"{lag} - {names.ahead}", names.ahead)
    around = f"({far}, {near})" if window.side < 0 else f"({near}, {far})"
    widths = ", ".join(around if d == window.axis else "(0, 0)" for d in range(dimensions))
    comma = "," if dimensions == 1 else ""
    padded = f'{names.module}.pad({window.source}, ({widths}{comma}), mode="wrap")'
    extent = f"{window.source}.shape[{window.axis}]"
    ends = (f"{lag}:", f": {extent}") if window.side < 0 else (f": {extent}", f"{lag}:")
    more, less = (_subscript(text, window.axis, dimensions) for text in ends)
    difference = f"{running}[{more}] - {running}[{less}]"
    at_start = [
        f"{lag} = {names.width}",
        *([] if names.ahead is None else [f"{names.ahead} = {names.reach}"]),
        _scanned(window, names, padded, dimensions),
        _assigned(window, names, difference, difference),
    ]
    return at_start, []
