"""The work of a program's array operations: that of the same operations in a kernel.

A view is a region of a named array, seen otherwise. Every rank has all of what is its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.analysis.arrays import Arrays
from advisor.analysis.facts import Facts, NotPriced
from advisor.analysis.halos import Halos
from advisor.analysis.owners import local
from advisor.analysis.placement import Placement
from advisor.distribution import StorageOrder
from advisor.ir.concrete import mapped
from advisor.ir.dependence import bounds_of
from advisor.ir.kernel import Kernel, SourceContext
from advisor.ir.shapes import ArrayType, ShapeConflict, agreed, describe, whole
from advisor.ir.spmd.memory import Order, View, extent_of
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.ir.statements import SET, Scatter, Store
from advisor.ir.values import Copy as Copied
from advisor.ir.values import Fill, Point, Range, Read, Strided, Subscript, Transpose, Value
from advisor.numpy_table import UNKNOWN_DTYPE
from costdb.expr import Expr
from costdb.records import dataclass, field, replace
from costdb.work import Process

ASSUMED_DTYPE = "float64"
"""The element type of arrays of which the source does not tell it."""

_NO_SOURCE = SourceContext("", None, {}, frozenset(), "")


def of_arrays(step: Allocate | Copy | Compute) -> list[Process]:
    """Return the work of one operation, a copy, or new memory, of which much is known.

    Raises
    ------
    NotPriced
        Its operands do not fit, or no model has it.
    """
    try:
        return agreed(lambda alike: _Memory(alike).work(step))
    except ShapeConflict as reason:
        raise NotPriced(str(reason)) from reason


@dataclass(slots=True)
class _Memory:
    """The arrays of a step, by names; `alike` says which extents are taken to be others."""

    alike: Mapping[Expr, Expr]
    types: dict[str, ArrayType] = field(default_factory=dict)
    placed: dict[str, Placement] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Of buffers: several may have one name."""

    def work(self, step: Allocate | Copy | Compute) -> list[Process]:
        """Return the work of a step."""
        target: View | None = None
        fresh = True
        match step:
            case Allocate(buffer=buffer):
                filled = "0" if step.filled else ""
                value: Value = Fill(filled, buffer.extents or (), buffer.dtype or ASSUMED_DTYPE)
            case Copy(source=source, allocates=fresh):
                target = step.target
                value = self.value(source)
                if fresh:
                    value = Copied(value, step.target.dtype or source.dtype or ASSUMED_DTYPE)
            case Compute(reads=reads, value=operation, allocates=fresh):
                target = step.target
                assert operation is not None

                def shown(part: object) -> object:
                    if part == UNKNOWN_DTYPE:
                        return ASSUMED_DTYPE
                    return self.value(reads[int(part.array)]) if isinstance(part, Read) else None

                value = mapped(operation, shown)
                if step.places and target is not None:
                    first, *others = mapped(step.places, shown)
                    name = self.place(target)[0]
                    stored = Scatter(name, first, value, SET, step.span, others=tuple(others))
                    return self._arrays(step).scattered(stored)
        if target is None and not isinstance(step, Allocate):
            return self._arrays(step).number(value)
        if fresh or target is None:
            return self._arrays(step).made(value)
        name, region = self.place(target)
        arrays = self._arrays(step)
        alike = len(describe(value, arrays.type_of).extents) == len(target.shape or ())
        if target.transposed and not target.flat and alike:
            value = _turned(value, target)
        in_place = isinstance(step, Compute)
        return arrays.stored(Store(name, region, value, step.span, in_place=in_place))

    def value(self, view: View) -> Value:
        """Return what a view shows of an array that has a name."""
        read = Read(*self.place(view))
        return _turned(read, view) if view.transposed and not view.flat else read

    def place(self, view: View) -> tuple[str, tuple[Subscript, ...]]:
        """Return the array that a view is of, and the region of it."""
        buffer, shape = view.buffer, view.shape
        if shape is None:
            raise NotPriced("the shapes of what is computed here are not known")
        plain = view.region is not None and buffer.extents is not None and not view.flat
        extents = tuple(map(self._agreed, (buffer.extents if plain else None) or shape))
        found = ArrayType(view.dtype or ASSUMED_DTYPE, extents)
        name = buffer.name
        while (
            self.types.setdefault(name, found) != found
            or self.numbers.setdefault(name, buffer.number) != buffer.number
        ):
            name += "'"
        lies: StorageOrder = "F" if plain and buffer.order is Order.F else "C"
        self.placed[name] = replace(local(extents), order=lies)
        if not plain or view.region is None:
            return name, whole(extents)
        return name, tuple(map(self._subscript, view.region))

    def _agreed(self, extent: Expr) -> Expr:
        return self.alike.get(extent, extent)

    def _subscript(self, part: Subscript) -> Subscript:
        """Return a subscript, in order also where a view goes backwards."""
        if isinstance(part, Strided) and abs(part.step) > 1:
            return replace(part, step=abs(part.step))
        low, _ = bounds_of(part)
        count = self._agreed(extent_of(part))
        return part if isinstance(part, Point) else Range(low, low + count)

    def _arrays(self, step: Allocate | Copy | Compute) -> Arrays:
        kernel = Kernel("", step.span, {}, self.types, frozenset(), {}, (), _NO_SOURCE)
        return Arrays(kernel, self.placed, Facts(), Halos())


def _turned(value: Value, view: View) -> Value:
    axes = tuple(reversed(range(len(view.shape or ()))))
    return Transpose(value, axes) if len(axes) > 1 else value
