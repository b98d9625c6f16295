"""What one rank of a distributed kernel does between messages, as a function of its own.

The statements of the kernel at given sizes, with the indices of one rank: of each dimension that is
distributed the part that the rank owns, with room for the neighbours' elements that it reads. It
is no program that could replace the kernel, as nothing is sent: elements of other ranks are
whatever lies at that place. It takes as long as the rank would between its messages.

Iterations that own what they store are dealt out like the data. Those that need each other's
results run one after another, whichever rank has them, so a rank has waited for all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from advisor.analysis.facts import NotPriced
from advisor.analysis.owners import place
from advisor.analysis.placement import Placement
from advisor.build.text import (
    OPERATORS,
    REDUCED,
    SCANNED,
    NotBuiltError,
    applied,
    filled,
    function_of,
    operators,
)
from advisor.distribution import AxisMap, BlockDim, CyclicDim
from advisor.ir.concrete import at_sizes
from advisor.ir.dependence import carried
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ArrayType, ShapeConflict, describe
from advisor.ir.statements import (
    Bind,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Statement,
    Store,
    is_total,
    unrolled,
    walk,
)
from advisor.ir.values import (
    Along,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Subscript,
    Tally,
    Transpose,
    Value,
)
from advisor.source import Span
from costdb.expr import (
    ZERO,
    Expr,
    ExprError,
    evaluate,
    floor_div,
    free_symbols,
    maximum,
    minimum,
    num,
    substitute,
    sym,
    to_text,
)
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
    """

    source: str
    arrays: Mapping[str, Mapping[str, Any]]
    lines: Mapping[int, int]


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

    @property
    def length(self) -> int:
        return _number(self.below(num(self.extent)))

    def below(self, index: Expr) -> Expr:
        """Return how many of the elements before an index the rank owns."""
        cycle = self.piece * self.ranks
        turns = floor_div(index, num(cycle))
        rest = maximum(0, minimum(index - turns * cycle - self.first, self.piece))
        if isinstance(self.dim, BlockDim):
            return maximum(0, minimum(index - self.first, self.piece))
        return turns * self.piece + rest

    def index(self, local: Expr) -> Expr:
        """Return which element the rank has at a place; pieces of several are not dealt so."""
        if isinstance(self.dim, BlockDim):
            return local + self.first
        if self.piece != 1:
            raise NotLocalError("loops over pieces of several elements")
        return local * self.ranks + self.at


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis that a statement runs along: where it begins, and how many elements of the rank."""

    part: _Part | None
    low: Expr
    start: Expr
    count: Expr


_Frame = tuple[_Axis, ...]


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
    concrete = replace(at_sizes(kernel, sizes), body=unrolled(at_sizes(kernel, sizes).body))
    try:
        placed = place(concrete)
        made = [_Writer(concrete, placed, share).written() for share in shares]
    except (ExprError, NotPriced, ShapeConflict) as error:
        raise NotLocalError(str(error)) from error
    return tuple({one.source: one for one in made}.values())


@dataclass(slots=True)
class _Writer:
    kernel: Kernel
    placed: Mapping[str, Placement]
    share: float
    ghosts: dict[tuple[str, int], int] = field(default_factory=dict)
    owned: dict[str, _Part] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)
    lines: dict[int, int] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    values: dict[str, Expr] = field(default_factory=dict)
    ranges: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)

    def written(self) -> LocalPart:
        # what is read beyond the own part is known when all has been written once
        for _ in range(2):
            self.text, self.lines, self.bound, self.free = [], {}, set(), set()
            self.block(self.kernel.body, 1)
            self.exchange_ghosts()
        totals = [one for one in _stores(self.kernel.body) if is_total(one)]
        begun = {_name(one.array) for one in totals if one.array not in self.placed}
        made = {s.name for s in walk(self.kernel.body) if isinstance(s, Bind)}
        given = [name for name in self.kernel.arrays if name not in made]
        numbers = sorted(self.free - set(given) - made)
        head = ["import numpy as np", f"def {ENTRY}({', '.join((*given, *numbers))}):"]
        head += [f"    {name} = 0.0" for name in sorted(begun - set(numbers))]
        lines = {number + len(head): line for number, line in self.lines.items()}
        text = "\n".join((*head, *(self.text or ["    pass"]), ""))
        arrays = {
            name: {
                "shape": self.shape(name),
                "dtype": self.kernel.dtype(name),
                "order": self.placed[name].order,
            }
            for name in given
        }
        return LocalPart(text, arrays, lines)

    def exchange_ghosts(self) -> None:
        """Give arrays that change names the same room beside their parts."""
        for one in walk(self.kernel.body):
            if isinstance(one, Rename):
                for (name, dimension), width in tuple(self.ghosts.items()):
                    if name in one.names:
                        for other in one.names:
                            known = self.ghosts.get((other, dimension), 0)
                            self.ghosts[other, dimension] = max(known, width)

    # who owns what

    def part(self, name: str, dimension: int) -> _Part | None:
        """Return the rank's part of a dimension; None where it has all of it."""
        placement = self.placed[name]
        ranks = _number(placement.ranks(dimension))
        if ranks == 1:
            return None
        extent = _number(placement.template[dimension])
        one = _Part(extent, ranks, placement.dims[dimension], 0)
        last = max(extent // one.piece - 1, 0) % ranks
        return replace(one, at=round(self.share * last))

    def shape(self, name: str) -> tuple[int, ...]:
        extents = self.kernel.extents(name)
        made = []
        for dimension, extent in enumerate(extents):
            part = self.part(name, dimension)
            if part is not None:
                end = self.placed[name].origin[dimension] + extent
                extent = part.below(end) - self.first(name, dimension, part)
            made.append(_number(extent) + 2 * self.ghosts.get((name, dimension), 0))
        return tuple(made)

    def first(self, name: str, dimension: int, part: _Part) -> Expr:
        """Return how many of the rank's elements of the template come before an array's."""
        return part.below(self.placed[name].origin[dimension])

    def offset(self, name: str, dimension: int, part: _Part | None) -> Expr:
        """Return where in memory the rank's first element of the template would be."""
        ghost = num(self.ghosts.get((name, dimension), 0))
        return ghost if part is None else ghost - self.first(name, dimension, part)

    # statements

    def block(self, statements: Sequence[Statement], depth: int) -> None:
        for statement in statements:
            try:
                self.statement(statement, depth)
            except NotLocalError as error:
                raise NotLocalError(error.why, error.span or statement.span) from error

    def line(self, text: str, depth: int, span: Span) -> None:
        self.text.append("    " * depth + text)
        self.lines[len(self.text)] = span.start_line

    def statement(self, statement: Statement, depth: int) -> None:
        match statement:
            case Bind(name, value, span):
                self.bind(name, value, depth, span)
            case ScalarBind(name, value, span):
                self.line(f"{_name(name)} = {self.value(value, ())}", depth, span)
                self.bound.add(name)
            case Store(array, region, value, span):
                frame, parts = self.target(array, region)
                where = f"{array}[{', '.join(parts)}]" if parts else array
                self.line(self.assigned(where, value, frame, statement.in_place), depth, span)
            case Loop():
                self.loop(statement, depth)
            case Rename(names, span):
                if len(names) != 2:
                    raise NotLocalError("more than two names change places")
                one, other = sorted(names)
                self.line(f"{one}, {other} = {other}, {one}", depth, span)
            case Return(names, span):
                found = [_name(name) for name in sorted(names)]
                self.line(f"return {', '.join(found)}", depth, span)
            case _:
                raise NotLocalError("no form for one rank")

    def bind(self, name: str, value: Value, depth: int, span: Span) -> None:
        if name not in self.placed:
            raise NotLocalError(f"it is not known where `{name}` lives")
        region = tuple(Range(ZERO, extent) for extent in self.kernel.extents(name))
        own, (frame, parts) = _name(name), self.target(name, region)
        if not any((name, dimension) in self.ghosts for dimension in range(len(region))):
            self.line(f"{own} = {self.value(value, frame)}", depth, span)
        elif isinstance(value, Fill):
            self.line(f"{own} = {filled(value, repr(self.shape(name)))}", depth, span)
        else:
            made = f"np.empty({self.shape(name)}, {self.kernel.dtype(name)!r})"
            value = value.operand if isinstance(value, Copy) else value
            where = f"{own}[{', '.join(parts)}]"
            self.line(f"{own} = {made}", depth, span)
            self.line(self.assigned(where, value, frame, in_place=True), depth, span)

    def assigned(self, where: str, value: Value, frame: _Frame, in_place: bool) -> str:
        if in_place and isinstance(value, Elementwise) and frame:
            parts = ", ".join(self.operands(value.operands, frame))
            return f"np.{function_of(value)}({parts}, out={where})"
        return f"{where} = {self.value(value, frame)}"

    def loop(self, loop: Loop, depth: int) -> None:
        variable = loop.variable.partition(".")[0]
        variable = "index" if variable == "_" else variable
        while variable in self.values:
            variable += "_"
        owned = self.dealt(loop)
        low, high = loop.low, loop.high
        if owned is None:
            inner: Expr = sym(variable)
        elif loop.step != 1:
            raise NotLocalError("a loop with a step over what is distributed")
        else:
            part, offset = owned
            low, high = part.below(self.known(low) + offset), part.below(self.known(high) + offset)
            inner = part.index(sym(variable)) - offset
            self.owned[variable] = part
        step = f", {loop.step}" if loop.step != 1 else ""
        around = f"for {variable} in range({self.number(low)}, {self.number(high)}{step}):"
        self.line(around, depth, loop.span)
        self.values |= {loop.variable: inner, variable: inner}
        self.ranges[variable] = self.known(low), self.known(high) - 1
        self.block(loop.body, depth + 1)
        for known in (self.values, self.ranges, self.owned):
            known.pop(variable, None)
        self.values.pop(loop.variable)

    def dealt(self, loop: Loop) -> tuple[_Part, Expr] | None:
        """Return the dimension whose owners share out a loop's iterations; None: all do all.

        Iterations that need others' results come one after another, on whatever rank.
        """
        points = [self.points(store, loop.variable) for store in _stores(loop.body)]
        if not points or not all(points) or carried(loop):
            return None
        for inner in walk(loop.body):
            if isinstance(inner, Loop) and carried(inner) and self.is_spread(inner):
                raise NotLocalError("ranks work in a pipeline", inner.span)
        if len(set(map(tuple, points))) != 1:
            return None
        return points[0][0]

    def is_spread(self, loop: Loop) -> bool:
        return any(self.points(store, loop.variable) for store in _stores(loop.body))

    def points(self, store: Store, variable: str) -> list[tuple[_Part, Expr]]:
        """Return along which distributed dimensions a loop's index says where a store goes."""
        found = []
        for dimension, one in enumerate(store.region):
            part = self.part(store.array, dimension)
            if part is not None and isinstance(one, Point):
                origin = self.placed[store.array].origin[dimension]
                offset = one.at + origin - sym(variable)
                if variable not in free_symbols(offset):
                    found.append((part, offset))
        return found

    # places

    def known(self, index: Expr) -> Expr:
        """Return an index over the loops that are written."""
        return substitute(index, {k: v for k, v in self.values.items() if "." in k})

    def number(self, index: Expr) -> str:
        text = to_text(self.known(index))
        try:
            nodes = list(ast.walk(ast.parse(text, mode="eval")))
        except SyntaxError as error:
            raise NotLocalError(f"an index that Python has no form for: {text}") from error
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        whole = not any(
            isinstance(node, ast.Div | ast.Constant)
            and not isinstance(getattr(node, "value", None), int)
            for node in nodes
        )
        if not whole or not names <= {*self.values, "max", "min"}:
            raise NotLocalError(f"an index that is not known: {text}")
        return text

    def target(self, array: str, region: Sequence[Subscript]) -> tuple[_Frame, list[str]]:
        """Return the axes that a store runs along, and its subscripts."""
        frame, parts = [], []
        for dimension, one in enumerate(region):
            part = self.part(array, dimension)
            if isinstance(one, Point):
                parts.append(self.number(self.place(part, array, dimension, one.at)))
            elif not isinstance(one, Range):
                if part is not None:
                    raise NotLocalError("a slice with a step of what is distributed")
                low, high = self.number(one.start), self.number(one.stop)
                parts.append(f"{low}:{high}:{one.step}")
                frame.append(_Axis(None, one.start, one.start, one.count))
            else:
                axis = self.axis(part, array, dimension, one)
                offset = self.offset(array, dimension, part)
                parts.append(self.slice(axis.start + offset, axis.count))
                frame.append(axis)
        return tuple(frame), parts

    def axis(self, part: _Part | None, array: str, dimension: int, one: Range) -> _Axis:
        if part is None:
            return _Axis(None, one.low, one.low, one.high - one.low)
        origin = self.placed[array].origin[dimension]
        low, high = (self.known(end) + origin for end in (one.low, one.high))
        start = part.below(low)
        return _Axis(part, low, start, part.below(high) - start)

    def place(self, part: _Part | None, array: str, dimension: int, at: Expr) -> Expr:
        """Return where an element lies; one of another rank is where the own one would."""
        if part is None:
            return at
        index = self.known(at) + self.placed[array].origin[dimension]
        offset = self.offset(array, dimension, part)
        owned = next((name for name in free_symbols(index) if self.owned.get(name) == part), None)
        if owned is not None:
            if isinstance(part.dim, BlockDim):
                self.reach(array, dimension, index - part.first - sym(owned))
                return index - part.first + offset
            rest = index - sym(owned) * part.ranks - part.at
            if not isinstance(rest, Num):
                raise NotLocalError("an index that is not known")
            return sym(owned) + _number(rest) // part.ranks + offset
        ghost = self.ghosts.get((array, dimension), 0)
        length = max(self.shape(array)[dimension] - 2 * ghost, 1)
        if isinstance(part.dim, BlockDim):
            return index - floor_div(index, num(length)) * length + ghost
        return minimum(part.below(index) + offset - ghost, length - 1) + ghost

    def reach(self, array: str, dimension: int, shift: Expr) -> None:
        """Make room for elements that lie so far from those that are computed."""
        ends = [shift]
        for name in free_symbols(shift):
            if name not in self.ranges:
                raise NotLocalError("an index that is not known")
            ends = [substitute(one, {name: end}) for one in ends for end in self.ranges[name]]
        if not all(isinstance(one, Num) for one in ends):
            raise NotLocalError("an index that is not known")
        needed = max(abs(_number(one)) for one in ends)
        if needed > self.ghosts.get((array, dimension), 0):
            self.ghosts[array, dimension] = needed

    def slice(self, start: Expr, count: Expr) -> str:
        return f"{self.number(start)}:{self.number(start + count)}"

    # values

    def rank(self, value: Value) -> int:
        """Return how many dimensions a value has."""
        return len(describe(value, self.typed).extents)

    def typed(self, array: str) -> ArrayType:
        return ArrayType(self.kernel.dtype(array), self.kernel.extents(array))

    def own(self, value: Value, axis: int) -> _Axis:
        """Return how a value's axis runs that no store says anything of."""
        match value:
            case Read(array, region):
                return self.target(array, region)[0][axis]
            case Elementwise(_, parts):
                full = self.rank(value)
                found = [
                    self.own(one, axis - full + self.rank(one))
                    for one in parts
                    if axis - full + self.rank(one) >= 0
                ]
                wide = [one for one in found if one.part is not None or one.count != num(1)]
                return (wide or found)[0]
            case Expand(operand, at):
                if at == axis:
                    return _Axis(None, ZERO, ZERO, num(1))
                return self.own(operand, axis - (axis > at))
            case Transpose(operand, axes):
                return self.own(operand, axes[axis])
            case Reduction(operand, along, _, _) if along is not None:
                return self.own(operand, axis + (axis >= along))
            case Along(computed=computed):
                return self.own(computed, axis)
            case Copy(operand) | Scan(operand) | Flip(operand) | Sort(operand) | Roll(operand):
                return self.own(operand, axis)
            case MatMul(left, right):
                last = axis == self.rank(left) - 1
                return self.own(right, 1) if last else self.own(left, axis)
            case Fill(_, shape, _):
                return _Axis(None, ZERO, ZERO, shape[axis])
            case _:
                raise NotLocalError("no form for one rank")

    def frame(self, value: Value) -> _Frame:
        return tuple(self.own(value, axis) for axis in range(self.rank(value)))

    def value(self, value: Value, frame: _Frame) -> str:
        """Return a value along given axes as source."""
        match value:
            case Read(array, region):
                parts = self.read(array, region, frame)
                return f"{_name(array)}[{', '.join(parts)}]" if parts else _name(array)
            case Scalar(text, _):
                return self.scalar(text)
            case Fill():
                return filled(value, repr(tuple(_number(one.count) for one in frame)))
            case Copy(operand, dtype):
                inner = self.value(operand, frame)
                same = isinstance(operand, Read) and self.kernel.dtype(operand.array) == dtype
                return f"{inner}.copy()" if same else f"{inner}.astype({dtype!r})"
            case Elementwise(_, operands):
                return applied(value, self.operands(operands, frame))
            case Expand(Read(array, region), axis):
                places = self.read(array, region, frame[:axis] + frame[axis + 1 :])
                kept = [n for n, one in enumerate(region) if not isinstance(one, Point)]
                places.insert(kept[axis] if axis < len(kept) else len(places), "None")
                return f"{_name(array)}[{', '.join(places)}]"
            case Expand(operand, axis):
                inner = self.value(operand, frame[:axis] + frame[axis + 1 :])
                return f"np.expand_dims({inner}, {axis})"
            case Transpose(operand, axes):
                own = [frame[axes.index(n)] for n in range(len(axes))]
                return f"{self.value(operand, tuple(own))}.transpose({axes})"
            case Roll(operand, axis, amount):
                inner = self.value(operand, frame)
                return f"np.roll({inner}, {self.number(amount)}, {axis})"
            case Flip(operand, axis):
                return f"np.flip({self.value(operand, frame)}, {axis})"
            case Reduction():
                return self.reduced(value, frame)
            case MatMul(left, right):
                between = self.own(left, self.rank(left) - 1)
                if between.part is not None or self.own(right, 0).part is not None:
                    raise NotLocalError("a product along what is distributed")
                one = self.value(left, (*frame[:-1], between))
                return f"({one} @ {self.value(right, (between, frame[-1]))})"
            case Scan() | Sort() | Fourier():
                return self.along(value, frame)
            case Along():
                return self.function(value)
            case Gather(Read(table, region), places):
                if any(self.part(table, d) is not None for d in range(len(region))):
                    raise NotLocalError("places of what is distributed")
                return f"{_name(table)}[{self.value(places, frame)}]"
            case Tally(places, weights, extent, _):
                given = [self.value(one, self.frame(one)) for one in (places, weights) if one]
                return f"np.bincount({', '.join(given)}, minlength={self.number(extent)})"
            case _:
                raise NotLocalError("no form for one rank")

    def operands(self, values: Sequence[Value], frame: _Frame) -> list[str]:
        """Return values that are broadcast against each other as source."""
        return [self.value(one, frame[len(frame) - self.rank(one) :]) for one in values]

    def reduced(self, value: Reduction, frame: _Frame) -> str:
        operand, axis = value.operand, value.axis
        own = self.frame(operand)
        if axis is not None:
            own = (*frame[:axis], own[axis], *frame[axis:])
        if value.fused and isinstance(operand, Elementwise) and axis == len(own) - 1:
            left, right = self.operands(operand.operands, own)
            return f"({left} @ {right})"
        if value.fused or value.operation not in REDUCED:
            raise NotLocalError(f"no form for one rank of `{value.operation}`")
        along = "" if axis is None else f", axis={axis}"
        return f"np.{REDUCED[value.operation]}({self.value(operand, own)}{along})"

    def function(self, value: Along) -> str:
        own = self.frame(value.operand)
        if any(own[axis].part is not None for axis in value.axes):
            raise NotLocalError("ranks do this together")
        given = [self.value(value.operand, own), value.options, f"axis={value.axes}"]
        if "=" in value.options:
            given = [given[0], given[2], given[1]]
        given += ["keepdims=True"] if value.kept else []
        return f"np.{value.function}({', '.join(one for one in given if one)})"

    def along(self, value: Scan | Sort | Fourier, frame: _Frame) -> str:
        inner = self.value(value.operand, frame)
        if not isinstance(value, Scan) and frame[value.axis].part is not None:
            raise NotLocalError("ranks do this together")
        match value:
            case Sort():
                return f"np.sort({inner}, {value.axis})"
            case Fourier():
                name = "ifft" if value.inverse else "fft"
                return f"np.fft.{name}({inner}, axis={value.axis})"
            case Scan():
                name = SCANNED.get(value.operation, f"{value.operation}.accumulate")
                if value.reverse:
                    inner = f"np.flip({inner}, {value.axis})"
                return f"np.{name}({inner}, {value.axis})"

    def read(self, array: str, region: Sequence[Subscript], frame: _Frame) -> list[str]:
        """Return the subscripts of a region that is read along given axes."""
        parts, axes = [], iter(frame)
        for dimension, one in enumerate(region):
            part = self.part(array, dimension)
            if isinstance(one, Point):
                parts.append(self.number(self.place(part, array, dimension, one.at)))
                continue
            axis = next(axes)
            if not isinstance(one, Range):
                if part is not None or axis.part is not None:
                    raise NotLocalError("a slice with a step of what is distributed")
                parts.append(f"{self.number(one.start)}:{self.number(one.stop)}:{one.step}")
            elif part is None:
                count = axis.count if axis.part is not None else one.high - one.low
                parts.append(self.slice(one.low, count))
            elif axis.part is None:
                raise NotLocalError(f"all of `{array}` on one rank")
            else:
                start = self.beside(array, dimension, one, axis, part)
                parts.append(self.slice(start, axis.count))
        return parts

    def beside(self, array: str, dimension: int, one: Range, axis: _Axis, part: _Part) -> Expr:
        """Return where what is read begins, beside what the rank computes of it."""
        ghost = self.ghosts.get((array, dimension), 0)
        shift = self.known(one.low) + self.placed[array].origin[dimension] - self.known(axis.low)
        same = part == axis.part and isinstance(part.dim, BlockDim)
        offset = self.offset(array, dimension, part)
        if same and isinstance(shift, Num) and abs(_number(shift)) <= part.length:
            self.reach(array, dimension, shift)
            return axis.start + offset + (shift if ghost >= abs(_number(shift)) else 0)
        return axis.start + offset if part == axis.part else num(ghost)

    def scalar(self, text: str) -> str:
        """Return a number that every rank has as source; `text` is how the source has it."""
        tree = ast.parse(text, mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and not (
                isinstance(node.func, ast.Name) and node.func.id in OPERATORS
            ):
                raise NotLocalError(f"a number that is computed: {text}")
        called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name) or node in called:
                continue
            if node.id in self.values:
                if self.values[node.id] != sym(node.id):
                    raise NotLocalError(f"the number of an iteration as a value: {text}")
            elif node.id not in self.bound:
                self.free.add(node.id)
        return operators(tree)


def _stores(body: Sequence[Statement]) -> Iterator[Store]:
    return (one for one in walk(tuple(body)) if isinstance(one, Store))


def _number(expr: Expr) -> int:
    return int(evaluate(expr, {}))


def _name(name: str) -> str:
    return name if name.isidentifier() else f"made_{''.join(filter(str.isalnum, name))}"
