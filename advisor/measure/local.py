"""What one rank of a built program does between messages, as a function of its own.

It is written as built programs are, at given sizes, with the indices of one rank: of each dimension
that is distributed the part that the rank owns, with room for the neighbours' elements that it
reads. It is no program that could replace the kernel, as nothing is sent: rims hold whatever lies
there, and what the rank would fetch is an argument. It takes as long as the rank would between its
messages.

Iterations that own what they store are dealt out like the data. Of others that store on one rank
only, all run: a rank has waited for all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from advisor.analysis.placement import NotPriced, ranks_of
from advisor.build.scope import NeedsMessages
from advisor.build.text import Axis, Frame, Module, NotBuiltError, Spread, spread_of
from advisor.build.writer import Function, Writer, written_by
from advisor.distribution import AxisMap, BlockDim, CyclicDim
from advisor.ir.kernel import Kernel, at_sizes
from advisor.ir.shapes import ShapeConflict
from advisor.ir.statements import Scatter
from advisor.ir.values import Point, Subscript
from costdb.expr import ZERO, Expr, ExprError, evaluate, floor_div, maximum, minimum, num
from costdb.expr.nodes import Num
from costdb.records import dataclass, field, replace

ENTRY: Final = "local_part"

NotLocalError = NotBuiltError
"""A statement whose part on one rank is not written out: where, and why."""


@dataclass(frozen=True, slots=True)
class LocalPart:
    """A function named `ENTRY`, and what it is called with.

    Attributes
    ----------
    source : str
    arrays : mapping of str to mapping
        Of each parameter that is an array: ``shape``, ``dtype``, ``order``.
    lines : mapping of int to int
        The line of the kernel's file that each of its lines is of.
    whose : mapping of str to str
        The kernel's array that each is a part of.
    before : mapping of str to tuple of int
        How much room each has before the rank's own elements, along each dimension.
    """

    source: str
    arrays: Mapping[str, Mapping[str, Any]]
    lines: Mapping[int, int]
    whose: Mapping[str, str]
    before: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one rank owns of a dimension: of `extent` elements, as rank `at` of `ranks`."""

    extent: int
    ranks: int
    dim: AxisMap
    at: int

    @property
    def piece(self) -> int:
        return self.dim.k if isinstance(self.dim, CyclicDim) else -(-self.extent // self.ranks)

    @property
    def first(self) -> int:
        return self.at * self.piece

    def below(self, index: Expr) -> Expr:
        """Return how many of the elements before an index the rank owns."""
        if isinstance(self.dim, BlockDim):
            return maximum(0, minimum(index - self.first, self.piece))
        if self.piece == 1:
            return (
                index
                if self.ranks == 1
                else floor_div(index + self.ranks - 1 - self.at, self.ranks)
            )
        cycle = self.piece * self.ranks
        turns = floor_div(index, cycle)
        rest = index - turns * cycle - self.first
        return turns * self.piece + maximum(0, minimum(rest, self.piece))


def local_parts(
    kernel: Kernel, sizes: Mapping[str, int | float], shares: Sequence[float] = (0, 1)
) -> tuple[LocalPart, ...]:
    """Return what some ranks do, each different part once.

    Parameters
    ----------
    kernel : Kernel
    sizes : mapping of str to number
        Of all that it depends on.
    shares : sequence of float
        Which ranks: from 0, the first along each axis of the mesh, to 1, the last that has a full
        part. These two may be the slowest.

    Raises
    ------
    NotLocalError
        Some statement has no such form.
    """
    if kernel.context.is_compiled:
        raise NotLocalError("it is compiled, and its threads are those of one process")
    concrete = at_sizes(kernel, sizes)
    made: dict[str, LocalPart] = {}
    try:
        for share in shares:
            module = Module(sizes, set(), kernel.context.identifiers)
            writer, found = written_by(partial(Local, sizes=sizes, share=share), concrete, module)
            one = writer.part_of_kernel(found)
            made[one.source] = one
    except (ExprError, NotPriced, ShapeConflict) as error:
        raise NotLocalError(str(error)) from error
    return tuple(made.values())


@dataclass()
class Local(Writer):
    """Writes what one rank does: the one at a share of all that have a full part."""

    sizes: Mapping[str, int | float] = field(default_factory=dict)
    share: float = 0.0
    given: set[str] = field(default_factory=set)
    brought: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    def part_of_kernel(self, found: Function) -> LocalPart:
        """Return a function that was written, with what it is called with."""
        kernel, text = self.kernel, ["import numpy as np", *found.lines]
        lines: dict[int, int] = {}
        last = 0
        for number, line in enumerate(text, 1):
            mark, _, rest = line.strip().partition(": ")
            last = int(mark[2:]) if rest and mark[:2] == "# " and mark[2:].isdigit() else last
            lines[number] = last
        own = {
            self.name(n): (n, self.shape(n)) for n in kernel.arrays if self.name(n) in self.given
        }
        arrays = {
            name: {
                "shape": shape,
                "dtype": self.typed(array).dtype,
                "order": self.placed[array].order,
            }
            for name, (array, shape) in (own | self.brought).items()
        }
        whose = {name: array for name, (array, _) in (own | self.brought).items()}
        before = {
            name: tuple(low for low, _ in self.widths(array)) for name, (array, _) in own.items()
        }
        return LocalPart("\n".join((*text, "")), arrays, lines, whose, before)

    # who owns what

    def rank_of(self, spread: Spread) -> _Part:
        """Return the rank's part of a dimension."""
        ranks = int(evaluate(ranks_of(spread.mesh, spread.dim.axes), self.sizes))
        one = _Part(int(evaluate(spread.extent, self.sizes)), ranks, spread.dim, 0)
        last = max(one.extent // one.piece - 1, 0) % ranks
        return replace(one, at=round(self.share * last))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the rank's block, with its room."""
        found = []
        placement = self.placed[name]
        for d, (extent, room) in enumerate(
            zip(self.typed(name).extents, self.widths(name), strict=True)
        ):
            spread, origin = spread_of(placement, d), placement.origin[d]
            if spread is not None:
                part = self.rank_of(spread)
                extent = part.below(origin + extent) - part.below(origin)
            found.append(int(evaluate(extent, self.sizes)) + sum(room))
        return tuple(found)

    def number(self, index: Expr) -> str:
        """Return a whole number as an operand."""
        text = self.text(index)
        return text if isinstance(index, Num) or text.isidentifier() else f"({text})"

    def part(self, spread: Spread, low: Expr, count: Expr, origin: Expr) -> tuple[str, str]:
        """Return where the rank's part of a range begins and ends in its block."""
        part = self.rank_of(spread)
        start, stop = (part.below(one) - part.below(origin) for one in (low, low + count))
        return self.number(start), self.number(maximum(start, stop))

    def range_of(self, spread: Spread, low: Expr, high: Expr) -> tuple[str, str]:
        """Return the ends of the rank's part of a range, of which it owns a piece."""
        part = self.rank_of(spread)
        start = maximum(low, num(part.first))
        stop = maximum(start, minimum(high, num(part.first + part.piece)))
        return self.number(start), self.number(stop)

    def turns(
        self, spread: Spread, low: Expr, high: Expr, step: int, offset: Expr, grows: bool
    ) -> str:
        """Return the iterations in which the rank stores elements of a range that it owns."""
        part = self.rank_of(spread)
        if part.piece != 1 or step != 1 or not grows:
            raise NotLocalError("loops over pieces of several elements")
        first = low + (part.at - low) % part.ranks - offset
        return f"range({self.text(first)}, {self.text(high - offset)}, {part.ranks})"

    def local(self, spread: Spread, at: Expr, origin: Expr) -> str:
        """Return where an element lies; one of another rank is where some own one does."""
        part = self.rank_of(spread)
        before = part.below(origin)
        length = maximum(1, part.below(origin + spread.extent) - before)
        if isinstance(spread.dim, BlockDim):
            place = at - part.first - before
            place = place if any(one.at == at for one in self.dealt) else place % length
        else:
            place = minimum(part.below(at) - before, length - 1)
        return self.number(place)

    def along(self, spread: Spread) -> str:
        """Return nothing: indices are written out."""
        return ""

    def layout(self, name: str) -> str:
        """Return nothing: shapes are written out."""
        return ""

    def line_along(self, placement: object, dims: object) -> str:
        """Return nothing: a rank combines what it has."""
        return ""

    def own(self, axis: Axis, who: str, by: Expr = ZERO) -> str:
        """Refuse places that would have to be computed."""
        raise NotLocalError("a slice with a step of what is distributed")

    def number_named(self, name: str) -> str:
        """Return a size as its value."""
        if name in self.sizes and name not in self.names:
            return repr(self.sizes[name])
        return super().number_named(name)

    # lines

    def head(self, name: str, signature: ast.arguments) -> str:
        """Return the line that begins the function."""
        self.given = {one.arg for one in (*signature.args, *signature.kwonlyargs)}
        for one in self.brought:
            signature.args.insert(0, ast.arg(one))
        return super().head(ENTRY, signature)

    def begun(self, arrays: Sequence[str], changed: frozenset[str]) -> list[str]:
        """Return nothing: blocks come with their room."""
        return []

    def made_here(self, name: str) -> str:
        """Return what makes an array, with its room."""
        return f"np.empty({self.shape(name)}, {self.kernel.dtype(name)!r})"

    def with_room(self, name: str, text: str) -> tuple[str, str]:
        """Make an array with room, and return the place of its own elements."""
        self.line(f"{self.name(name)} = {self.made_here(name)}")
        return self.core(name), text

    # what others have

    def fetch(self, array: str, region: Sequence[Subscript], frame: Frame) -> str:
        """Return as many elements of an argument as the rank fetches."""
        placement = self.placed[array]
        here = all(spread_of(placement, d) is None for d in range(len(region)))
        if self.alone and not here:
            raise NeedsMessages
        axes = iter(frame)
        parts, shape = [], []
        for one, extent in zip(region, self.typed(array).extents, strict=True):
            whole = int(evaluate(extent, self.sizes))
            if isinstance(one, Point):
                if here:
                    parts.append(self.text(one.at))
                continue
            axis = next(axes)
            count = self.number(axis.count)
            if axis.spread is not None:
                low, high = self.part(axis.spread, axis.low, axis.count, ZERO)
                count = high if low == "0" else f"{high} - {low}"
            parts.append("" if count == str(whole) else f":{count}")
            parts[-1] = parts[-1] or ":"
            shape.append(whole)
        if here:
            return f"{self.name(array)}[{', '.join(parts)}]"
        if not shape:
            shape, parts = [1], ["0"]
        text = f"{array}{region}{parts}"
        if text not in self.fetched:
            self.fetched[text] = self.fresh(f"{self.name(array)}_there")
            self.brought[self.fetched[text]] = array, tuple(shape)
        return f"{self.fetched[text]}[{', '.join(parts)}]"

    def exchanged_at(self, level: int, name: str, dims: Iterable[int], only: str = "") -> None:
        """Leave rims as they are."""

    def handed_on(self, what: str, key: object, part: object) -> str:
        """Have a rank run all iterations where ranks take turns; a pipeline has no such form."""
        if len(self.blocks) > 1:
            raise NotLocalError("ranks work in a pipeline")
        raise NeedsMessages

    def guard(self, guards: object, held: object) -> str:
        """Have the rank do what one of them does: others wait for it."""
        return ""

    def scatter(self, one: Scatter) -> None:
        """Write elements at places that only the data know, where nobody else has them."""
        if any(spread_of(self.placed[one.array], d) for d in range(1)):
            raise NotLocalError("no form for one rank")
        super().scatter(one)
