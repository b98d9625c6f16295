"""What running a piece of source may change, and which names may then lead to the same memory.

A function of the file is analysed once, by the same rules, for what it does to what it is given. Of
a function that nobody knows it is taken that it changes all it is given, keeps it, and changes what
any function can reach: attributes, and names of the module. Functions and methods of Python's and
NumPy's own are taken to be what their names say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import libcst as cst

from advisor.frontend.bindings import (
    SOMETHING,
    Imports,
    NameScope,
    ScopeKind,
    bound_anywhere,
    resolve,
)
from advisor.frontend.trees import nodes_in, parts_of
from costdb.records import dataclass, field

BUILTINS = frozenset({
    "abs", "all", "any", "bool", "chr", "complex", "dict", "divmod", "enumerate", "float", "format",
    "frozenset", "hash", "hex", "id", "int", "isinstance", "issubclass", "iter", "len", "list",
    "max", "min", "ord", "pow", "print", "range", "repr", "reversed", "round", "set", "slice",
    "sorted", "str", "sum", "tuple", "type", "zip", "input", "open", "callable", "hasattr",
})  # fmt: skip
"""Functions that change nothing they are given."""

_MODULES = frozenset({
    "numpy", "math", "cmath", "time", "scipy", "itertools", "string", "re", "datetime", "json",
    "statistics", "collections", "copy", "pathlib", "os", "sys", "warnings", "logging", "random",
    "zlib", "hashlib", "typing", "numbers", "fractions", "decimal",
})  # fmt: skip
"""Modules whose functions change nothing they are given, but for those below."""

_WRITING = frozenset({
    "copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "at", "shuffle",
    "setflags", "setfield",
})  # fmt: skip
"""Functions that change their first argument, in whatever module."""

_CALLING = frozenset({
    "apply_along_axis", "apply_over_axes", "vectorize", "fromfunction", "frompyfunc", "piecewise",
})  # fmt: skip
"""Functions of NumPy that call what they are given."""

_CHANGING = frozenset({
    "add", "append", "appendleft", "clear", "extend", "fill", "insert", "itemset", "partition",
    "pop", "popleft", "put", "remove", "resize", "reverse", "setdefault", "sort", "update",
    "discard", "popitem", "byteswap", "shuffle", "write", "setflags",
})  # fmt: skip
"""Methods that change what they are called on, and may keep what they are given."""

_READING = frozenset({
    *("all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "conjugate", "copy"),
    *("cumprod", "cumsum", "dot", "item", "max", "mean", "min", "nonzero", "prod", "ptp", "repeat"),
    *("round", "searchsorted", "std", "sum", "take", "tobytes", "tolist", "trace", "var", "count"),
    *("index", "split", "join", "format", "strip", "startswith", "endswith", "lower", "upper"),
    *("replace", "encode", "decode", "isdigit", "keys", "is_integer", "total_seconds", "rstrip"),
})  # fmt: skip
"""Methods that change nothing, and whose results share nothing with what they are called on."""

_VIEWING = frozenset(
    {
        *("diagonal", "flatten", "ravel", "reshape", "squeeze", "swapaxes", "transpose", "view"),
        *("items", "values", "get"),
    }
)
"""Methods that change nothing, but whose results may lead to what they are called on."""

_FRESH = frozenset({
    "abs", "bool", "chr", "complex", "float", "format", "hash", "hex", "id", "int", "isinstance",
    "len", "ord", "print", "range", "repr", "round", "str", "type", "all", "any",
})  # fmt: skip
"""Builtins whose results lead to nothing they are given."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What running a piece of source may do.

    Attributes
    ----------
    changed : frozenset of str
        Names of what it may change in place.
    links : tuple of frozenset of str
        Names that may lead to the same memory once it ran.
    reaches : bool
        Whether it may change what it does not name: it calls what nobody knows.
    """

    changed: frozenset[str]
    links: tuple[frozenset[str], ...]
    reaches: bool


@dataclass(frozen=True, slots=True)
class Called:
    """What a call does: to which arguments, and which of them its result may lead to.

    None stands for all arguments.
    """

    changed: frozenset[str] | None = None
    kept: frozenset[str] | None = None
    reaches: bool = True
    parameters: tuple[str, ...] = ()
    receiver: str = ""

    def chosen(self, node: cst.Call, names: frozenset[str] | None) -> Iterator[cst.BaseExpression]:
        """Yield the arguments of a call, and what it is called on, that stand for parameters."""
        places = list(self.parameters)
        if isinstance(node.func, cst.Attribute):
            if names is None or self.receiver in names:
                yield node.func.value
            places = places[1:] if self.receiver else places
        for argument in node.args:
            name = "" if argument.star or not places else places[0]
            if argument.keyword is not None:
                name = argument.keyword.value
            elif not argument.star:
                places = places[1:]
            if names is None or name in names or argument.star:
                yield argument.value


UNKNOWN = Called()
_PURE = frozenset[str]()


@dataclass(slots=True)
class Functions:
    """The functions of a file, by their qualified names, and what was found of them.

    Attributes
    ----------
    nodes : dict of str to (libcst.FunctionDef, tuple of NameScope)
        Each with the scopes around it, the module's first and its own last.
    """

    nodes: dict[str, tuple[cst.FunctionDef, tuple[NameScope, ...]]] = field(default_factory=dict)
    _known: dict[str, Called] = field(default_factory=dict)

    def named(self, node: cst.BaseExpression, scopes: tuple[NameScope, ...]) -> str | None:
        """Return the function of the file that an expression surely denotes where it stands.

        A method that only one class of the file has is taken for that of ``self``.
        """
        match node:
            case cst.Name(value=name):
                own = (s for s in reversed(scopes) if s.kind is not ScopeKind.CLASS)
                home = next((scope for scope in own if name in scope.bound), None)
                if home is None or home.bound[name] != [SOMETHING]:
                    return None
                found = [q for q, (_, its) in self.nodes.items() if _last(q) == name]
                found = [q for q in found if self.nodes[q][1][-2] is home]
                return found[0] if len(found) == 1 else None
            case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
                found = [q for q in self.nodes if _last(q) == name]
                kinds = [self.nodes[q][1][-2].kind for q in found]
                return found[0] if kinds == [ScopeKind.CLASS] else None
        return None

    def called(self, name: str) -> Called:
        """Return what a call of a function of the file does."""
        if name not in self._known:
            # one that calls itself may do anything
            self._known[name] = UNKNOWN
            self._known[name] = self._analysed(*self.nodes[name])
        return self._known[name]

    def _analysed(self, node: cst.FunctionDef, scopes: tuple[NameScope, ...]) -> Called:
        given = node.params
        plain = (*given.posonly_params, *given.params)
        others = [one for one in (given.star_arg, given.star_kwarg) if isinstance(one, cst.Param)]
        imports, own = Imports(scopes), scopes[-1]
        if others or node.asynchronous is not None or own.elsewhere:
            return UNKNOWN
        decorators = [one.decorator for one in node.decorators]
        known = [resolve(getattr(one, "func", one), imports) or "" for one in decorators]
        static = [isinstance(one, cst.Name) and one.value == "staticmethod" for one in decorators]
        jitted = [name.startswith("numba.") for name in known]
        if not all(a or b for a, b in zip(static, jitted, strict=True)):
            return UNKNOWN
        names = tuple(one.name.value for one in plain)
        keywords = [one.name.value for one in given.kwonly_params]
        found = effects_of(node.body, Reading(self, scopes))
        groups = joined(found.links)
        returned = (
            root
            for one in nodes_in(node.body)
            if isinstance(one, cst.Return) and one.value is not None
            for root in roots(one.value, Reading(self, scopes))
        )
        outer = {name for group in groups for name in group if name not in own.bound}
        leaving = frozenset(returned) | outer

        def behind(few: Iterable[str]) -> frozenset[str]:
            wanted = frozenset(few)
            return wanted.union(*(group for group in groups if group & wanted))

        changed, parameters = behind(found.changed), {*names, *keywords}
        method = scopes[-2].kind is ScopeKind.CLASS and not any(static)
        return Called(
            frozenset(changed & parameters),
            frozenset(behind(leaving) & parameters),
            found.reaches or any(name not in own.bound for name in changed),
            names,
            names[0] if method and names else "",
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a piece of source stands: the functions of its file, and the scopes around it."""

    functions: Functions
    scopes: tuple[NameScope, ...]
    fresh: Callable[[str], bool] = field(default=lambda name: False)

    def call(self, node: cst.Call) -> Called:
        """Return what a call does."""
        name = self.functions.named(node.func, self.scopes)
        if name is not None:
            return self.functions.called(name)
        if any(self._is_function(argument.value) for argument in node.args):
            # what is given functions calls them
            return UNKNOWN
        imports: Mapping[str, str] = Imports(self.scopes)
        full = resolve(node.func, imports) or ""
        named = [one.keyword.value for one in node.args if one.keyword is not None]
        if isinstance(node.func, cst.Name) and not full:
            if node.func.value in BUILTINS and node.func.value not in bound_anywhere(self.scopes):
                kept = _PURE if node.func.value in _FRESH else None
                return Called(_PURE, kept, reaches=False)
            return UNKNOWN
        if not isinstance(node.func, cst.Name | cst.Attribute):
            return UNKNOWN
        last = full.rpartition(".")[2] or (
            node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        )
        writes = [n for n in named if n in ("out", "output") or n.startswith("overwrite")]
        if full.partition(".")[0] in _MODULES:
            if last in _CALLING or last in _WRITING or writes:
                return Called(None, None, reaches=last in _CALLING)
            fresh = full.partition(".")[0] in ("math", "cmath", "time")
            return Called(_PURE, _PURE if fresh else None, reaches=False)
        if full:
            return UNKNOWN
        if last in _CHANGING or (writes and last in _READING | _VIEWING):
            return Called(None, None, reaches=False)
        if last in _READING or last in _VIEWING:
            kept = frozenset({"self"}) if last in _VIEWING else _PURE
            return Called(_PURE, kept, reaches=False, receiver="self")
        return UNKNOWN

    def _is_function(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Lambda):
            return True
        return self.functions.named(node, self.scopes) is not None


def _last(qualified: str) -> str:
    return qualified.rpartition(".")[2]


def joined(links: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return links that have names in common as one."""
    groups: list[frozenset[str]] = []
    for link in links:
        apart = [group for group in groups if not group & link]
        groups = [*apart, link.union(*(group for group in groups if group & link))]
    return groups


def roots(node: cst.CSTNode | None, reading: Reading) -> frozenset[str]:
    """Return the names whose memory the value of an expression may lead to."""
    parts: Iterable[cst.CSTNode] = ()
    match node:
        case cst.Name(value=name):
            return frozenset({name})
        case cst.Attribute(value=value) | cst.Subscript(value=value):
            return roots(value, reading)
        case cst.IfExp():
            parts = (node.body, node.orelse)
        case cst.BinaryOperation(left=left, right=right):
            parts = () if _is_arithmetic(node, reading) else (left, right)
        case cst.Call():
            found = reading.call(node)
            parts = found.chosen(node, found.kept)
        case cst.Comparison() | cst.UnaryOperation() | cst.FormattedString() | None:
            return frozenset()
        case cst.Lambda() | cst.FunctionDef() | cst.BaseComp():
            return frozenset(one.value for one in nodes_in(node) if isinstance(one, cst.Name))
        case _:
            parts = parts_of(node)
    return frozenset().union(*(roots(part, reading) for part in parts))


def _is_arithmetic(node: cst.BaseExpression, reading: Reading) -> bool:
    """Return whether an operator surely makes a new number or array, and no list of old items."""
    match node:
        case cst.Float():
            return True
        case cst.Name(value=name):
            return reading.fresh(name)
        case cst.BinaryOperation(operator=cst.Add() | cst.Multiply(), left=left, right=right):
            if isinstance(node.operator, cst.Add) and isinstance(right, cst.Integer):
                return True
            return _is_arithmetic(left, reading) or _is_arithmetic(right, reading)
        case cst.BinaryOperation() | cst.UnaryOperation():
            return True
    return False


def effects_of(node: cst.CSTNode, reading: Reading) -> Effects:
    """Return what running a piece of source may do."""
    changed: set[str] = set()
    links: list[frozenset[str]] = []
    reaches = False
    for part in nodes_in(node):
        match part:
            case cst.Assign(targets=targets, value=value):
                for one in targets:
                    _stored(one.target, value, reading, changed, links)
            case cst.AugAssign(target=target, value=value):
                changed |= roots(target, reading)
                _stored(target, value, reading, changed, links)
            case cst.AnnAssign(target=target, value=value):
                _stored(target, value, reading, changed, links)
            case cst.NamedExpr(target=target, value=value):
                _stored(target, value, reading, changed, links)
            case cst.For(target=target, iter=value) | cst.CompFor(target=target, iter=value):
                _stored(target, value, reading, changed, links)
            case cst.Call():
                found = reading.call(part)
                reaches |= found.reaches
                for argument in found.chosen(part, found.changed):
                    changed |= roots(argument, reading)
                if found.kept is None or found.changed:
                    kept = found.chosen(part, found.kept)
                    links.append(frozenset().union(*(roots(one, reading) for one in kept)))
            case cst.With():
                reaches = True
            case cst.Del() | cst.Global() | cst.Nonlocal() | cst.Await() | cst.Yield():
                reaches = True
            case cst.FunctionDef() | cst.Lambda():
                # it may run whenever somebody has it
                links.append(roots(part, reading))
    return Effects(frozenset(changed), tuple(links), reaches)


def _stored(
    target: cst.BaseExpression,
    value: cst.CSTNode | None,
    reading: Reading,
    changed: set[str],
    links: list[frozenset[str]],
) -> None:
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            _stored(element.value, value, reading, changed, links)
        return
    if not isinstance(target, cst.Name):
        changed |= roots(target, reading)
    links.append(roots(target, reading) | roots(value, reading))
