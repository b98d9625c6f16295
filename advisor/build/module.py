"""The module that kernels are built into: its meshes, layouts, sizes, and their names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from advisor.analysis.facts import NotPriced
from advisor.analysis.owners import local, place, value_placement
from advisor.analysis.placement import Placement, declared_placement
from advisor.build.text import NotBuiltError, python
from advisor.distribution import AxisMap, BlockDim, CyclicDim, MeshSpec, NotDistributed
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind, Rename, walk
from advisor.ir.values import Value
from costdb.expr import ONE, ZERO, Expr, free_symbols
from costdb.records import dataclass, field, replace


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
        name, tried = wish, 1
        while name in self.taken or name in self.avoided or name in self.sizes:
            tried += 1
            name = f"{wish}_{tried}"
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
    texts = [python(one, names) for one in parts]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def constant(source: str, name: str) -> ast.expr:
    """Return the constant that a module gives a name.

    Raises
    ------
    NotBuiltError
        It gives it none, or several.
    """
    found = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    if len(found) != 1 or found[0].value is None:
        raise NotBuiltError(f"the value of `{name}` is not known")
    return found[0].value


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
    for one in walk(kernel.body):
        if isinstance(one, Rename):
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
