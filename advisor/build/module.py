"""The module that kernels are built into: its meshes, layouts, sizes, and their names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from advisor.analysis.placement import Placement
from advisor.build.text import NotBuiltError, python
from advisor.distribution import AxisMap, CyclicDim, MeshSpec, NotDistributed
from costdb.expr import ZERO, Expr, free_symbols


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
