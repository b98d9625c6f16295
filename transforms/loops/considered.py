"""Loops over elements that nothing here rewrites, although no iteration waits for another.

They are shown, with what they take, and what arrays would: each operation once, over as many
elements as the loop has iterations. What to write is up to who knows the program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import ArrayType, ShapeConflict, whole
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    ScalarBind,
    Scatter,
    Statement,
    Store,
    Unknown,
    Unrolled,
    is_total,
)
from advisor.ir.values import (
    Along,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Gather,
    Point,
    Read,
    Reduction,
    Scalar,
    Subscript,
    Value,
    reads,
)
from advisor.ir.waiting import what_waits
from advisor.numpy_table import strong
from costdb.expr import ONE, Expr, floor_div, free_symbols, num, substitute
from transforms.kit.kernels import type_of, with_statement
from transforms.kit.rewrite import first_line, statement_at
from transforms.loops.raising import NotRaised, combined

_UNTOUCHED = Legality(
    Applicability.DISPLAY,
    "no iteration needs what another one did, as far as names show, if no two arrays overlap",
)


def considered(kernel: Kernel) -> Iterator[Proposal]:
    """Yield for each outermost loop over elements that does not wait what arrays would take."""
    if not any(array.spec.mesh.axes for array in kernel.arrays.values()):
        yield from _in_block(kernel.body, kernel)


def _in_block(body: tuple[Statement, ...], kernel: Kernel) -> Iterator[Proposal]:
    for one in body:
        if not isinstance(one, Loop):
            continue
        node = statement_at(one.span, kernel.context)
        modules = {name for name in (kernel.context.array_module, "math") if name is not None}
        waits = not isinstance(node, ast.For) or what_waits(node, modules)
        made = _Made(kernel)
        try:
            if waits:
                raise NotRaised
            made.block((one,), ONE, {})
            if not (made.read or made.changed):
                raise NotRaised
            made.refuse_shared()
        except (NotRaised, ShapeConflict):
            yield from _in_block(one.body, kernel)
            continue
        assert isinstance(node, ast.For)
        variant = kernel.with_locals(made.arrays)
        names = ", ".join(
            f"`{part.id}`" for part in ast.walk(node.target) if isinstance(part, ast.Name)
        )
        yield Proposal(
            f"write the loop over {names} as array statements, each operation once over all,"
            " or compile it",
            f"every element costs the interpreter its steps; {_to_use(node)}",
            first_line(one.span, kernel.context),
            variant.with_body(with_statement(kernel.body, one, tuple(made.body))),
            _UNTOUCHED,
            tuple,
        )


def _to_use(node: ast.For) -> str:
    """Return what functions of NumPy do what a loop holds."""
    found = ["slices, or a new axis for each index"]
    parts = list(ast.walk(node))
    if any(isinstance(one, ast.If | ast.IfExp) for one in parts):
        found.append("np.where or masks for conditions")
    if any(isinstance(one, ast.Slice) for one in parts):
        found.append("sliding_window_view or prefix sums for windows")
    adds = [one.target for one in parts if isinstance(one, ast.AugAssign)]
    if any(isinstance(one, ast.Name) for one in adds):
        found.append("a reduction for what is added up")
    if any(isinstance(one, ast.Subscript) for one in adds):
        found.append("np.bincount or np.add.at for what is added at places")
    return f"consider {', '.join(found)}; arrays round and wrap around otherwise than numbers may"


@dataclass(slots=True)
class _Made:
    """The operations of a loop, each over all iterations, on arrays of no meaning."""

    kernel: Kernel
    arrays: dict[str, ArrayType] = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)
    changed: dict[str, set[tuple[Subscript, ...]]] = field(default_factory=dict)
    read: set[Read] = field(default_factory=set)
    middle: Mapping[str, Expr] = field(default_factory=dict)

    def refuse_shared(self) -> None:
        """Refuse elements that are read where others may have been stored, under whatever name."""
        arrays = {one.array for one in self.read}
        for array, places in self.changed.items():
            read = {one.region for one in self.read if one.array == array}
            others = {array, *arrays} & self.kernel.aliases
            if (read and (len(places) > 1 or read != places)) or (
                array in others and len(others) > 1
            ):
                raise NotRaised

    def block(self, body: tuple[Statement, ...], count: Expr, middle: Mapping[str, Expr]) -> None:
        for one in body:
            match one:
                case Loop(variable, low, high, step):
                    low, high = (substitute(bound, middle) for bound in (low, high))
                    trips = floor_div(high - low + step - 1, num(step))
                    self.middle = {**middle, variable: floor_div(low + high, num(2))}
                    self.block(one.body, count * trips, self.middle)
                    self.middle = middle
                case Choice(_, then, orelse, _, condition):
                    if condition is not None:
                        self.bind(condition, count, one)
                    self.block((*then, *orelse), count, middle)
                case Store() if is_total(one):
                    found = combined(one)
                    if found is None:
                        self.bind(one.value, count, one)
                        continue
                    term = self.over_all(found[1], count)
                    dtype = type_of(one.value, self.kernel).dtype
                    operation = "add" if found[0] == "subtract" else found[0]
                    whole_sum = Reduction(term, None, operation, strong(dtype))
                    self.body.append(ScalarBind(self.name(), whole_sum, one.span))
                case Store() | ScalarBind() | Bind():
                    if isinstance(one, Store):
                        if not all(isinstance(part, Point) for part in one.region):
                            # rows are computed by one call each already
                            raise NotRaised
                        self.changed.setdefault(one.array, set()).add(one.region)
                    self.bind(one.value, count, one)
                case Scatter() if one.by_element:
                    self.changed.setdefault(one.array, set()).add(())
                    first, *others = (self.over_all(at, count) for at in one.all_places)
                    value = self.over_all(one.value, count)
                    self.body.append(
                        Scatter(one.array, first, value, one.operation, one.span, others=(*others,))
                    )
                case Unrolled(inner):
                    self.block(inner, count, middle)
                case Unknown():
                    self.body.append(one)
                case _:
                    raise NotRaised

    def name(self) -> str:
        return f"<all {len(self.arrays)} {len(self.body)}>"

    def bind(self, value: Value, count: Expr, one: Statement) -> None:
        made = self.over_all(value, count)
        found = type_of(made, self.with_arrays())
        if not found.extents:
            return
        if isinstance(made, Read):
            made = Copy(made, found.dtype)
        name = self.name()
        self.arrays[name] = ArrayType(strong(found.dtype), found.extents)
        self.body.append(Bind(name, made, one.span))

    def with_arrays(self) -> Kernel:
        return self.kernel.with_locals(self.arrays)

    def rank(self, value: Value) -> int:
        return len(type_of(value, self.kernel).extents)

    def aligned(self, value: Value, count: Expr, rank: int) -> Value:
        """Return a value for all iterations with so many axes beside theirs."""
        made = self.over_all(value, count)
        for _ in range(rank - self.rank(value) if not isinstance(value, Scalar) else 0):
            made = Expand(made, 1)
        return made

    def over_all(self, value: Value, count: Expr) -> Value:
        """Return an operation on single elements as one on as many as there are iterations."""
        match value:
            case Scalar():
                return value
            case Read():
                found = type_of(value, self.kernel)
                self.read.add(value)
                if any(free_symbols(extent) & self.middle.keys() for extent in found.extents):
                    # a price that sums up what each iteration takes is slow to compare
                    raise NotRaised
                name = f"<{found.dtype} {len(self.arrays)}>"
                made = ArrayType(strong(found.dtype), (count, *found.extents))
                self.arrays[name] = made
                self.body.append(Bind(name, Fill("", made.extents, made.dtype), self.kernel.span))
                return Read(name, whole(made.extents))
            case Elementwise(operation, parts):
                rank = max(map(self.rank, parts))
                return Elementwise(
                    operation, tuple(self.aligned(one, count, rank) for one in parts)
                )
            case Reduction(operand, axis, operation, dtype):
                inner_axes = range(self.rank(operand)) if axis is None else (axis,)
                over = self.over_all(operand, count)
                for one in reversed(inner_axes):
                    over = Reduction(over, one + 1, operation, dtype)
                return over
            case Along(computed=computed):
                return self.over_all(computed, count)
            case Copy(operand, dtype):
                return Copy(self.over_all(operand, count), dtype)
            case Gather(operand) if not type_of(value, self.kernel).extents:
                self.read.update(reads(operand))
                first, *others = (self.over_all(at, count) for at in value.all_places)
                return Gather(operand, first, tuple(others))
        raise NotRaised
