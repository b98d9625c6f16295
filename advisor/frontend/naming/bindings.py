"""Which names a file binds, scope by scope, by Python's rules of scoping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

import libcst as cst

from advisor.dtypes import is_dtype
from advisor.frontend.naming.names import ARRAY_MODULES, IMMUTABLE_ARRAYS, imported_names, resolve
from advisor.frontend.syntax.walking import show

SOMETHING = ""
"""What a name stands for that is bound other than by an import."""

# star imports of these bind no name of a builtin that the front end gives a meaning
_HARMLESS_STARS = frozenset({"advisor", "math", "typing"})


class NameVisitor(cst.CSTVisitor):
    """Sees names that are read or bound; not those of attributes and keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.muted = 0

    def name_seen(self, name: str) -> None:
        """Note a name that stands in the source."""

    def name_bound(self, name: str, target: str = SOMETHING) -> None:
        """Note a name that is bound, and what import it stands for then."""

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note the names of a node, and visit what is within it."""
        if type(node) not in _OF_NAMES:
            # most nodes; to ask each of them for every class of the cases takes longer
            return super().on_visit(node) is not False
        match node:
            case cst.Name(value=name):
                if not self.muted:
                    self.name_seen(name)
            case (
                cst.AssignTarget(target=target)
                | cst.AugAssign(target=target)
                | cst.AnnAssign(target=target)
                | cst.For(target=target)
                | cst.CompFor(target=target)
                | cst.NamedExpr(target=target)
                | cst.Del(target=target)
                | cst.AsName(name=target)
            ):
                for name in target_names(target):
                    self.name_bound(name)
            case (
                cst.FunctionDef(name=cst.Name(value=name))
                | cst.ClassDef(name=cst.Name(value=name))
                | cst.TypeAlias(name=cst.Name(value=name))
            ):
                self.name_bound(name)
            case (
                cst.MatchAs(name=cst.Name(value=name))
                | cst.MatchStar(name=cst.Name(value=name))
                | cst.MatchMapping(rest=cst.Name(value=name))
            ):
                self.name_bound(name)
            case cst.Import() | cst.ImportFrom():
                self._import_bound(node)
                return False  # an `as` within it binds what has just been noted
            case _:
                pass
        return super().on_visit(node) is not False

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Overlook the name of an attribute or a keyword."""
        if (type(node), attribute) in _NO_NAMES:
            self.muted += 1

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """Look at names again."""
        if (type(original_node), attribute) in _NO_NAMES:
            self.muted -= 1

    def _import_bound(self, node: cst.Import | cst.ImportFrom) -> None:
        known = imported_names([node])
        for name, target in known.items():
            self.name_bound(name, target)
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            # relative imports stand for something, but nobody knows what
            for alias in node.names:
                name = alias.evaluated_alias or alias.evaluated_name
                if name not in known:
                    self.name_bound(name)


_OF_NAMES = frozenset({
    cst.Name, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr,
    cst.Del, cst.AsName, cst.FunctionDef, cst.ClassDef, cst.TypeAlias, cst.MatchAs, cst.MatchStar,
    cst.MatchMapping, cst.Import, cst.ImportFrom,
})  # fmt: skip
"""The nodes that say something of names by themselves."""

_NO_NAMES = frozenset({(cst.Attribute, "attr"), (cst.Arg, "keyword")})


def target_names(node: cst.BaseExpression) -> Iterator[str]:
    """Yield every name that an assignment to `node` binds."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Tuple | cst.List):
        for element in node.elements:
            yield from target_names(element.value)


class _Collected(NameVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.bound: set[str] = set()

    def name_seen(self, name: str) -> None:
        self.seen.add(name)

    def name_bound(self, name: str, target: str = SOMETHING) -> None:
        self.bound.add(name)


def names_in(node: cst.CSTNode) -> frozenset[str]:
    """Return every name that stands in a piece of source."""
    visitor = _Collected()
    show(node, visitor)
    return frozenset(visitor.seen)


@lru_cache(maxsize=512)
def assigned_names(node: cst.CSTNode) -> frozenset[str]:
    """Return every name that a piece of source binds, in whatever scope.

    Loops are followed once for every way in which their function is entered, and an editor asks
    for the same nodes after every key.
    """
    visitor = _Collected()
    show(node, visitor)
    return frozenset(visitor.bound)


class _OutsideLoops(NameVisitor):
    """Names that are used where no loop over them is around, and the indices of loops."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.indices: set[str] = set()
        self._around: list[frozenset[str]] = []

    def name_seen(self, name: str) -> None:
        if not any(name in names for names in self._around):
            self.found.add(name)

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        super().on_visit_attribute(node, attribute)
        if isinstance(node, cst.For) and attribute == "target":
            self.muted += 1
        elif isinstance(node, cst.For) and attribute == "body":
            targets = frozenset(target_names(node.target))
            self.indices |= targets
            self._around.append(targets)

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        super().on_leave_attribute(original_node, attribute)
        if isinstance(original_node, cst.For) and attribute == "target":
            self.muted -= 1
        elif isinstance(original_node, cst.For) and attribute == "body":
            self._around.pop()


def escaping_indices(node: cst.CSTNode) -> frozenset[str]:
    """Return the indices of loops whose names are also used outside of those loops."""
    visitor = _OutsideLoops()
    show(node, visitor)
    return frozenset(visitor.found & visitor.indices)


class ScopeKind(Enum):
    """What opens a scope; names of a class are not seen from the functions within it."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    COMPREHENSION = "comprehension"


@dataclass(slots=True)
class NameScope:
    """The names of one scope.

    Attributes
    ----------
    kind : ScopeKind
    bound : dict of str to list of str
        For every binding of a name the full name of what is imported, or `SOMETHING`.
    used : set of str
        Names that stand in the scope itself.
    later : set of str
        Names that stand in scopes within, whose code may run at another time.
    elsewhere : set of str
        Names declared ``global`` or ``nonlocal``.
    stars : set of str
        Modules of which every name is imported.
    """

    kind: ScopeKind
    bound: dict[str, list[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    elsewhere: dict[str, ScopeKind] = field(default_factory=dict)
    stars: set[str] = field(default_factory=set)


class ScopeVisitor(NameVisitor):
    """Keeps the scopes around the node that is visited, the module first."""

    def __init__(self) -> None:
        super().__init__()
        self.scopes = [NameScope(ScopeKind.MODULE)]
        self._alias = SOMETHING

    @property
    def module(self) -> NameScope:
        """The names of the module itself."""
        return self.scopes[0]

    def name_seen(self, name: str) -> None:
        """Note that a name stands in the innermost scope."""
        self.scopes[-1].used.add(name)

    def name_bound(self, name: str, target: str = SOMETHING) -> None:
        """Note a binding in the scope that the name belongs to."""
        for scope in self._scopes_binding(name):
            scope.bound.setdefault(name, []).append(target or self._alias)

    def _element_type(self, value: cst.BaseExpression) -> str:
        """Return the full name of an imported element type that is given another name."""
        if not isinstance(value, cst.Attribute | cst.Name):
            return SOMETHING
        full = resolve(value, Imports(self.scopes)) or ""
        module, _, name = full.rpartition(".")
        return full if module == "numpy" and is_dtype(name) else SOMETHING

    def _scopes_binding(self, name: str) -> list[NameScope]:
        scope = self.scopes[-1]
        declared = scope.elsewhere.get(name)
        if declared is ScopeKind.MODULE:
            return [self.module]
        if declared is ScopeKind.FUNCTION:
            # which of the functions around binds it does not matter: none is certain of it
            return [s for s in self.scopes[:-1] if s.kind is ScopeKind.FUNCTION]
        return [scope]

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note names, and open the scope of a node that has one."""
        match node:
            case cst.Global(names=names) | cst.Nonlocal(names=names):
                is_global = isinstance(node, cst.Global)
                kind = ScopeKind.MODULE if is_global else ScopeKind.FUNCTION
                for item in names:
                    self.scopes[-1].elsewhere[item.name.value] = kind
            case cst.ImportFrom(module=module, names=cst.ImportStar()):
                self.scopes[-1].stars.add(module.value if isinstance(module, cst.Name) else "")
            case cst.Param(name=cst.Name(value=name)):
                self.name_bound(name)
            case (
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value)
                | cst.AnnAssign(target=cst.Name(), value=cst.BaseExpression() as value)
                | cst.TypeAlias(value=value)
            ):
                self._alias = self._element_type(value)
            case cst.NamedExpr(target=target):
                # within a comprehension it binds the name in the function around
                around = [s for s in self.scopes if s.kind is not ScopeKind.COMPREHENSION]
                for name in target_names(target):
                    around[-1].bound.setdefault(name, []).append(SOMETHING)
            case _:
                pass
        inside = super().on_visit(node)
        kind_within = _SCOPES.get(type(node))
        if kind_within is not None:
            self.scopes.append(NameScope(kind_within))
            self.entered(node)
        return inside

    def entered(self, node: cst.CSTNode) -> None:
        """Look at a node whose scope has just been opened."""

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Close the scope of a node that has one."""
        super().on_leave(original_node)
        if type(original_node) in _ASSIGNMENTS:
            self._alias = SOMETHING
        if type(original_node) in _SCOPES:
            closed = self.scopes.pop()
            self.scopes[-1].later |= closed.used | closed.later


_ASSIGNMENTS = frozenset({cst.Assign, cst.AnnAssign, cst.TypeAlias})

_SCOPES: dict[type[cst.CSTNode], ScopeKind] = {
    cst.FunctionDef: ScopeKind.FUNCTION,
    cst.Lambda: ScopeKind.FUNCTION,
    cst.ClassDef: ScopeKind.CLASS,
    cst.GeneratorExp: ScopeKind.COMPREHENSION,
    cst.ListComp: ScopeKind.COMPREHENSION,
    cst.SetComp: ScopeKind.COMPREHENSION,
    cst.DictComp: ScopeKind.COMPREHENSION,
}


class Imports(Mapping[str, str]):
    """The names that surely stand for an import within the last of nested scopes.

    A live view: what the scopes come to bind later is seen as well. A name that is bound in two
    ways is none of them, unless both are modules with NumPy's interface.
    """

    def __init__(self, scopes: Sequence[NameScope]) -> None:
        self._scopes = scopes

    def __getitem__(self, name: str) -> str:
        for scope in reversed(list(_seen(self._scopes))):
            if name in scope.bound:
                target = _agreed(scope.bound[name])
                if target is not None:
                    return target
                break
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys(name for scope in _seen(self._scopes) for name in scope.bound)
        return (name for name in names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def bound_anywhere(scopes: Sequence[NameScope]) -> frozenset[str]:
    """Return the names that are no builtins within the last of nested scopes."""
    return frozenset().union(*(scope.bound for scope in _seen(scopes)))


def star_imports(scopes: Sequence[NameScope]) -> bool:
    """Return whether unknown names may be bound, so that no builtin is certain."""
    return any(scope.stars - _HARMLESS_STARS for scope in scopes)


def _seen(scopes: Sequence[NameScope]) -> Iterator[NameScope]:
    for position, scope in enumerate(scopes):
        if scope.kind is not ScopeKind.CLASS or position == len(scopes) - 1:
            yield scope


def _agreed(targets: list[str]) -> str | None:
    distinct = set(targets)
    if SOMETHING in distinct:
        return None
    if len(distinct) == 1:
        return targets[0]
    if distinct <= ARRAY_MODULES:
        # either may be there at run time: what one of them cannot do is not to be relied on
        return next(iter(distinct & IMMUTABLE_ARRAYS), "numpy")
    return None
