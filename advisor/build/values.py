"""What an expression over arrays comes to on one rank, along the axes of what it computes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from advisor.analysis.owners import local, picked
from advisor.analysis.placement import Placement
from advisor.build.scope import NeedsMessages, Scope
from advisor.build.text import (
    SINGLE,
    Axis,
    Frame,
    NotBuiltError,
    Spread,
    applied,
    between,
    definition_of,
    frame_of,
    in_blocks,
    natural,
    plus,
    spread_of,
    tupled,
    whole_along,
    whole_axes,
)
from advisor.build.work import as_fetched, brought, count_along, exchanged
from advisor.ir.kernel import Kernel, symbols
from advisor.ir.shapes import ArrayType, describe, whole
from advisor.ir.statements import walk
from advisor.ir.values import (
    Along,
    Called,
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    Part,
    PeriodicPad,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Strided,
    Subscript,
    Tally,
    Transpose,
    Value,
    Windows,
    bounds_in,
    step_of,
)
from advisor.numpy_table import REDUCED, SCANNED, SIGNS, reduced_dtype
from costdb.expr import ONE, ZERO, Expr
from costdb.expr.nodes import Num

_REDUCED = REDUCED | {"count_nonzero": "count_nonzero"}
_PLAIN_FILLS = {"": "empty", "0": "zeros", "0.0": "zeros", "1": "ones", "1.0": "ones"}
_UFUNCS = {"count_nonzero": "add", "mean": "add"}


class Values(Scope):
    """Writes values."""

    __slots__ = ()

    def extents(self, value: Value) -> tuple[Expr, ...]:
        """Return the shape of a value."""
        return describe(value, self.typed).extents

    def fitted(self, value: Value, frame: Frame) -> Frame:
        """Return the axes of a value that is broadcast over others."""
        extents = self.extents(value)
        own = frame[len(frame) - len(extents) :]
        return tuple(
            SINGLE if extent == ONE and axis.count != ONE else axis
            for extent, axis in zip(extents, own, strict=True)
        )

    def value(self, value: Value, frame: Frame) -> str:
        """Return a rank's part of a value as source."""
        match value:
            case Read(array, region):
                return self.read(array, region, frame)
            case Scalar(text, _):
                return self.scalar(text)
            case Fill():
                return self.filled(value, frame)
            case Elementwise(operation, parts):
                texts = [self.value(one, self.fitted(one, frame)) for one in parts]
                return applied(operation, texts)
            case Copy(operand, dtype):
                inner = self.value(operand, frame)
                same = describe(operand, self.typed).dtype == dtype
                return inner if same else f"{inner}.astype({dtype!r})"
            case Expand(operand, axis):
                inner = self.value(operand, frame[:axis] + frame[axis + 1 :])
                marks = [":"] * (len(frame) - 1)
                marks.insert(axis, "None")
                return f"{inner}[{', '.join(marks)}]"
            case Transpose(operand, axes):
                own = tuple(frame[axes.index(n)] for n in range(len(axes)))
                turned = (
                    ".T" if axes == tuple(reversed(range(len(axes)))) else f".transpose({axes})"
                )
                return f"{self.value(operand, own)}{turned}"
            case Roll() | Flip() | PeriodicPad():
                return self.moved(value, frame)
            case MatMul(left, right):
                between_ = Axis(None, ZERO, self.extents(left)[-1])
                one = self.value(left, (*frame[:-1], between_))
                return f"({one} @ {self.value(right, (between_, frame[-1]))})"
            case Chosen():
                raise NotBuiltError("what a mask chooses: only the data know how many")
            case Gather(operand, places, others):
                if others or len(self.extents(operand)) > 1:
                    raise NotBuiltError("places along several axes")
                (extent,) = self.extents(operand)
                table = self.value(operand, whole_axes((extent,)))
                return f"{table}[{self.value(places, frame)}]"
            case Reduction() | Scan() | Sort() | Fourier():
                found = self.inline(value, frame)
                return found or self.value(self.hoisted(value), frame)
            case Tally():
                return self.value(self.hoisted(value), frame)
            case Called() | Part():
                raise NotBuiltError("a call that is not built for ranks")
            case Windows() | Along():
                raise AssertionError("these are refused, or spelled out")

    # moved along an axis

    def moved(self, value: Roll | Flip | PeriodicPad, frame: Frame) -> str:
        """Return a value whose elements come from other places along an axis."""
        axis = value.axis
        extent = self.extents(value.operand)[axis]
        own = frame[axis]
        if own.spread is None and own.is_plain and own.count == self.extents(value)[axis]:
            inner = (*frame[:axis], Axis(None, ZERO, extent), *frame[axis + 1 :])
            text = self.value(value.operand, inner)
            match value:
                case Roll(_, _, amount):
                    return f"np.roll({text}, {self.text(amount)}, {axis})"
                case Flip():
                    return f"np.flip({text}, {axis})"
                case PeriodicPad(_, _, before, after):
                    none = ["(0, 0)"] * len(frame)
                    none[axis] = f"({self.text(before)}, {self.text(after)})"
                    return f"np.pad({text}, ({', '.join(none)},), mode='wrap')"
        change = ("flip", ZERO, extent)
        if isinstance(value, Roll):
            change = ("roll", value.amount, extent)
        elif isinstance(value, PeriodicPad):
            change = ("roll", value.before, extent)
        changed = replace(own, moved=(*own.moved, change))
        return self.value(value.operand, (*frame[:axis], changed, *frame[axis + 1 :]))

    # reads

    def read(self, array: str, region: Sequence[Subscript], frame: Frame) -> str:
        """Return what a rank reads of an array: a part of its block, or what it fetches."""
        parts: list[str] = []
        axes = iter(frame)
        kept = self.save()
        for d, one in enumerate(region):
            axis = None if isinstance(one, Point) else next(axes)
            text = self.beside(array, d, one, axis)
            if text is None:
                self.restore(kept)
                return self.fetch(array, region, frame)
            parts.append(text)
        self.keep_part(array, region, parts)
        name = self.name(array)
        return name if all(part == ":" for part in parts) else f"{name}[{', '.join(parts)}]"

    def keep_part(self, array: str, region: Sequence[Subscript], parts: Sequence[str]) -> None:
        """Take note which part of a rim is read that ranks hand on to each other."""
        for dealt in self.dealt[:1]:
            for key in [key for key in dealt.behind if key[0] == array]:
                d = key[1]
                placement = self.placed[array]
                fixed = not symbols(tuple(region[:d]) + tuple(region[d + 1 :])) & {
                    block.loop.variable for block in self.blocks if block.loop is not None
                    and (block.loop is dealt.loop or block.loop in tuple(walk(dealt.loop.body)))
                }  # fmt: skip
                own = (*parts[:d], ":", *parts[d + 1 :])
                plain = all(
                    isinstance(one, Range) and spread_of(placement, n) is None
                    for n, one in enumerate(region)
                    if n != d
                )
                same = dealt.behind[key] in ((), own)
                dealt.behind[key] = own if fixed and plain and same else None

    def beside(self, array: str, d: int, one: Subscript, axis: Axis | None) -> str | None:
        """Return the subscript of elements in the block or its rim; None: they are elsewhere."""
        placement = self.placed[array]
        spread, origin = spread_of(placement, d), placement.origin[d]
        if axis is None:
            assert isinstance(one, Point)
            return self.text(one.at) if spread is None else self.point(array, d, spread, one.at)
        assert not isinstance(one, Point)
        if not axis.is_plain:
            return None
        if spread is None:
            return self.unspread(array, d, one, axis)
        if spread != axis.spread or not isinstance(one, Range):
            return None
        shift = one.low + origin - axis.low
        if not isinstance(shift, Num) or (shift != ZERO and not spread.is_block):
            return None
        by = 0 if shift == ZERO else self.reach(array, d, shift)
        low, high = self.room.get((array, d), (0, 0))
        extent = self.typed(array).extents[d]
        if by == 0 and one.low == ZERO and one.high == extent:
            return f"{low or ''}:{-high if high else ''}"
        start, stop = self.part(spread, axis.low, axis.count, origin - 0)
        return f"{plus(start, low + by)}:{plus(stop, low + by)}"

    def unspread(self, array: str, d: int, one: Range | Strided, axis: Axis) -> str | None:
        """Return the subscript of a dimension that the rank has all of."""
        extent = self.typed(array).extents[d]
        (low, high), step = bounds_in(one), step_of(one)
        if axis.spread is None:
            end = "" if high == extent else self.text(high)
            return between(self.text(low), end, step)
        if not axis.spread.is_block:
            return None
        first, last = self.range_of(axis.spread, axis.low, axis.low + axis.count)
        if step == 1:
            moved = low - axis.low
            if isinstance(moved, Num):
                by = int(moved.value)
                return f"{plus(first, by)}:{plus(last, by)}"
        away, begin = self.text(axis.low), self.text(low)
        ends = (f"({end} - ({away})) * {step} + {begin}" for end in (first, last))
        return ":".join(ends) + (f":{step}" if step != 1 else "")

    def point(self, array: str, d: int, spread: Spread, at: Expr) -> str | None:
        """Return the subscript of an element that the rank owns, or that lies beside one."""
        origin = self.placed[array].origin[d]
        for own, held in self.held:
            shift = at + origin - held
            if own != spread or not isinstance(shift, Num):
                continue
            if shift == ZERO or (spread.is_block and any(one.at == held for one in self.dealt)):
                by = 0 if shift == ZERO else self.reach(array, d, shift)
                low = self.room.get((array, d), (0, 0))[0]
                return plus(self.local(spread, held, origin), low + by)
        return None

    def fetch(self, array: str, region: Sequence[Subscript], frame: Frame) -> str:
        """Return elements from wherever they are."""
        placement = self.placed[array]
        spreads = [spread_of(placement, d) for d in range(len(region))]
        here = all(spread is None for spread in spreads)
        if self.alone and not here:
            raise NeedsMessages
        who = "" if here else ", one"
        axes = iter(frame)
        places = [
            self.place_of(one.at, here=here)
            if isinstance(one, Point)
            else self.positions(one, next(axes), who)
            for one in region
        ]
        if here:
            return f"{self.name(array)}[at({', '.join(places)})]"
        given = tupled(places)
        if (
            not self.held
            and all(
                spread is None or isinstance(one, Point)
                for one, spread in zip(region, spreads, strict=True)
            )
            and not any(axis.spread for axis in frame)
        ):
            text = f"from_owner({self.core(array)}, {self.layout(array)}, {given.replace(who, '')})"
            return self.fetched_as(text, array, region, frame)
        computed = [axis for axis in (*self.computed, *frame) if axis.spread is not None]
        needs = [self.computes(axis, who) for axis in computed]
        needs += [
            f"{self.along(spread)}.holds({self.text(held)}, one)" for spread, held in self.held
        ]
        read = " ".join(places)
        # a range that is read along such an axis is empty where the axis is
        needs = [one for one in dict.fromkeys(needs) if _ranges(one) not in read]
        wanted = f"lambda one: {given}"
        if needs:
            wanted += f", lambda one: {' and '.join(needs)}"
        text = f"fetch({self.core(array)}, {self.layout(array)}, {wanted})"
        return self.fetched_as(text, array, region, frame)

    def fetched_as(self, text: str, array: str, region: Sequence[Subscript], frame: Frame) -> str:
        """Write a call that fetches elements, each once in a statement, and return what reads."""
        if self.into and text.startswith("fetch("):
            name, self.fetched[text] = self.into
            self.line(f"{text.removesuffix(')')}, into={self.fetched[text]})")
            self.bring(array, region, frame, name, fresh=False)
        if text not in self.fetched:
            name = self.fetched[text] = self.fresh(f"{self.name(array)}_there")
            self.line(f"{name} = {text}")
            self.bring(array, region, frame, name, as_sent=text.startswith("from_owner"))
        marks = ["0" if isinstance(one, Point) else ":" for one in region]
        found = self.fetched[text]
        return found if "0" not in marks else f"{found}[{', '.join(marks)}]"

    def bring(
        self,
        array: str,
        region: Sequence[Subscript],
        frame: Frame,
        into: str,
        *,
        as_sent: bool = False,
        fresh: bool = True,
    ) -> None:
        """Take note of what a rank fetches: all of it lies in an array by the name of `into`."""
        axes = iter(frame)
        counts = [
            ONE if isinstance(one, Point) else count_along(next(axes), self.facts) for one in region
        ]
        found, moved = self.typed(array), self.lowered.moved.get(array, ())
        # what comes without a name comes of this one; a statement that has nothing come has none
        if not moved and any(self.lowered.moved.get("", ((),))):
            moved = tuple(exchanged(found, self.placed[array], counts, self.facts))
        self.does(*brought(moved, found, counts, into, as_sent=as_sent, fresh=fresh))
        self.lowered = as_fetched(self.lowered, array, counts, into)

    def place_of(self, at: Expr, *, here: bool) -> str:
        """Return the index of one element, as a vector where it is to be fetched."""
        return self.text(at) if here else f"range({self.text(at)}, {self.text(at + 1)})"

    def own(self, axis: Axis, who: str, by: Expr = ZERO) -> str:
        """Return the elements that a rank computes along an axis, in what is dealt out."""
        assert axis.spread is not None
        high = axis.low + (axis.count - 1) * axis.step + 1
        more = f", step={axis.step}" if axis.step != 1 else ""
        more += f", by={self.text(by)}" if by != ZERO else ""
        return f"{self.along(axis.spread)}.own({self.text(axis.low)}, {self.text(high)}{who}{more})"

    def computes(self, axis: Axis, who: str) -> str:
        """Return whether a rank computes any element along an axis."""
        assert axis.spread is not None
        if axis.step != 1:
            return f"len({self.own(axis, who)})"
        high = axis.low + axis.count
        return f"{self.along(axis.spread)}.some({self.text(axis.low)}, {self.text(high)}{who})"

    def positions(self, one: Range | Strided, axis: Axis, who: str) -> str:
        """Return the indices of an array that a rank reads along an axis."""
        (low, high), step = bounds_in(one), step_of(one)
        if axis.spread is None:
            if axis.is_plain:
                steps = f", {step}" if step != 1 else ""
                return f"range({self.text(low)}, {self.text(high)}{steps})"
            found = f"np.arange({self.text(axis.count)})"
        elif step == axis.step and not axis.moved:
            return self.own(axis, who, low - axis.low)
        else:
            found = f"np.array({self.own(axis, who, ZERO - axis.low)}, int)"
            found = f"{found} // {axis.step}" if axis.step != 1 else found
        for what, by, extent in axis.moved:
            if what == "flip":
                found = f"{self.text(extent - 1)} - ({found})"
            else:
                found = f"({_plus(found, ZERO - by, self.text)}) % ({self.text(extent)})"
        found = f"({found}) * {step}" if step != 1 else found
        return _plus(found, low, self.text)

    # numbers

    def scalar(self, text: str) -> str:
        """Return a number that every rank has as source; `text` is how the source has it."""
        return f"({ast.unparse(self.known_number(ast.parse(text, mode='eval').body))})"

    def known_number(self, tree: ast.expr) -> ast.expr:
        """Return a number with the names that the built function has."""
        sizes = {text: name for name, text in self.kernel.context.scalar_texts.items()}
        return cast(ast.expr, _Numbers(self, sizes).visit(tree))

    def number_named(self, name: str) -> str:
        """Return the name of a number in the built function; one that is set once is set there."""
        if name in self.names:
            return self.names[name]
        if name in self.module.sizes:
            self.module.used.add(name)
            return name
        found = bound_value(self.kernel, name)
        value = ast.unparse(self.known_number(found))
        made = self.fresh(name, own=True)
        self.names[name] = made
        self.blocks[0].lines.append(f"{made} = {value}")
        return made

    def filled(self, value: Fill, frame: Frame) -> str:
        """Return an array of one constant."""
        counts = []
        for axis in frame:
            if axis.spread is None:
                counts.append(self.text(axis.count))
            else:
                start, stop = self.part(axis.spread, axis.low, axis.count, ZERO)
                counts.append(f"{stop} - {start}")
        shape = tupled(counts)
        if value.value in _PLAIN_FILLS:
            return f"np.{_PLAIN_FILLS[value.value]}({shape}, {value.dtype!r})"
        return f"np.full({shape}, {self.scalar(value.value)}, {value.dtype!r})"

    # along an axis, or all of them

    def inline(self, value: Reduction | Scan | Sort | Fourier, frame: Frame) -> str | None:
        """Return what a rank does with what it has; None where that takes others."""
        operand, axis = value.operand, value.axis
        extents = self.extents(operand)
        placement = natural(operand, self.placed, extents)
        spreads = [spread_of(placement, d) for d in range(len(extents))]
        if isinstance(value, Reduction):
            along = spreads if axis is None else [spreads[axis]]
            if any(along):
                return None
            if axis is None:
                own = whole_axes(extents)
            else:
                own = (*frame[:axis], Axis(None, ZERO, extents[axis]), *frame[axis:])
        else:
            assert axis is not None
            if spreads[axis] or frame[axis].spread or not frame[axis].is_plain:
                return None
            own = frame
        return self.by_itself(lambda: self.here(value, own))

    def here(self, value: Reduction | Scan | Sort | Fourier, frame: Frame) -> str:
        """Return what a rank does with what it has; products that are summed on the way as such."""
        match value:
            case Reduction(Elementwise("multiply", (left, right)), fused=True) if len(frame) == 1:
                return f"({self.value(left, frame)} @ {self.value(right, frame)})"
            case Reduction(Elementwise("multiply", (left, Expand(right, 0))), 1, fused=True) if (
                len(frame) == 2
            ):
                return f"({self.value(left, frame)} @ {self.value(right, frame[1:])})"
            case Reduction(Elementwise("multiply", (Expand(left, 1), right)), 0, fused=True):
                return f"({self.value(left, frame[:1])} @ {self.value(right, frame)})"
        return self.applied(value, self.value(value.operand, frame))

    def by_itself(self, write: Callable[[], str]) -> str | None:
        """Return what is written without messages; None, with nothing written, if any are."""
        self.alone += 1
        kept = self.save()
        try:
            return write()
        except NeedsMessages:
            self.restore(kept)
            if self.alone > 1:
                raise
            return None
        finally:
            self.alone -= 1

    def applied(self, value: Reduction | Scan | Sort | Fourier, text: str) -> str:
        """Return NumPy's call for what is done along an axis."""
        match value:
            case Reduction(operand, axis, operation, dtype, _):
                if operation not in _REDUCED:
                    raise NotBuiltError(f"no form of the reduction `{operation}`")
                along = "" if axis is None else f", axis={axis}"
                if operation in ("add", "multiply", "mean"):
                    own = reduced_dtype(
                        "mean" if operation == "mean" else "sum",
                        describe(operand, self.typed).dtype,
                    )
                    along += "" if own == dtype else f", dtype={dtype!r}"
                return f"np.{_REDUCED[operation]}({text}{along})"
            case Sort(_, axis):
                return f"np.sort({text}, {axis})"
            case Fourier(_, axis, _, inverse, _):
                return f"np.fft.{'ifft' if inverse else 'fft'}({text}, axis={axis})"
            case Scan(operand, axis, operation, dtype, reverse):
                if operation not in SCANNED:
                    raise NotBuiltError(f"no form of running `{operation}`")
                own = reduced_dtype("sum", describe(operand, self.typed).dtype)
                more = "" if own == dtype else f", dtype={dtype!r}"
                if reverse:
                    inner = f"np.flip({text}, {axis}), {axis}{more}"
                    return f"np.flip(np.{SCANNED[operation]}({inner}), {axis})"
                return f"np.{SCANNED[operation]}({text}, {axis}{more})"

    def hoisted(self, value: Reduction | Scan | Sort | Fourier | Tally) -> Read:
        """Write what ranks do together as an array of its own, and return what reads it."""
        if self.alone:
            raise NeedsMessages
        held, self.held, computed, self.computed = self.held, [], self.computed, ()
        wanted, self.wanted = self.wanted, {}
        operand = value.places if isinstance(value, Tally) else value.operand
        extents = self.extents(operand)
        placement = natural(operand, self.placed, extents)
        found = describe(value, self.typed)
        if isinstance(value, Scan):
            placement = in_blocks(placement, value.axis)
        elif isinstance(value, Sort | Fourier) and spread_of(placement, value.axis):
            placement = whole_along(placement, extents, value.axis)
        # how its dimensions are dealt out has a name of its own
        made = self.fresh(_wish(value))
        self.names[made] = made
        frame = frame_of(placement, extents)
        self.placed[made], self.types[made] = placement, ArrayType(found.dtype, extents)
        text, placement = self.together(value, frame, placement)
        self.placed[made], self.types[made] = placement, found
        self.exchange()
        self.line(f"{made} = {text}")
        self.held, self.computed, self.wanted = held, computed, wanted
        return Read(made, whole(found.extents))

    def together(
        self, value: Reduction | Scan | Sort | Fourier | Tally, frame: Frame, placement: Placement
    ) -> tuple[str, Placement]:
        """Return what ranks compute together, and where it then is."""
        match value:
            case Tally(places, weights, extent, _):
                given = [self.value(one, frame) for one in (places, weights) if one]
                text = f"np.bincount({', '.join(given)}, minlength={self.text(extent)})"
                line = self.line_along(placement, range(len(frame)))
                text = f"combined({text}, np.add, {line})" if line else text
                return text, local((extent,))
            case Reduction(operand, axis, operation, dtype, _):
                kept = [d for d in range(len(frame)) if axis is not None and d != axis]
                line = self.line_along(placement, [d for d in range(len(frame)) if d not in kept])
                left = picked(placement, kept) if kept else local(())
                if not line:
                    return self.here(value, frame), left
                if operation not in _REDUCED or operation.startswith("arg"):
                    raise NotBuiltError(f"no form of `{operation}` over ranks")
                if value.fused:
                    text = f"combined({self.here(value, frame)}, np.add, {line})"
                else:
                    ufunc, inner = _UFUNCS.get(operation, operation), self.value(operand, frame)
                    inner = f"{inner} != 0" if operation == "count_nonzero" else inner
                    text = f"reduced({inner}, {axis}, np.{ufunc}, {dtype!r}, {line})"
                if not kept:
                    text += "[()]"
                if operation == "mean":
                    text += f" / {self.count(operand, axis)}"
                return text, left
            case Scan(operand, axis, operation, dtype, reverse):
                line = self.line_along(placement, [axis])
                if not line:
                    return self.here(value, frame), placement
                self.scanned_as = dtype
                if operation not in SCANNED:
                    raise NotBuiltError(f"no form of running `{operation}`")
                inner = self.value(operand, frame)
                text = f"scanned({inner}, {axis}, np.{operation}, {dtype!r}, {line}, {reverse})"
                return text, placement
            case _:
                return self.here(value, frame), placement

    def count(self, operand: Value, axis: int | None) -> str:
        """Return how many elements a reduction combines."""
        extents = self.extents(operand)
        chosen = extents if axis is None else (extents[axis],)
        texts = (self.text(extent) for extent in chosen)
        return " / ".join(t if t.isidentifier() else f"({t})" for t in texts)

    def line_along(self, placement: Placement, dims: Sequence[int]) -> str:
        """Return the communicator of ranks that share dimensions; nothing where none do."""
        axes = [axis for d in dims for axis in placement.dims[d].axes]
        names = ", ".join(f'"{axis}"' for axis in axes)
        return f"{self.module.mesh(placement.mesh)}.line({names})" if axes else ""


def bound_value(kernel: Kernel, name: str) -> ast.expr:
    """Return what a number is set to, where that happens once: in the kernel, or outside."""
    function = definition_of(kernel)
    inside = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    values = [
        node.value
        for node in (function if inside else ast.parse(kernel.context.source)).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    if len(inside) > 1 or len(values) != 1 or values[0] is None:
        why = f"`{name}` is set more than once, or in a loop"
        raise NotBuiltError(why if inside else f"the value of `{name}` is not known")
    return values[0]


class _Numbers(ast.NodeTransformer):
    """Gives names in a number those of the built function."""

    def __init__(self, scope: Values, sizes: dict[str, str]) -> None:
        self.scope, self.sizes = scope, sizes

    def visit(self, node: ast.AST) -> ast.AST:
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if text in self.sizes and self.sizes[text] in self.scope.module.sizes and "." in text:
            self.scope.module.used.add(self.sizes[text])
            return ast.Name(self.sizes[text])
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in (
                "numpy",
                "math",
                self.scope.kernel.context.array_module,
            ):
                return ast.Attribute(ast.Name("np"), node.attr)
            raise NotBuiltError(f"a number that is not known: {text}")
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in SIGNS:
                raise NotBuiltError(f"a number that is computed: {text}")
            texts = [ast.unparse(self.visit(one)) for one in node.args]
            return ast.parse(applied(node.func.id, [f"({one})" for one in texts]), mode="eval").body
        if isinstance(node, ast.Name):
            return ast.Name(self.scope.number_named(node.id))
        return self.generic_visit(node)


def _wish(value: Value) -> str:
    names = {Reduction: "total", Scan: "running", Sort: "ordered", Fourier: "waves"}
    return names.get(type(value), "counts")


def _ranges(need: str) -> str:
    """Return how positions along an axis begin that is empty where a need does not hold."""
    return need.removeprefix("len(").replace(".some(", ".own(").rstrip(")")


def _plus(text: str, by: Expr, write: Callable[[Expr], str]) -> str:
    """Return a vector with a whole number added."""
    if by == ZERO:
        return text
    if isinstance(by, Num):
        return plus(text, int(by.value))
    return f"{text} + ({write(by)})"
