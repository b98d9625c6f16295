"""What the names of a kernel denote at one point of its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import libcst as cst

from advisor.frontend.problems import NotUnderstood
from advisor.ir.kernel import DeclaredArray, LocalArray
from advisor.ir.shapes import ArrayType
from advisor.ir.values import Range, Read, Subscript
from advisor.source import Span
from costdb.expr import Expr, sym


@dataclass(slots=True)
class Scope:
    """Names while a kernel's body is read from top to bottom.

    Attributes
    ----------
    imports : mapping of str to str
        What imported names stand for.
    declared, locals : dict
        Arrays; a name keeps one element type and shape.
    views : dict of str to Read
        Names that denote part of another array's memory.
    scalars : dict of str to Expr
        Integer variables whose value is an expression over sizes.
    numbers : dict of str to str
        Other numeric variables and their type.
    minima : dict of str to int
        Least value of a symbol, where it is not 1.
    renamed : set of str
        Arrays whose names were exchanged.
    assigned_sizes : set of str
        Parameters that no longer hold the size they are named after.
    """

    imports: Mapping[str, str]
    span: Callable[[cst.CSTNode], Span]
    declared: dict[str, DeclaredArray] = field(default_factory=dict)
    locals: dict[str, LocalArray] = field(default_factory=dict)
    views: dict[str, Read] = field(default_factory=dict)
    scalars: dict[str, Expr] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    minima: dict[str, int] = field(default_factory=dict)
    renamed: set[str] = field(default_factory=set)
    assigned_sizes: set[str] = field(default_factory=set)

    def is_array(self, name: str) -> bool:
        """Return whether a name denotes an array or a view of one."""
        return name in self.declared or name in self.locals or name in self.views

    def array_type(self, name: str) -> ArrayType:
        """Return the type of a declared or local array."""
        if name in self.declared:
            array = self.declared[name]
            return ArrayType(array.dtype, array.extents)
        if name in self.locals:
            return ArrayType(self.locals[name].dtype, self.locals[name].extents)
        raise NotUnderstood(f"`{name}` is not known to be an array")

    def select(self, name: str, region: tuple[Subscript, ...]) -> Read:
        """Return a region of what a name denotes, in the index space of the array behind it."""
        if name not in self.views:
            return Read(name, region)
        view = self.views[name]
        parts = iter(region)
        composed: list[Subscript] = []
        for outer in view.region:
            if not isinstance(outer, Range):
                composed.append(outer)
                continue
            inner = next(parts)
            if isinstance(inner, Range):
                composed.append(Range(outer.low + inner.low, outer.low + inner.high))
            else:
                composed.append(type(inner)(outer.low + inner.at))
        return Read(view.array, tuple(composed))

    def extents_of(self, name: str) -> tuple[Expr, ...]:
        """Return the shape of what a name denotes."""
        if name in self.views:
            region = self.views[name].region
            return tuple(part.high - part.low for part in region if isinstance(part, Range))
        return self.array_type(name).extents

    def bind_local(self, name: str, found: ArrayType) -> None:
        """Let a name denote a fresh array from here on."""
        known = self.array_type(name) if name in self.declared or name in self.locals else None
        if known is not None and known != found:
            raise NotUnderstood(f"`{name}` changes its shape or element type here")
        self.forget(name)
        for view, target in list(self.views.items()):
            if target.array == name:
                del self.views[view]
        if known is None:
            self.locals[name] = LocalArray(found.dtype, found.extents)

    def bind_scalar(self, name: str, value: Expr) -> None:
        """Let a name denote a whole number."""
        self.forget(name)
        self.scalars[name] = value

    def forget(self, name: str) -> None:
        """Drop what a name denoted, as far as it was not an array of its own."""
        if name in self.scalars and self.scalars[name] == sym(name):
            self.assigned_sizes.add(name)
        self.views.pop(name, None)
        self.scalars.pop(name, None)
        self.numbers.pop(name, None)
