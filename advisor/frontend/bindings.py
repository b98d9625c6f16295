"""What names stand for, and which a file binds, scope by scope, by Python's rules."""

from __future__ import annotations

import ast
import builtins
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache, reduce

import libcst as cst

from advisor.frontend.trees import is_loop, nodes_in, parts_of
from advisor.ir.kernel import DeclaredArray
from advisor.numpy_table import (
    ARRAY_MODULES,
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    as_numpy,
    is_dtype,
)
from advisor.observed import READ, Seen, SeenArray, SeenBinding, SeenNumber, What, either
from advisor.source import KEY, PLAIN_TYPES, PROPERTY, Span, properties_read, tree_of
from advisor.source import assigned_names as names_assigned
from costdb.records import dataclass, field

# Names in source: dotted expressions, and what the file's imports make of them.


IMMUTABLE_ARRAYS = frozenset({"jax.numpy"})
"""Those of them whose arrays cannot be changed in place."""


def dotted(node: cst.BaseExpression) -> str | None:
    """Return ``a.b.c`` for a chain of attributes of a name, None for anything else.

    What a name has under a key that is a word is an attribute, too.
    """
    parts: list[str] = []
    # by their types: what is neither is asked often, and takes long to tell from an abstract class
    while type(node) in _PARTS:
        assert isinstance(node, cst.Attribute | cst.Subscript)
        part = node.attr.value if isinstance(node, cst.Attribute) else _key(node)
        if part is None:
            return None
        parts.append(part)
        node = node.value
    if type(node) is not cst.Name:
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


_PARTS = (cst.Attribute, cst.Subscript)


def _key(node: cst.Subscript) -> str | None:
    match node.slice:
        case [cst.SubscriptElement(cst.Index(cst.SimpleString() as key))]:
            word = key.evaluated_value
            return f"{KEY}{word}" if isinstance(word, str) and word.isidentifier() else None
    return None


def imported_names(statements: Iterable[cst.BaseSmallStatement]) -> dict[str, str]:
    """Return what each imported name stands for, such as ``{"np": "numpy"}``."""
    table: dict[str, str] = {}
    for statement in statements:
        if isinstance(statement, cst.Import):
            for alias in statement.names:
                whole = dotted(alias.name) or ""
                name = alias.evaluated_alias
                if name is not None:
                    table[name] = whole
                else:
                    head = whole.split(".", 1)[0]
                    table[head] = head
        elif isinstance(statement, cst.ImportFrom):
            if statement.module is None or statement.relative:
                continue
            if isinstance(statement.names, cst.ImportStar):
                continue
            module = dotted(statement.module) or ""
            for alias in statement.names:
                bound = alias.evaluated_alias or alias.evaluated_name
                table[bound] = f"{module}.{alias.evaluated_name}"
    return table


def resolve(node: cst.BaseExpression, imports: Mapping[str, str]) -> str | None:
    """Return the full dotted name an expression denotes, through the file's imports.

    Every module that follows NumPy's interface is given the name ``numpy``.
    """
    name = dotted(node)
    if name is None:
        return None
    head, _, rest = name.partition(".")
    if head not in imports:
        return None
    return as_numpy(f"{imports[head]}.{rest}" if rest else imports[head])


def array_module_name(imports: Mapping[str, str], used: frozenset[str]) -> str | None:
    """Return the name of a module with NumPy's interface whose arrays change in place.

    Where several are imported, it is the one that the kernel uses by name; None where that
    does not tell them apart.
    """
    known = [name for name, module in imports.items() if module in ARRAY_MODULES]
    if len({imports[name] for name in known}) > 1:
        known = [name for name in known if name in used]
    if len({imports[name] for name in known}) != 1:
        return None
    return None if imports[known[0]] in IMMUTABLE_ARRAYS else known[0]


SOMETHING = ""
"""What a name stands for that is bound other than by an import."""

_STARS: dict[str, frozenset[str]] = {
    "numpy": frozenset(
        ["abs", "all", "any", "bool", "divmod", "max", "min", "pow", "round", "sum"]
    ),
    "math": frozenset({"pow"}),
} | dict.fromkeys(("advisor", "typing"), frozenset())
"""Modules whose star imports are followed, and builtins that they hide in some release."""
_IN_EVERY_RELEASE = frozenset({"all", "any", "sum"})
_OF_MATH = frozenset(dir(math))


def bindings_of(node: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """Yield the names that a node by itself binds, each with the import that it stands for then."""
    if type(node) not in _BINDING:
        # most nodes; to ask each of them for every class of the cases takes longer
        return
    names: Iterable[str] = ()
    match node:
        case cst.Import() | cst.ImportFrom():
            known = imported_names([node])
            yield from known.items()
            if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
                # relative imports stand for something, but nobody knows what
                bound = (alias.evaluated_alias or alias.evaluated_name for alias in node.names)
                names = (name for name in bound if name not in known)
        case cst.FunctionDef(name=bound) | cst.ClassDef(name=bound) | cst.TypeAlias(name=bound):
            names = (bound.value,)
        case (
            cst.MatchAs(name=cst.Name(value=name))
            | cst.MatchStar(name=cst.Name(value=name))
            | cst.MatchMapping(rest=cst.Name(value=name))
        ):
            names = (name,)
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
            names = target_names(target)
    yield from ((name, SOMETHING) for name in names)


_BINDING = frozenset({
    cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr, cst.Del,
    cst.AsName, cst.FunctionDef, cst.ClassDef, cst.TypeAlias, cst.MatchAs, cst.MatchStar,
    cst.MatchMapping, cst.Import, cst.ImportFrom,
})  # fmt: skip
"""The nodes that bind names by themselves."""


def target_names(node: cst.BaseExpression) -> Iterator[str]:
    """Yield every name that an assignment to `node` binds."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Tuple | cst.List):
        for element in node.elements:
            yield from target_names(element.value)


def counted_names(node: cst.CSTNode) -> Counter[str]:
    """Return every name that stands in a piece of source, and how often."""
    return Counter(one.value for one in nodes_in(node) if type(one) is cst.Name)


def names_in(node: cst.CSTNode) -> frozenset[str]:
    """Return every name that stands in a piece of source."""
    return frozenset(counted_names(node))


@lru_cache(maxsize=512)
def assigned_names(node: cst.CSTNode) -> frozenset[str]:
    """Return every name that a piece of source binds, in whatever scope.

    Loops are followed once for every way in which their function is entered, and an editor asks
    for the same nodes after every key.
    """
    return frozenset(name for one in nodes_in(node) for name, _ in bindings_of(one))


def names_of_its_own(node: cst.CSTNode) -> frozenset[str]:
    """Return every name that a function binds, its parameters too."""
    parameters = (one.name.value for one in nodes_in(node) if isinstance(one, cst.Param))
    return assigned_names(node).union(parameters)


def escaping_indices(node: cst.CSTNode) -> frozenset[str]:
    """Return the indices of loops whose names are also used outside of those loops."""
    indices: set[str] = set()
    outside: set[str] = set()

    def look(part: cst.CSTNode, around: frozenset[str]) -> None:
        if isinstance(part, cst.Name) and part.value not in around:
            outside.add(part.value)
        if isinstance(part, cst.BaseComp):
            # what it goes through first is read outside, and its indices are its own
            look(part.for_in.iter, around)
            clause: cst.CompFor | None = part.for_in
            while clause is not None:
                around |= frozenset(target_names(clause.target))
                clause = clause.inner_for_in
        own = frozenset(target_names(part.target)) if isinstance(part, cst.For) else frozenset()
        indices.update(own)
        for inner in parts_of(part):
            if not isinstance(part, cst.For) or inner is not part.target:
                look(inner, around | own if inner is getattr(part, "body", None) else around)

    look(node, frozenset())
    return frozenset(outside & indices)


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
        Names that stand in the scope itself, and in comprehensions within.
    later : set of str
        Names that stand in scopes within, whose code may run at another time.
    elsewhere : set of str
        Names declared ``global`` or ``nonlocal``.
    stars : list of str
        Modules of which every name is imported, in order.
    """

    kind: ScopeKind
    bound: dict[str, list[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    elsewhere: dict[str, ScopeKind] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)


class ScopeVisitor:
    """Keeps the scopes around the node that is visited, the module first."""

    def __init__(self) -> None:
        self.scopes = [NameScope(ScopeKind.MODULE)]
        self._alias = SOMETHING
        # generators that Python's functions go through at once
        self._gone_through = set[cst.CSTNode]()

    @property
    def module(self) -> NameScope:
        """The names of the module itself."""
        return self.scopes[0]

    def visit(self, tree: cst.CSTNode) -> None:
        """Look at a node and all that is within it, in the order of the source."""
        pending = [(tree, False)]
        while pending:
            node, is_done = pending.pop()
            if is_done:
                self.left(node)
                continue
            self.seen(node)
            if type(node) in _SCOPES:
                self.scopes.append(NameScope(_SCOPES[type(node)]))
                self.entered(node)
            pending.append((node, True))
            pending.extend([(part, False) for part in reversed(list(parts_of(node)))])

    def entered(self, node: cst.CSTNode) -> None:
        """Look at a node whose scope has just been opened."""

    def left(self, node: cst.CSTNode) -> None:
        """Close the scope of a node that has one, once all within it was seen."""
        if type(node) in _ASSIGNMENTS:
            self._alias = SOMETHING
        if type(node) in _SCOPES:
            closed = self.scopes.pop()
            self.scopes[-1].later |= closed.later
            # a comprehension is over before what is around it goes on
            at_once = closed.kind is ScopeKind.COMPREHENSION and (
                type(node) is not cst.GeneratorExp or node in self._gone_through
            )
            names = self.scopes[-1].used if at_once else self.scopes[-1].later
            names |= closed.used

    def seen(self, node: cst.CSTNode) -> None:
        """Note the names that a node uses and binds."""
        match node:
            case cst.Name(value=name):
                self.scopes[-1].used.add(name)
            case cst.Call(cst.Name(name), [cst.Arg(value=given)]) if is_loop(node):
                if not any(name in one.bound for one in self.scopes):
                    self._gone_through.add(given)
            case cst.Global(names=names) | cst.Nonlocal(names=names):
                is_global = isinstance(node, cst.Global)
                kind = ScopeKind.MODULE if is_global else ScopeKind.FUNCTION
                self.scopes[-1].elsewhere.update({item.name.value: kind for item in names})
            case cst.ImportFrom(module=module, names=cst.ImportStar()):
                self.scopes[-1].stars.append(module.value if isinstance(module, cst.Name) else "")
            case cst.Param(name=cst.Name(value=name)):
                self._bound(name)
            case (
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value)
                | cst.AnnAssign(target=cst.Name(), value=cst.BaseExpression() as value)
                | cst.TypeAlias(value=value)
            ):
                self._alias = self._element_type(value)
            case cst.NamedExpr(target=target):
                # within a comprehension it binds the name in the function around
                around = [s for s in self.scopes if s.kind is not ScopeKind.COMPREHENSION]
                for one in target_names(target):
                    around[-1].bound.setdefault(one, []).append(SOMETHING)
        for name, imported in bindings_of(node):
            self._bound(name, imported)

    def _bound(self, name: str, target: str = SOMETHING) -> None:
        """Note a binding in the scope that the name belongs to."""
        declared = self.scopes[-1].elsewhere.get(name)
        scopes = [self.scopes[-1]]
        if declared is ScopeKind.MODULE:
            scopes = [self.module]
        elif declared is ScopeKind.FUNCTION:
            # which of the functions around binds it does not matter: none is certain of it
            scopes = [s for s in self.scopes[:-1] if s.kind is ScopeKind.FUNCTION]
        for scope in scopes:
            scope.bound.setdefault(name, []).append(target or self._alias)

    def _element_type(self, value: cst.BaseExpression) -> str:
        """Return the full name of an imported element type that is given another name."""
        full = resolve(value, Imports(self.scopes)) or ""
        module, _, name = full.rpartition(".")
        return full if module == "numpy" and is_dtype(name) else SOMETHING


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
        else:
            return self._starred(name)
        raise KeyError(name)

    def _starred(self, name: str) -> str:
        """Return what a name stands for that nothing binds but star imports, the last first."""
        stars = [star for scope in _seen(self._scopes) for star in scope.stars]
        for star in reversed(stars if _STARS.keys() >= set(stars) else []):
            if star == "math" and name in _OF_MATH:
                return f"math.{name}"
            if star == "numpy" and (name in _IN_EVERY_RELEASE or not hasattr(builtins, name)):
                return f"numpy.{name}"
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys(name for scope in _seen(self._scopes) for name in scope.bound)
        return (name for name in names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


Function = tuple[cst.FunctionDef, tuple[NameScope, ...]]
"""A function with the scopes around it, the module's first and its own last."""


def function_of(
    node: cst.BaseExpression, scopes: tuple[NameScope, ...], named: Mapping[str, Sequence[Function]]
) -> Function | None:
    """Return which function of a file, of those `named`, a name surely denotes in some scopes."""
    name = dotted(node) or ""
    for one in named.get(name, ()):
        home = home_of(name, scopes)
        if home is one[1][-2] and home.bound[name] == [SOMETHING]:
            return one
    return None


def home_of(name: str, scopes: Sequence[NameScope]) -> NameScope | None:
    """Return the scope that binds a name which stands in the last of nested scopes."""
    seen = (scope for scope in reversed(scopes) if scope.kind is not ScopeKind.CLASS)
    return next((scope for scope in seen if name in scope.bound), None)


def bound_anywhere(scopes: Sequence[NameScope]) -> frozenset[str]:
    """Return the names that are no builtins within the last of nested scopes."""
    hidden = {name for scope in scopes for star in scope.stars for name in _STARS.get(star, ())}
    # programs that ran on Python 2 import builtins of Python 3
    return frozenset(hidden).union(
        name
        for scope in _seen(scopes)
        for name, targets in scope.bound.items()
        if not {*targets} <= {f"builtins.{name}", f"six.moves.{name}"}
    )


def star_imports(scopes: Sequence[NameScope]) -> bool:
    """Return whether unknown names may be bound, so that no builtin is certain."""
    return any(not _STARS.keys() >= set(scope.stars) for scope in scopes)


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


# --- seen names -----------------------------------------------------------------------------------
# Names of a function that a run showed besides its parameters, and attributes as such names.
#
# ``self.u`` where ``self`` is a parameter is an array like any other once a run showed it to be one
# that the instance itself holds. So it is read as a name, ``self.u``, which edits write as the
# source does. What it denotes, any function that is called may change, as it may what module-level
# names do.


SpanOf = Callable[[cst.CSTNode], Span]

_PYTHONS = {"int": PYTHON_INTEGER, "float": PYTHON_FLOAT, "complex": PYTHON_COMPLEX}


def names_around(
    seen: Seen, scopes: Sequence[NameScope], parameters: Iterable[str]
) -> frozenset[str]:
    """Return what a function was seen to read or bind that is no name of its own.

    Parameters
    ----------
    seen : Seen
    scopes : sequence of NameScope
        Names of the module first, and of the function last.
    parameters : iterable of str
    """
    own = scopes[-1]
    # options are read into a name of the function's own
    named = (*(one.name for one in seen.arrays), *(one.name for one in seen.numbers))
    roots = {one.partition(".")[0] for one in named} if seen.source in READ else ()
    kept = {
        name
        for name in (*parameters, *roots)
        if len((home_of(name, scopes) or own).bound.get(name, ())) == 1
    }
    shown: tuple[SeenArray | SeenNumber | SeenBinding, ...]
    shown = (*seen.arrays, *seen.numbers, *seen.bindings)
    return frozenset(
        name
        for name in (root_of(one.name) for one in shown)
        if (name.partition(".")[0] in kept if "." in name else name not in own.bound)
        and name.partition(".")[0] in own.used
    )


def as_names(
    node: cst.FunctionDef, names: frozenset[str], own: NameScope, source: str, span_of: SpanOf
) -> tuple[cst.FunctionDef, SpanOf]:
    """Return a function with attributes as names, and what tells where its nodes stand.

    What only says the type of what it binds, binds it like any other statement. A name of what
    always is the same attribute of something has the attributes of that. Properties are called.
    """
    called = properties_read(source)
    if not (any("." in one for one in names) or called or any(map(_says_type, nodes_in(node)))):
        return node, span_of

    parts = nodes_in(node.body) if names and node.name.value != "__init__" else ()
    times = Counter(name for one in parts for name, _ in bindings_of(one))
    times.update(own.later)
    paths = dict[str, str]()
    for one in parts:
        match one:
            case cst.Assign([cst.AssignTarget(cst.Name(name))], cst.Attribute() as value) if (
                times[name] == len(own.bound.get(name, ())) == 1
            ):
                path = dotted(value) or ""
                if path and {*path.split(".")[1:]} <= settled(source):
                    paths[name] = path

    def named(one: cst.CSTNode) -> str | None:
        name = dotted(one) if isinstance(one, cst.Attribute | cst.Subscript) else None
        root, _, rest = (name or "").partition(".")
        name = f"{paths.get(root, root)}.{rest}"
        return name if name in names else None

    reader = Naming(named, called)
    made = node.visit(reader)
    assert isinstance(made, cst.FunctionDef)
    return made, lambda one: span_of(reader.originals.get(one, one))


def _says_type(node: cst.CSTNode) -> bool:
    """Return whether a statement binds a name, and says no more of it than a type of Python's."""
    match node:
        case cst.AnnAssign(cst.Name(), cst.Annotation(one), cst.BaseExpression()):
            name = dotted(one.value if isinstance(one, cst.Subscript) else one) or ""
            return name.rpartition(".")[2] in PLAIN_TYPES
    return False


def name_node(
    name: str, lpar: Sequence[cst.LeftParen] = (), rpar: Sequence[cst.RightParen] = ()
) -> cst.Name:
    """Return the name that an attribute or an item of a tuple is read as."""
    made = cst.Name("_", lpar, rpar)
    # LibCST's own checks let no dot into a name
    object.__setattr__(made, "value", name)
    return made


class Naming(cst.CSTTransformer):
    """Puts names in the places of expressions, calls in those of properties; keeps whose."""

    def __init__(
        self, named: Callable[[cst.CSTNode], str | None], properties: frozenset[str]
    ) -> None:
        super().__init__()
        self.named, self.properties = named, properties
        self.originals: dict[cst.CSTNode, cst.CSTNode] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Return whether there may be something within: names stay what they are."""
        return not isinstance(node, cst.Name)

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        """Put a name in the place of an expression that has one."""
        made: cst.CSTNode = updated_node
        name = self.named(original_node)
        if name is not None and isinstance(original_node, cst.Name | cst.Attribute | cst.Subscript):
            made = name_node(name, original_node.lpar, original_node.rpar)
        match original_node, made:
            # what they hold is no name by itself
            case cst.Attribute(attr=attr), cst.Attribute():
                made = made.with_changes(attr=attr)
                if self.properties and dotted(original_node) in self.properties:
                    method = cst.Name(f"{attr.value}{PROPERTY}")
                    func = made.with_changes(attr=method, lpar=[], rpar=[])
                    made = cst.Call(func, lpar=made.lpar, rpar=made.rpar)
            case cst.Arg(keyword=keyword), cst.Arg():
                made = made.with_changes(keyword=keyword)
            case _, cst.AnnAssign(target=target, value=cst.BaseExpression() as value) if _says_type(
                original_node
            ):
                made = cst.Assign([cst.AssignTarget(target)], value)
        self.originals[made] = original_node
        return made  # type: ignore[return-value]  # an expression takes the place of one


@dataclass(frozen=True, slots=True)
class SeenNames:
    """What a run showed of the names that a function binds.

    Attributes
    ----------
    bindings : tuple of SeenBinding
    lines : tuple of str
        Of the file.
    around : frozenset of str
        Attributes and names from around the function, which any function may change.
    arrays : mapping of str to DeclaredArray
        Of names that were seen to denote arrays of one type and shape, wherever they did.
    assumed : mapping of str to str
        Attributes that are numbers whatever is called, as far as their use in the text tells, and
        their types.
    fixed : frozenset of str
        Attributes that are numbers, and that only stand for others where an object is made.
    likely : bool
        Whether types are no more than likely, as the text alone tells them.
    """

    bindings: tuple[SeenBinding, ...] = ()
    lines: tuple[str, ...] = ()
    around: frozenset[str] = frozenset()
    arrays: Mapping[str, DeclaredArray] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    likely: bool = False

    def bound(self, name: str, span: Span) -> What | None:
        """Return what a name was seen to denote after statements of some lines bound it."""
        texts = {line.strip() for line in self.lines[span.start_line - 1 : span.end_line]}
        found = [one.what for one in self.bindings if one.name == name and one.text in texts]
        return reduce(either, found) if found else None

    @property
    def unsettled(self) -> frozenset[str]:
        """What came to denote something else than when a call began."""
        return frozenset(one.name for one in self.bindings if not one.text)


@lru_cache(maxsize=1)
def settled(source: str) -> frozenset[str]:
    """Return the attributes that a file binds where an object is made, and nowhere else.

    Also options of a command line. Empty where code of other files may bind them.
    """
    made, own, again = set[str](), set[ast.AST](), set[str]()
    tree = tree_of(source)
    classes = {one.name for one in ast.walk(tree) if isinstance(one, ast.ClassDef)}
    for node in ast.walk(tree):
        match node:
            case ast.Name("setattr" | "vars") | ast.Attribute(_, "__dict__"):
                return frozenset()
            case ast.ClassDef(bases=bases, body=body):
                if not {ast.unparse(one) for one in bases} <= {*classes, "NamedTuple", "object"}:
                    return frozenset()
                fields = (one for one in body if isinstance(one, ast.AnnAssign | ast.Assign))
                made.update(name for one in fields for name in names_assigned(one))
            case ast.FunctionDef("__init__", ast.arguments(args=[first, *_])):
                kept = (one for one in ast.walk(node) if isinstance(one, ast.Attribute))
                own.update(one for one in kept if ast.unparse(one.value) == first.arg)
            case ast.Attribute(_, name, ast.Store() | ast.Del()):
                (made if node in own else again).add(name)
            case ast.Call(ast.Attribute(_, "add_argument"), [*_, ast.Constant(str(option))]):
                made.add(option.lstrip("-").replace("-", "_"))
    return frozenset(made - again)


def array_bindings(seen: Seen) -> dict[str, SeenArray]:
    """Return the names that denote arrays of one type and shape wherever they were bound to one.

    Sizes are positive: one that was seen without elements tells none.
    """
    found: dict[str, What] = {array.name: array for array in seen.arrays}
    given = frozenset(found)
    for one in seen.bindings:
        if isinstance(one.what, SeenArray):
            found[one.name] = either(found.get(one.name, one.what), one.what)
    return {
        name: what
        for name, what in found.items()
        if isinstance(what, SeenArray)
        and (what.shape is not None or seen.source in READ)
        and (0 not in (what.shape or ()) or name in given)
    }


def root_of(name: str) -> str:
    """Return what holds an item, ``a[0]`` or ``a[:]``, or has a length, ``len(a)``."""
    return name.removeprefix("len(").removesuffix(")").partition("[")[0]


def held_in(seen: Seen, names: Iterable[str]) -> dict[str, tuple[SeenNumber, ...]]:
    """Return which of some names denote tuples or lists, and what was seen of the numbers."""
    found: dict[str, tuple[SeenNumber, ...]] = {}
    for number in seen.numbers:
        name = root_of(number.name)
        if name != number.name and name in names:
            found[name] = (*found.get(name, ()), number)
    return found


def number_type(what: SeenNumber) -> str:
    """Return the element type of a number, Python's own as such."""
    return _PYTHONS.get(what.dtype, what.dtype)
