"""Python's text of a kernel's expressions: sizes, numbers, operators, functions of NumPy."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from advisor.analysis.owners import local, place, value_placement
from advisor.analysis.placement import Along, NotPriced, Placement, declared_placement, ranks_of
from advisor.distribution import AxisMap, BlockDim, CyclicDim, MeshSpec, NotDistributed
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind, Rename, walk
from advisor.ir.values import Value
from advisor.numpy_table import ROWS, SIGNS
from advisor.source import Span, fresh_name
from costdb.expr import ONE, ZERO, Expr, ExprError, evaluate, free_symbols, python_text, to_text
from costdb.records import dataclass, field, only, replace


class NotBuiltError(Exception):
    """A part of a kernel that is not written as a program of ranks: why, and where."""

    def __init__(self, why: str, span: Span | None = None) -> None:
        super().__init__(why)
        self.why, self.span = why, span


def python(expr: Expr, names: Mapping[str, str]) -> str:
    """Return a whole number as Python has it, with other names for some symbols."""
    text = python_text(expr, {name: names.get(name, name) for name in free_symbols(expr)})
    if text is None:
        raise NotBuiltError(f"an index that Python has no form for: {to_text(expr)}")
    return text


def literal(expr: Expr, sizes: Mapping[str, int | float]) -> int:
    """Return the value of an expression at given sizes.

    Raises
    ------
    NotBuiltError
        A size has no value.
    """
    try:
        return int(evaluate(expr, sizes))
    except ExprError as error:
        raise NotBuiltError(f"{error}: pass -D NAME=VALUE") from error


def plus(text: str, offset: int) -> str:
    """Return text of a number and a constant added."""
    return f"{text} {'+' if offset > 0 else '-'} {abs(offset)}" if offset else text


def between(low: str, high: str, step: int = 1) -> str:
    """Return a slice as short as it can be written."""
    end = f":{step}" if step != 1 else ""
    return f"{'' if low == '0' else low}:{high}{end}"


def applied(operation: str, parts: Sequence[str]) -> str:
    """Return an operation on operands, as a sign where Python has one."""
    if operation not in ROWS:
        raise NotBuiltError(f"no form of `{operation}`")
    if operation in SIGNS and len(parts) == 2:
        return f"({parts[0]} {SIGNS[operation]} {parts[1]})"
    return f"(-{parts[0]})" if operation == "negative" else f"np.{operation}({', '.join(parts)})"


def tidy(line: str, width: int) -> list[str]:
    """Return a statement without parentheses that change nothing, in lines of at most a width."""
    text = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    if text.startswith("#"):
        return [line if len(line) <= width else f"{line[: width - 4]} ..."]
    if not text.isascii() or text.endswith(":"):
        return [line]
    (node,) = ast.parse(text).body
    text = ast.unparse(node)
    value = getattr(node, "value", None)
    whole = ast.unparse(value) if isinstance(value, ast.expr) else text
    if len(indent) + len(text) <= width or not text.endswith(whole):
        return [indent + text]
    assert isinstance(value, ast.expr)
    before = text[: len(text) - len(whole)]
    return [indent + one for one in _in_lines(before, value, whole, "", width - len(indent))]


def _in_lines(before: str, node: ast.expr, text: str, after: str, width: int) -> list[str]:
    """Return an expression by its arguments or terms, a line each, where it is too long for one."""
    if len(before) + len(text) + len(after) <= width:
        return [before + text + after]
    inner: list[str] = []
    opening = "("
    if isinstance(node, ast.Call):
        opening = f"{ast.unparse(node.func)}("
        for one in node.args:
            inner += _in_lines("", one, ast.unparse(one), ",", width - 4)
        inner += [f"{ast.unparse(one)}," for one in node.keywords]
    elif isinstance(node, ast.BinOp):
        for sign, one, own in _terms(node):
            inner += _in_lines(sign, one, own, "", width - 4)
    else:
        return [before + text + after]
    return [before + opening, *(f"    {one}" for one in inner), f"){after}"]


def _terms(node: ast.BinOp) -> list[tuple[str, ast.expr, str]]:
    """Return the terms of a sum, or the factors of a product, with the signs before them."""
    sums = isinstance(node.op, ast.Add | ast.Sub)
    kinds = (ast.Add, ast.Sub) if sums else (type(node.op),)
    found: list[tuple[str, ast.expr, str]] = []
    one: ast.expr = node
    while isinstance(one, ast.BinOp) and isinstance(one.op, kinds):
        # an operand keeps the parentheses that it needs beside the sign
        text = ast.unparse(ast.BinOp(ast.Name("_"), one.op, one.right)).removeprefix("_ ")
        sign, _, right = text.partition(" ")
        found.append((f"{sign} ", one.right, right))
        one = one.left
    first = ast.unparse(ast.BinOp(one, node.op, ast.Name("_")))
    return [("", one, first[: first.rindex(" ", 0, -2)]), *reversed(found)]


# What of a kernel's source its intermediate form stands for exactly; all else is not built.
#
# The form says what costs time: it leaves out what a number that is accumulated comes to, say, and
# how many decimals are rounded to. A program that runs needs it, so such a kernel is refused.

_FORMS: Final = {
    name: frozenset(keywords.split())
    for names, keywords in (
        ("sum prod mean cumsum cumprod", "axis out dtype keepdims"),
        ("max min amax amin any all count_nonzero", "axis out keepdims"),
        ("argmax argmin sort flip fft ifft", "axis"),
        ("fft2 ifft2 fftn ifftn", "axes"),
        ("zeros ones empty zeros_like ones_like empty_like full full_like", "dtype order shape"),
        ("copy array asarray ascontiguousarray astype", "dtype copy"),
        ("transpose swapaxes moveaxis expand_dims", "axes axis"),
        ("roll", "axis shift"),
        ("bincount", "weights minlength"),
        ("dot matmul outer inner where diff range prange len at ravel clip int float", "out"),
        ("pad", "mode"),
        ("abs round around", "out"),
    )
    for name in names.split()
}
"""Functions and methods by their last name, and the keywords of theirs that the form keeps."""
_MOST: Final = {"round": 1, "around": 1, "fft": 1, "ifft": 1, "diff": 1, "where": 3}


def definition_of(kernel: Kernel) -> ast.FunctionDef:
    """Return the syntax of a kernel's function."""
    name = kernel.name.rpartition(".")[2]
    for node in ast.walk(ast.parse(kernel.context.source)):
        if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (
            name,
            kernel.span.start_line,
        ):
            return node
    raise NotBuiltError("it is no plain function", kernel.span)


def check(kernel: Kernel, function: ast.FunctionDef) -> None:
    """Refuse a kernel of whose source the intermediate form leaves something out.

    Raises
    ------
    NotBuiltError
        With the place and what is left out.
    """
    for node, why in _left_out(kernel, function):
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        raise NotBuiltError(why, Span(node.lineno, node.col_offset, *end))


def _left_out(kernel: Kernel, function: ast.FunctionDef) -> Iterator[tuple[ast.expr, str]]:
    arrays = kernel.arrays.keys() | kernel.locals.keys()
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                if node.target.id not in arrays:
                    yield node.target, f"`{node.target.id}` is a number that is accumulated"
            elif isinstance(node, ast.NamedExpr | ast.Lambda | ast.IfExp):
                yield node, f"no form of `{ast.unparse(node)}`"
            elif isinstance(node, ast.Call):
                yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
    known = _FORMS.get(name, frozenset(("out",)) if name in ROWS else None)
    if known is None:
        yield node, f"no form of `{ast.unparse(called)}`"
        return
    given = {one.arg or "**" for one in node.keywords}
    if given - known:
        yield node, f"`{ast.unparse(called)}` with {', '.join(sorted(given - known))}"
    if len(node.args) > _MOST.get(name, len(node.args)):
        yield node, f"`{ast.unparse(called)}` with {len(node.args)} arguments"


# --- module ---------------------------------------------------------------------------------------
# The module that kernels are built into: its meshes, layouts, sizes, and their names.


@dataclass(slots=True)
class Module:
    """What functions of a built program share.

    Attributes
    ----------
    sizes : mapping of str to number
        Values of sizes; a program states those that it uses.
    taken : set of str
        Names that mean something in it.
    avoided : frozenset of str
        Names that functions may want for themselves.
    """

    sizes: Mapping[str, int | float]
    taken: set[str]
    avoided: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)
    meshes: dict[MeshSpec, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)

    def fresh(self, wish: str) -> str:
        """Return a name that nothing has yet, as near to a wish as may be."""
        name = fresh_name(wish, {*self.taken, *self.avoided, *self.sizes})
        self.taken.add(name)
        return name

    def define(self, text: str, wish: str) -> str:
        """Return the name of a value of the module."""
        if text not in self.known:
            self.known[text] = self.fresh(wish)
            self.lines.append(f"{self.known[text]} = {text}")
        return self.known[text]

    def mesh(self, spec: MeshSpec) -> str:
        """Return the name of a mesh of ranks; of what is not distributed any will do."""
        if not spec.axes:
            if self.meshes:
                return next(iter(self.meshes.values()))
            spec = MeshSpec((("rank", 1),))
        if spec not in self.meshes:
            self.meshes[spec] = self.fresh("RANKS")
        return self.meshes[spec]

    def mesh_line(self, spec: MeshSpec) -> str:
        """Return the definition of a mesh: extents as stated, 1 where nothing says them."""
        extents = (
            (axis, self.sizes.get(n, 1) if isinstance(n, str) else n) for axis, n in spec.axes
        )
        return f"{self.meshes[spec]} = Mesh({', '.join(f'{axis}={n}' for axis, n in extents)})"

    def layout_text(
        self, placement: Placement, extents: tuple[Expr, ...], names: Mapping[str, str]
    ) -> str:
        """Return the text of who owns what of an array."""
        mesh = self.mesh(placement.mesh)
        dims = "".join(f", {_dim(dim)}" for dim in placement.dims)
        text = f"Layout({mesh}, {_tuple(placement.template, names)}{dims}"
        if any(origin != ZERO for origin in placement.origin):
            text += f", origin={_tuple(placement.origin, names)}"
        if extents != placement.template:
            text += f", shape={_tuple(extents, names)}"
        if placement.order != "C":
            text += f", order={placement.order!r}"
        return f"{text})"

    def is_own(self, expressions: Iterable[Expr]) -> bool:
        """Return whether expressions are made of sizes of the module; these it then states."""
        names = frozenset[str]().union(*map(free_symbols, expressions))
        if any(name not in self.sizes for name in names):
            return False
        self.used |= names
        return True


def _dim(dim: AxisMap) -> str:
    if isinstance(dim, NotDistributed):
        return "None"
    axes = ", ".join(f'"{axis}"' for axis in dim.axes)
    return f"cyclic({dim.k}, {axes})" if isinstance(dim, CyclicDim) else f"block({axes})"


def _tuple(parts: tuple[Expr, ...], names: Mapping[str, str]) -> str:
    return tupled([python(one, names) for one in parts])


def tupled(texts: Sequence[str]) -> str:
    """Return a tuple as source."""
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


# Who owns what in a built program, and how the axes of what is computed lie on ranks.


@dataclass(frozen=True, slots=True)
class Spread:
    """How a dimension of an index space is dealt out over ranks."""

    extent: Expr
    dim: AxisMap
    mesh: MeshSpec

    @property
    def is_block(self) -> bool:
        """Whether each rank has one piece."""
        return isinstance(self.dim, BlockDim)

    def owned(self, low: Expr, high: Expr) -> Along:
        """Return how a range of the index space lies on the ranks."""
        return Along(low, high, self.extent, ranks_of(self.mesh, self.dim.axes), self.dim)

    def shares(self, other: Spread) -> bool:
        """Return whether ranks differ along both."""
        return self.mesh != other.mesh or not set(self.dim.axes).isdisjoint(other.dim.axes)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of what a statement computes: `count` elements, all or a rank's part of them.

    Attributes
    ----------
    spread : Spread or None
        None where every rank computes all of it.
    low : Expr
        Where in the index space that is spread the first element lies.
    count : Expr
    step : int
        How far apart in that space neighbours are.
    moved : tuple of (str, Expr)
        What is done to the positions along it, outermost first: ``roll`` by an amount, ``flip``
        of an extent, ``wrap`` into an extent.
    """

    spread: Spread | None
    low: Expr
    count: Expr
    step: int = 1
    moved: tuple[tuple[str, Expr, Expr], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether its elements are neighbours, in their own places."""
        return not self.moved and self.step == 1


Frame = tuple[Axis, ...]
SINGLE = Axis(None, ZERO, ONE)


def whole_axes(extents: Iterable[Expr]) -> Frame:
    """Return axes that nobody shares."""
    return tuple(Axis(None, ZERO, extent) for extent in extents)


def spread_of(placement: Placement, d: int) -> Spread | None:
    """Return how a dimension is dealt out; None where every rank has all of it."""
    if isinstance(placement.dims[d], NotDistributed):
        return None
    return Spread(placement.template[d], placement.dims[d], placement.mesh)


def frame_of(placement: Placement, extents: tuple[Expr, ...]) -> Frame:
    """Return the axes of an array that every rank computes its own part of."""
    return tuple(
        Axis(spread_of(placement, d), placement.origin[d], count) for d, count in enumerate(extents)
    )


def natural(value: Value, placed: Mapping[str, Placement], extents: tuple[Expr, ...]) -> Placement:
    """Return where a value's elements are computed: by owners of operands, or by every rank."""
    try:
        found = value_placement(value, placed)
    except NotPriced:
        found = None
    if found is None or len(found.template) != len(extents):
        return local(extents)
    # of what is broadcast, an operand's dimension of length 1 says nothing
    dims = tuple(
        NotDistributed() if template == ONE != extent else dim
        for dim, template, extent in zip(found.dims, found.template, extents, strict=True)
    )
    template = tuple(
        extent if isinstance(dim, NotDistributed) else own
        for dim, own, extent in zip(dims, found.template, extents, strict=True)
    )
    return replace(found, dims=dims, template=template)


def whole_along(placement: Placement, extents: tuple[Expr, ...], axis: int) -> Placement:
    """Return a placement with one axis whole on every rank, and another dealt out in its place."""
    dims: list[AxisMap] = list(placement.dims)
    moved = dims[axis].axes
    dims[axis] = NotDistributed()
    others = [d for d in range(len(dims)) if d != axis]
    if others:
        free = [d for d in others if isinstance(dims[d], NotDistributed)]
        target = (free or others)[0]
        dims[target] = BlockDim((*dims[target].axes, *moved))
    origin = tuple(ZERO for _ in extents)
    return Placement(extents, origin, tuple(dims), placement.mesh, placement.order)


def in_blocks(placement: Placement, axis: int) -> Placement:
    """Return a placement with one axis in blocks."""
    dims = list(placement.dims)
    if dims[axis].axes:
        dims[axis] = BlockDim(dims[axis].axes)
    return replace(placement, dims=tuple(dims))


def placements(kernel: Kernel) -> dict[str, Placement]:
    """Return where every array of a kernel lives.

    Raises
    ------
    NotBuiltError
        Names change places that are declared in different ways.
    """
    try:
        placed = place(kernel)
    except NotPriced:
        placed = {name: declared_placement(array) for name, array in kernel.arrays.items()}
    for one in walk(kernel.body):
        if isinstance(one, Bind) and one.name not in placed:
            placed[one.name] = natural(one.value, placed, kernel.extents(one.name))
    groups: list[set[str]] = []
    for one in only(Rename, walk(kernel.body)):
        joined = set(one.names).union(*(g for g in groups if g & one.names))
        groups = [g for g in groups if not g & one.names] + [joined]
    for group in groups:
        declared = [name for name in sorted(group) if name in kernel.arrays]
        first = placed[(declared or sorted(group))[0]]
        if any(placed[name] != first for name in declared):
            span = next(s.span for s in walk(kernel.body) if isinstance(s, Rename))
            raise NotBuiltError("names change places of arrays distributed in other ways", span)
        placed.update(dict.fromkeys(group, first))
    return placed
