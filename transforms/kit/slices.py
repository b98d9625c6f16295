"""Slices in the place of elements that loops go through: their regions, statements and source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from advisor.dtypes import Kind
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest, index_name, slopes
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.signs import non_negative_within
from advisor.ir.statements import Loop, Store
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Point,
    Range,
    Read,
    Scalar,
    Subscript,
    Value,
    operands,
    reads,
)
from advisor.numpy_table import promote
from advisor.source import Span
from costdb.expr import Expr, evaluate, free_symbols, maximum, num, sym
from costdb.expr.nodes import Num, Sym
from costdb.records import dataclass, field
from costdb.wording import IDENTIFIER
from transforms.kit.kernels import type_of
from transforms.kit.rewrite import python_text, span_of

ZERO = num(0)
_NAME = re.compile(IDENTIFIER)


# --- what is known within loops -----------------------------------------------------------------


@dataclass(slots=True)
class Proofs:
    """What holds wherever some loops are running.

    Attributes
    ----------
    minima : dict of str to int
        Least values of symbols; of any other symbol nothing is known.
    greatest : dict of str to Expr
        Greatest values of the indices of the loops, outermost first.
    """

    minima: dict[str, int]
    greatest: dict[str, Expr] = field(default_factory=dict)

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        named = set(free_symbols(expr))
        for index in reversed(self.greatest):
            if index in named:
                named |= free_symbols(self.greatest[index])
        return named <= self.minima.keys() and non_negative_within(expr, self.minima, self.greatest)

    def empty_when_negative(self, start: Expr, stop: Expr, extent: Expr) -> bool:
        """Return whether ``start:stop`` selects nothing whenever `stop` is negative.

        A negative bound counts from the end, so it does only where the array is as short.
        """
        symbols = free_symbols(start) | free_symbols(stop) | free_symbols(extent)
        if len(symbols) != 1 or symbols & self.greatest.keys():
            return False
        (name,) = symbols
        if not isinstance(stop - sym(name), Num) or name not in self.minima:
            return False
        for size in range(self.minima[name], -int(evaluate(stop - sym(name), {}))):
            first, last, length = (int(evaluate(e, {name: size})) for e in (start, stop, extent))
            if range(*slice(first, last).indices(length)):
                return False
        return True


def proofs(kernel: Kernel, running: Sequence[Loop]) -> Proofs:
    """Return what is known within some loops of a kernel, outermost first."""
    minima = {
        extent.name: 0
        for array in kernel.arrays.values()
        for extent in array.extents
        if isinstance(extent, Sym)
    }
    known = Proofs(minima)
    for loop in running:
        if loop.stated:
            # a pragma says how often it runs, not how far its index goes
            continue
        low = loop.low
        if isinstance(low, Num):
            minima[loop.variable] = int(low.value)
        elif known.non_negative(low):
            minima[loop.variable] = 0
        known.greatest[loop.variable] = loop.high - 1
    return known


# --- slices


def sliced_nest(nest: Nest, outer: int, kernel: Kernel) -> Sliced:
    """Return what makes slices of the elements that the inner loops of a nest go through."""
    known = proofs(kernel, (*nest.around, *nest.loops[:outer]))
    made = Sliced(nest, outer, kernel, known)
    for store in nest.body:
        for read in (Read(store.array, store.region), *reads(store.value)):
            # all slices along an index must have one length, and be seen to have it
            made.region(read.array, read.region)
    return made


@dataclass(frozen=True, slots=True)
class Sliced:
    """Makes slices of the elements that some inner loops go through, as `sliced_nest` gives it.

    Attributes
    ----------
    clamped : set of str
        Indices whose ranges must not end before they start: a bound that is negative then would
        count from the end.
    """

    nest: Nest
    outer: int
    kernel: Kernel
    known: Proofs
    clamped: set[str] = field(default_factory=set)

    def stores(self) -> tuple[Store, ...] | None:
        """Return all statements over slices; None where one of them cannot be."""
        made = [self.store(store) for store in self.nest.body]
        found = tuple(store for store in made if store is not None)
        return found if len(found) == len(made) else None

    @property
    def inner(self) -> tuple[str, ...]:
        """The indices of the inner loops, outermost first."""
        return self.nest.variables[self.outer :]

    def store(self, store: Store) -> Store | None:
        """Return a store to a slice; None where it cannot be one."""
        axes = self.axes(store.region)
        if axes is None or sorted(axes) != sorted(self.inner):
            # an element that several iterations store to: the last one counts
            return None
        region = self.region(store.array, store.region)
        value = self.value(store.value, axes)
        if region is None or value is None or not self._fits(store):
            return None
        return Store(store.array, region, value, store.span, store.in_place)

    def _fits(self, store: Store) -> bool:
        """Return whether storing an array converts its elements as storing each one does."""
        target, value = self.kernel.dtype(store.array), type_of(store.value, self.kernel).dtype
        arithmetic = kind_of_or_none(target) not in (None, Kind.BOOLEAN)
        return arithmetic and promote(target, value) == target

    def axes(self, region: tuple[Subscript, ...]) -> list[str] | None:
        """Return the index that each sliced dimension follows; None where that is not clear."""
        found: list[str] = []
        for part in region:
            slope = slopes(part, self.inner)
            if slope is None or len(slope) > 1 or any(step != 1 for step in slope.values()):
                return None
            found += slope
        return found if len(set(found)) == len(found) else None

    def value(self, value: Value, axes: list[str]) -> Value | None:
        """Return a value over slices whose dimensions follow so many indices."""
        match value:
            case Read(array, region):
                own = self.axes(region)
                made = None if own is None else self.region(array, region)
                if own is None or made is None:
                    return None
                return _lined_up(Read(array, made), own, axes)
            case Scalar(text, _):
                names = {index_name(variable) for variable in self.inner}
                return None if names & set(_NAME.findall(text)) else value
            case Copy(operand, dtype):
                inside = self.value(operand, axes)
                return None if inside is None else Copy(inside, dtype)
            case Elementwise(operation, parts):
                made_parts = [self.value(part, axes) for part in parts]
                whole = tuple(part for part in made_parts if part is not None)
                return Elementwise(operation, whole) if len(whole) == len(parts) else None
        return None

    def region(self, array: str, region: tuple[Subscript, ...]) -> tuple[Subscript, ...] | None:
        """Return the slices that the subscripts of an element go through."""
        loops = {loop.variable: loop for loop in self.nest.loops[self.outer :]}
        made: list[Subscript] = []
        for part, extent in zip(region, self.kernel.extents(array), strict=True):
            slope = slopes(part, self.inner) if isinstance(part, Point) else None
            if slope is None or len(slope) > 1 or not isinstance(part, Point):
                return None
            if not slope:
                # it is looked at even where there are no elements beside it
                inside = self.known.non_negative(part.at) and self.known.non_negative(
                    extent - part.at - 1
                )
                if not inside:
                    return None
                made.append(part)
                continue
            (variable,) = slope
            loop = loops[variable]
            distance = part.at - sym(variable)
            low, high = loop.low + distance, loop.high + distance
            if variable in self.clamped:
                made.append(Range(low, maximum(loop.low, loop.high) + distance))
                continue
            ends_inside = self.kernel.runs_through or self.known.non_negative(extent - high)
            if not (self.known.non_negative(low) and ends_inside):
                return None
            counts = self.known.non_negative(high)
            if not counts and not self.known.empty_when_negative(low, high, extent):
                self.clamped.add(variable)
            made.append(Range(low, high))
        return tuple(made)


def _lined_up(read: Read, own: list[str], axes: list[str]) -> Value | None:
    """Return slices with new axes after them, as NumPy lines up dimensions from the last one."""
    if not own:
        return read
    if own[0] not in axes:
        return None
    first = axes.index(own[0])
    if own != axes[first : first + len(own)]:
        return None
    made: Value = read
    for position in range(len(own), len(axes) - first):
        made = Expand(made, position)
    return made


def shown_reads(value: Value) -> list[tuple[Read, int]]:
    """Return the slices in a value, left to right, and how many new axes follow each."""
    added = 0
    while isinstance(value, Expand):
        value, added = value.operand, added + 1
    if isinstance(value, Read):
        return [(value, added)]
    return [found for part in operands(value) for found in shown_reads(part)]


# --- their source


def slice_edits(
    nodes: tuple[ast.expr, ...], before: list[Read], after: list[tuple[Read, int]], kernel: Kernel
) -> list[tuple[Span, str]] | None:
    """Return the edits that make slices of the elements in some expressions.

    None where the source does not show the elements, in this order, or computes with numbers only.

    Parameters
    ----------
    nodes : tuple of ast.expr
    before : list of Read
        The elements.
    after : list of (Read, int)
        The slices that they become, and how many new axes follow each.
    kernel : Kernel
    """
    found = [element for node in nodes for element in _elements(node)]
    if [name for name, _ in found] != [read.array for read in before]:
        return None
    if any(_of_numbers(part, kernel) for node in nodes for part in ast.walk(node)):
        return None
    lines = kernel.context.lines
    edits: list[tuple[Span, str]] = []
    for (_, subscript), one, (other, added) in zip(found, before, after, strict=True):
        parts = _indices(subscript)
        if len(parts) != len(one.region):
            return None
        for part, was, becomes in zip(parts, one.region, other.region, strict=True):
            if was == becomes:
                continue
            text = _slice(becomes, kernel)
            if text is None:
                return None
            edits.append((span_of(part, lines), text))
        if added:
            last = span_of(parts[-1], lines)
            kept = dict(edits).get(last, kernel.context.text(last))
            edits = [edit for edit in edits if edit[0] != last]
            edits.append((last, kept + ", None" * added))
    return edits


def edited(span: Span, edits: list[tuple[Span, str]], kernel: Kernel) -> str:
    """Return the text of a span on one line, after edits of that line."""
    original = line = kernel.context.lines[span.start_line - 1]
    for part, text in sorted(edits, reverse=True):
        if span.contains(part):
            line = line[: part.start_column] + text + line[part.end_column :]
    end = len(line) - (len(original) - span.end_column)
    return line[span.start_column : end]


def _of_numbers(node: ast.AST, kernel: Kernel) -> bool:
    """Return whether a call takes numbers only, or may, or a choice needs one."""
    if isinstance(node, ast.IfExp):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Name):
        return called.id != "abs"
    base = called
    while isinstance(base, ast.Attribute):
        base = base.value
    return not (isinstance(base, ast.Name) and base.id == kernel.context.array_module)


def _elements(node: ast.expr) -> Iterator[tuple[str, ast.Subscript]]:
    """Yield the subscripts of names, in the order of the source."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        yield node.value.id, node
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _elements(child)


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def sliced_text(read: Read, kernel: Kernel) -> str | None:
    """Return the source of a region; None where a bound has no name in the source."""
    texts = kernel.context.scalar_texts
    parts = [
        python_text(part.at, texts) if isinstance(part, Point) else _slice(part, kernel)
        for part in read.region
    ]
    known = [part for part in parts if part is not None]
    return f"{read.array}[{', '.join(known)}]" if len(known) == len(parts) else None


def _slice(part: Subscript, kernel: Kernel) -> str | None:
    if not isinstance(part, Range):
        return None
    texts = kernel.context.scalar_texts
    low = "" if part.low == ZERO else python_text(part.low, texts)
    high = python_text(part.high, texts)
    if low is None or high is None:
        return None
    if "max(" in high and "max" in kernel.context.not_builtins:
        return None
    return f"{low}:{high}"
