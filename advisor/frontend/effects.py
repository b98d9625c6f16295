"""What running a piece of source may change, and which names may then lead to the same memory.

Of each call one of four things is known. Functions and methods of Python's and NumPy's own are in
tables; any other, also one of the same file, may change and keep all it is given, and all that any
function can reach. What those can reach who gets to see it is for whoever asks to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from functools import cache, cached_property

import libcst as cst

from advisor.frontend.arrays import value_of
from advisor.frontend.bindings import (
    SOMETHING,
    Imports,
    NameScope,
    ScopeKind,
    bound_anywhere,
    dotted,
    names_in,
    resolve,
)
from advisor.frontend.scope import OBJECT, Scope
from advisor.frontend.trees import NotUnderstood, nodes_in, parts_of
from advisor.ir.changes import CHANGING, HOLDING
from advisor.ir.values import Read, Value, reads
from advisor.numpy_functions import FUNCTIONS
from advisor.numpy_table import ELEMENTWISE, PARAMETERS, REDUCTIONS, ROWS, SCANS
from costdb.records import dataclass, field

BUILTINS = frozenset({
    "abs", "all", "any", "bool", "chr", "complex", "dict", "divmod", "enumerate", "float", "format",
    "frozenset", "hash", "hex", "id", "int", "isinstance", "issubclass", "iter", "len", "list",
    "max", "min", "ord", "pow", "print", "range", "repr", "reversed", "round", "set", "slice",
    "sorted", "str", "sum", "tuple", "type", "zip", "input", "open", "callable", "hasattr",
})  # fmt: skip
"""Functions that change nothing they are given, unless that is or has code of its own."""

_NUMBERS = frozenset({"math", "cmath", "time", "datetime", "zlib", "hashlib", "re", "json"})
"""Modules whose functions change nothing, and whose results lead to nothing they are given."""

_COPYING = frozenset({"astype", "copy", "item", "tobytes", "tolist", "nonzero", "flatten"})
"""Methods of arrays whose results share nothing with what they are called on."""

_FRESH = ("copy",), ("sort",), ("partition",), ("take",)
"""What functions cost whose results share nothing with what they are given."""

_SHARING = frozenset({"ravel", "reshape", "squeeze", "transpose", "view", "conj", "diagonal"})
"""Others of arrays that change nothing."""

_AT_ONCE = (
    cst.Assign | cst.AugAssign | cst.AnnAssign | cst.Expr | cst.Return | cst.Raise | cst.Assert
    | cst.Pass | cst.Break | cst.Continue | cst.For | cst.While | cst.If | cst.Try
    | cst.Import | cst.ImportFrom | cst.FunctionDef | cst.ClassDef
)  # fmt: skip
"""Statements whose parts tell all they do; those within functions run when these are called."""


class Deed(IntEnum):
    """What a call may do, from the least on: each may do what those before it may."""

    NOTHING = 0
    LEADS = 1
    """Its result may lead to what it is given."""
    CHANGES = 2
    """It may change and keep what it is given, and what it is called on."""
    ANYTHING = 3
    """It runs code that nobody knows."""


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
        Whether it may change what it does not name: it runs code that nobody knows.
    """

    changed: frozenset[str]
    links: tuple[frozenset[str], ...]
    reaches: bool

    @property
    def reached(self) -> frozenset[str]:
        """The names of what it may change, and of all that may lead to it."""
        groups: list[frozenset[str]] = []
        for link in self.links:
            apart = [group for group in groups if not group & link]
            groups = [*apart, link.union(*(group for group in groups if group & link))]
        return self.changed.union(*(one for one in groups if one & self.changed))


Function = tuple[cst.FunctionDef, tuple[NameScope, ...]]
"""A function with the scopes around it, the module's first and its own last."""


@dataclass(eq=False)
class Functions:
    """The functions of a file, by their own names."""

    named: dict[str, list[Function]] = field(default_factory=dict)

    def of(self, node: cst.BaseExpression, scopes: tuple[NameScope, ...]) -> Function | None:
        """Return the function of the file that a name surely denotes where it stands."""
        if not isinstance(node, cst.Name):
            return None
        home = home_of(node.value, scopes)
        if home is None or home.bound[node.value] != [SOMETHING]:
            return None
        found = [one for one in self.named.get(node.value, ()) if one[1][-2] is home]
        return found[0] if len(found) == 1 else None

    @cached_property
    def run_unseen(self) -> bool:
        """Whether some run where nothing calls them: as operators, as attributes, as generators."""
        return any(
            (name.startswith("__") and name not in _CALLED)
            or any(names_in(d) - HARMLESS for d in one.decorators if of_class)
            or any(isinstance(part, cst.Yield) for part in nodes_in(one))
            for name, some in self.named.items()
            for one, scopes in some
            for of_class in (scopes[-2].kind is ScopeKind.CLASS,)
        )


_CALLED = frozenset({"__init__", "__post_init__", "__call__", "__repr__", "__str__"})
HARMLESS = frozenset({"staticmethod", "classmethod"})
"""Python's decorators that leave a function what it is."""


def home_of(name: str, scopes: tuple[NameScope, ...]) -> NameScope | None:
    """Return the scope that binds a name which stands in the last of nested scopes."""
    seen = (scope for scope in reversed(scopes) if scope.kind is not ScopeKind.CLASS)
    return next((scope for scope in seen if name in scope.bound), None)


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a piece of source stands.

    Attributes
    ----------
    functions : Functions
        Of its file.
    scopes : tuple of NameScope
        Around it.
    kind_of : callable
        Tells what kind of object an expression is: ``array``, ``number``, one of Python's own or,
        where nothing shows it, `OBJECT`.
    """

    functions: Functions
    scopes: tuple[NameScope, ...]
    kind_of: Callable[[cst.BaseExpression], str]

    def call(self, node: cst.Call) -> Deed:
        """Return what a call may do."""
        imports: Mapping[str, str] = Imports(self.scopes)
        full, given = resolve(node.func, imports) or "", [one.value for one in node.args]
        names = [one.keyword.value for one in node.args if one.keyword is not None]
        if "key" in names or any(self.is_code(one) for one in given):
            return Deed.ANYTHING
        match node.func:
            case cst.Name(value=name) if not full:
                known = name in BUILTINS and name not in bound_anywhere(self.scopes)
                lead = Deed.LEADS if name in HOLDING else Deed.NOTHING
                return lead if known else Deed.ANYTHING
            case cst.Name() | cst.Attribute() if full:
                module, _, rest = full.partition(".")
                if module in _NUMBERS:
                    return Deed.NOTHING
                called = rest if module == "numpy" else full
                known = module == "numpy" or full in PARAMETERS
                return _by_table(called, node, 0) if known else Deed.ANYTHING
            case cst.Attribute(value=owner, attr=cst.Name(value=name)):
                kind = self.kind_of(owner)
                if kind == OBJECT or kind == "function":
                    return Deed.ANYTHING
                if name in CHANGING or kind == "generator":
                    return Deed.CHANGES
                if kind == "array":
                    return _by_table(name, node, 1)
                return Deed.NOTHING if kind in ("str", "number") else Deed.LEADS
        return Deed.ANYTHING

    def is_object(self, name: cst.Name) -> bool:
        """Return whether a name may denote an object with code of its own."""
        if name.value in BUILTINS or name.value in Imports(self.scopes):
            return False
        return self.kind_of(name) == OBJECT

    def is_code(self, node: cst.BaseExpression) -> bool:
        """Return whether a value is seen to be a function, or what calls one as it is read."""
        found = isinstance(node, cst.Name) and self.kind_of(node) == "function"
        found |= isinstance(node, cst.Lambda)
        return found or self.functions.of(node, self.scopes) is not None


def _by_table(name: str, node: cst.Call, first: int) -> Deed:
    """Return what a function of NumPy's does, given the place of its first argument.

    It writes where it is told to: those that the tables do not have may do so in any argument.
    """
    row = ROWS.get(ELEMENTWISE.get(name, name))
    names = PARAMETERS.get(name) or (None if row is None else ("x",) * row.operands)
    if first and name in _COPYING | _SHARING:
        names = ("x",) * 9
    if names is None or any(one.star for one in node.args):
        return Deed.CHANGES
    plain = [one for one in node.args if one.keyword is None]
    used = [*names[first : first + len(plain)]]
    used += [one.keyword.value for one in node.args if one.keyword is not None]
    if first + len(plain) > len(names) or any(map(_is_written, used)):
        return Deed.CHANGES
    copies = row is not None or name in REDUCTIONS or name in SCANS or name.startswith("linalg.")
    copies |= bool(first) and name in _COPYING
    copies |= name in FUNCTIONS and FUNCTIONS[name].cost[:1] in _FRESH
    return Deed.NOTHING if copies else Deed.LEADS


def _is_written(parameter: str) -> bool:
    return parameter in ("out", "output", "copy") or parameter.startswith("overwrite")


def roots(node: cst.CSTNode | None, reading: Reading) -> frozenset[str]:
    """Return the names whose memory the value of an expression may lead to."""
    parts: Iterable[cst.CSTNode] = ()
    match node:
        case None | cst.Comparison() | cst.UnaryOperation() | cst.FormattedString():
            return frozenset()
        case cst.Attribute(value=value) | cst.Subscript(value=value):
            parts = (value,)
        case cst.IfExp(body=body, orelse=orelse):
            parts = (body, orelse)
        case cst.BinaryOperation(left=left, right=right):
            # of arrays it makes a new one; lists may be joined, dictionaries too
            parts = () if reading.kind_of(node) == "array" else (left, right)
        case cst.Call() if reading.call(node) is Deed.NOTHING:
            return frozenset()
        case (
            cst.Tuple() | cst.List() | cst.BaseElement()
            | cst.Dict() | cst.BaseDictElement() | cst.BooleanOperation()
        ):  # fmt: skip
            parts = parts_of(node)
        case _:
            return names_in(node)
    return frozenset().union(*(roots(part, reading) for part in parts))


def effects_of(node: cst.CSTNode, reading: Reading) -> Effects:
    """Return what running a piece of source may do."""
    changed: set[str] = set()
    links: list[frozenset[str]] = []
    reaches = False
    unseen = reading.functions.run_unseen
    for part in nodes_in(node):
        if not _acts(type(part)) and not unseen:
            continue
        value: cst.CSTNode | None = None
        targets: list[cst.BaseExpression] = []
        match part:
            case cst.Assign(value=value):
                targets = [one.target for one in part.targets]
            case cst.AugAssign(target=target, value=value):
                changed |= roots(target, reading)
                targets = [target]
            case (
                cst.AnnAssign(target=target, value=value)
                | cst.NamedExpr(target=target, value=value)
            ):
                targets = [target]
            case cst.For(target=target, iter=value) | cst.CompFor(target=target, iter=value):
                targets = [target]
                if reading.is_code(value):
                    changed |= names_in(value)
                    reaches = True
            case cst.Call():
                deed = reading.call(part)
                inner = names_in(part)
                if deed is Deed.CHANGES:
                    inner = frozenset().union(*(roots(one, reading) for one in _given(part)))
                if deed >= Deed.CHANGES:
                    changed |= inner
                    links.append(inner)
                reaches |= deed is Deed.ANYTHING
            case cst.Await() | cst.Yield():
                reaches = True
            case cst.Name() if unseen and reading.is_object(part):
                changed.add(part.value)
                reaches = True
            case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                if not isinstance(part, _AT_ONCE):
                    changed |= names_in(part)
                    links.append(names_in(part))
                    reaches = True
        for target in targets:
            changed |= {name for one in _stores(target) for name in roots(one, reading)}
            if not _copies(target, isinstance(part, cst.AugAssign), reading):
                links.append(roots(target, reading) | roots(value, reading))
    return Effects(frozenset(changed), tuple(links), reaches)


@cache
def _acts(kind: type[cst.CSTNode]) -> bool:
    """Return whether nodes of a kind do more than have a value."""
    doing = (cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.CompFor, cst.Call)
    return issubclass(kind, (*doing, cst.NamedExpr, cst.Await, cst.Yield))


def _copies(target: cst.BaseExpression, adds: bool, reading: Reading) -> bool:
    """Return whether an assignment stores elements: what an array takes is copied."""
    if isinstance(target, cst.Tuple | cst.List):
        return all(_copies(one.value, adds, reading) for one in target.elements)
    into = target.value if isinstance(target, cst.Subscript) else target if adds else None
    return into is not None and reading.kind_of(into) == "array"


def _given(node: cst.Call) -> Iterator[cst.BaseExpression]:
    """Yield what a call is given, and what it is called on."""
    if isinstance(node.func, cst.Attribute):
        yield node.func.value
    yield from (one.value for one in node.args)


def _stores(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what an assignment changes in place."""
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _stores(element.value)
    elif not isinstance(target, cst.Name):
        yield target


# --- others ---------------------------------------------------------------------------------------
# Work besides that on arrays: texts, lists, dictionaries, objects, calls of whatever there is.
#
# What an expression computes with arrays on the way is found in it and counts; the rest is either
# Python's own bookkeeping, which takes no time worth telling, or work that nobody can price.


METADATA = frozenset({"shape", "ndim", "dtype", "size", "itemsize", "nbytes", "flags", "base"})
"""Attributes of arrays that say nothing of their elements."""

_LOOKING = frozenset({"len", "isinstance", "type", "id", "hasattr", "callable", "range", "zip"})
"""Builtins that look at no element of an array they are given."""

_KINDS = {
    cst.List: "list",
    cst.Tuple: "tuple",
    cst.Dict: "dict",
    cst.Set: "set",
    cst.SimpleString: "str",
    cst.ConcatenatedString: "str",
    cst.FormattedString: "str",
    cst.ListComp: "list",
    cst.DictComp: "dict",
    cst.SetComp: "set",
    cst.Lambda: "function",
    cst.GeneratorExp: "function",
}


@dataclass(slots=True)
class Work:
    """What evaluating an expression takes besides bookkeeping.

    Attributes
    ----------
    values : list of Value
        Computed of arrays.
    unpriced : str
        What else it does that has no price; empty where there is nothing.
    of_numbers : bool
        Whether a run showed that it is a number, so that nothing unknown in it is an array.
    inert : bool
        Whether nothing may be called.
    """

    values: list[Value] = field(default_factory=list)
    unpriced: str = ""
    of_numbers: bool = False
    inert: bool = False


def kind_of(node: cst.BaseExpression | None, scope: Scope) -> str:
    """Return what kind of object an expression makes, as far as it shows."""
    match node:
        case cst.Name(value="None"):
            return "None"
        case cst.Name(value=name):
            return scope.things.get(name, OBJECT)
        case cst.Call(func=cst.Name(value="list" | "tuple" | "dict" | "set" | "str" as name)):
            return OBJECT if scope.not_builtin(name) else str(name)
        case cst.Call(func=cst.Name(value="sorted")) if not scope.not_builtin("sorted"):
            return "list"
        case cst.Call(func=cst.Name(value="map" | "filter")):
            return "function"
    return _KINDS.get(type(node), OBJECT) if node is not None else "None"


def seen_kind(node: cst.BaseExpression, scope: Scope) -> str:
    """Return what an expression is: also an array, a number or NumPy's generator of numbers."""
    match node:
        case cst.Name(value=name) if name in scope.generators:
            return "generator"
        case cst.Name(value=name) if scope.times_bound(name) and not scope.is_array(name):
            known = name in scope.scalars or name in scope.numbers or name in scope.elements
            return "number" if known else kind_of(node, scope)
        case cst.Integer() | cst.Float() | cst.Comparison():
            return "number"
        case cst.BinaryOperation(left=left, right=right):
            kinds = seen_kind(left, scope), seen_kind(right, scope)
            return "array" if "array" in kinds else OBJECT
        case cst.Call(func=cst.Attribute(value=owner)) if _is_array(owner, scope):
            return "array"
        case cst.Call() if (resolve(node.func, scope.imports) or "").startswith("numpy."):
            return "array"
    return "array" if _is_array(node, scope) else kind_of(node, scope)


def is_inert(node: cst.CSTNode, scope: Scope) -> bool:
    """Return whether evaluating an expression reads no array's elements and does nothing else."""
    work = Work(inert=True)
    try:
        _look(node, work, scope)
    except NotUnderstood:
        return False
    return not work.values and not work.unpriced


def work_of(node: cst.CSTNode, scope: Scope, *, of_numbers: bool = False) -> Work:
    """Return what evaluating an expression takes.

    Raises
    ------
    NotUnderstood
        It does something to arrays that is not read.
    """
    work = Work(of_numbers=of_numbers)
    _look(node, work, scope)
    return work


def _look(node: cst.CSTNode, work: Work, scope: Scope) -> None:
    refused = NotUnderstood("this kind of expression is not understood")
    if isinstance(node, cst.BaseExpression) and type(node) not in _KINDS:
        try:
            value = value_of(node, scope)
        except NotUnderstood as error:
            refused = error
        else:
            is_array = bool(scope.type_of(value).extents)
            needs = not isinstance(value, Read) if is_array else bool(reads(value))
            work.values += [value] * needs
            return
    parts: Iterable[cst.CSTNode] = parts_of(node)
    match node:
        case cst.Name(value=name):
            if name in scope.hints and name not in scope.things:
                raise refused
            return
        case cst.Attribute(value=base):
            if isinstance(base, cst.Name) and scope.is_array(base.value):
                if node.attr.value in METADATA:
                    return
                raise refused
            parts = (base,)
        case cst.Subscript(value=base) if _is_array(base, scope) or (
            resolve(base, scope.imports) or ""
        ).startswith("numpy."):
            # a part of an array, or what np.mgrid and np.r_ make
            raise refused
        case cst.Comparison(comparisons=[cst.ComparisonTarget(cst.Is() | cst.IsNot())]):
            pass
        case cst.Comparison() if any(_is_text(part) for part in parts_of(node)):
            pass
        case cst.IfExp() | cst.BooleanOperation():
            if any(_is_array(part, scope) for part in parts_of(node)):
                raise refused
        case cst.BinaryOperation() | cst.Comparison() | cst.UnaryOperation():
            operands = tuple(parts_of(node))
            if any(_is_array(part, scope) for part in operands):
                raise refused
            if not work.of_numbers and any(_may_be_array(part, scope) for part in operands):
                raise refused
        case cst.Lambda():
            return
        case cst.FormattedStringExpression(expression=shown):
            if _is_array(shown, scope):
                work.unpriced = "the text of an array"
        case cst.ListComp() | cst.GeneratorExp() | cst.SetComp() | cst.DictComp():
            if work.inert or scope.arrays_among(names_in(node)):
                raise NotUnderstood("a comprehension over arrays")
            work.unpriced = "a comprehension"
            return
        case cst.Call():
            _call(node, work, scope, refused)
            parts = [one.value for one in node.args]
            if isinstance(node.func, cst.Attribute) and resolve(node.func, scope.imports) is None:
                parts = [node.func.value, *parts]
        case cst.NamedExpr() | cst.Await() | cst.Yield():
            raise refused
    for part in parts:
        _look(part, work, scope)


def _call(node: cst.Call, work: Work, scope: Scope, refused: NotUnderstood) -> None:
    """Note what a call takes that is none of an array's value.

    Raises
    ------
    NotUnderstood
        It is one of NumPy's, or in a place where nothing is to be called.
    """
    full = resolve(node.func, scope.imports) or ""
    name = node.func.value if isinstance(node.func, cst.Name) and not full else ""
    builtin = name in BUILTINS and not scope.not_builtin(name)
    given = any(_is_array(one.value, scope) for one in node.args)
    if builtin and (not given or name in _LOOKING):
        return
    if full == "numpy.random.seed" or full.startswith(("time.", "math.")):
        return
    if full.partition(".")[0] == "numpy" or work.inert:
        raise refused
    if not builtin or given:
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        plain = owner is not None and kind_of(owner, scope) not in (OBJECT, "function")
        if owner is not None and _is_array(owner, scope):
            raise refused
        if not plain:
            called = dotted(node.func) or "this expression"
            work.unpriced = f"the call of `{called}`"


def _is_text(node: cst.CSTNode) -> bool:
    """Return whether an operand of a comparison is a text that is written out."""
    other = node.comparator if isinstance(node, cst.ComparisonTarget) else node
    return isinstance(other, cst.SimpleString)


def _is_array(node: cst.CSTNode, scope: Scope) -> bool:
    """Return whether an expression is seen to be an array."""
    if not isinstance(node, cst.BaseExpression):
        return any(_is_array(part, scope) for part in parts_of(node))
    if isinstance(node, cst.Subscript | cst.Attribute):
        return _is_array(node.value, scope)
    if not isinstance(node, cst.Name):
        return False
    return scope.is_array(node.value)


def _may_be_array(node: cst.CSTNode, scope: Scope) -> bool:
    """Return whether an operand is not seen to be a number or one of Python's own objects."""
    if isinstance(node, cst.ComparisonTarget):
        return _may_be_array(node.comparator, scope)
    if not isinstance(node, cst.BaseExpression):
        return False
    try:
        return bool(scope.type_of(value_of(node, scope)).extents)
    except NotUnderstood:
        pass
    if isinstance(node, cst.BinaryOperation | cst.Comparison | cst.UnaryOperation):
        return False
    return kind_of(node, scope) in (OBJECT, "function")
