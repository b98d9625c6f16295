"""What a statement may change that is not understood, and what work it is besides that on arrays.

What it may change is found by its text, as `advisor.ir.changes` reads it, with what is known here
of the names in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from advisor.frontend.arrays import value_of
from advisor.frontend.bindings import dotted, names_in, resolve
from advisor.frontend.scope import KINDS, Scope
from advisor.frontend.trees import NotUnderstood, as_python, name_of, parts_of
from advisor.ir.effects import BUILTINS, OBJECT, OF_NUMBERS
from advisor.ir.values import Read, Value, reads
from costdb.records import dataclass, field

if TYPE_CHECKING:
    from advisor.ir.changes import Names


@dataclass(frozen=True, slots=True)
class Effects:
    """What running a piece of source may do.

    Attributes
    ----------
    changed : frozenset of str
        Names of what it may change in place.
    bound : frozenset of str
        Those of them that may be other objects then.
    links : tuple of frozenset of str
        Names that may lead to the same memory once it ran.
    reaches : bool
        Whether it may change what it does not name: it runs code that nobody knows.
    """

    changed: frozenset[str]
    bound: frozenset[str]
    links: tuple[frozenset[str], ...]
    reaches: bool

    @property
    def reached(self) -> frozenset[str]:
        """The names of what it may change, and of all that may lead to it."""
        return self.changed.union(*(one for one in self.links if one & self.changed))


@dataclass(slots=True)
class Reading:
    """What a function of a file may change.

    Attributes
    ----------
    source : str
        Of the file.
    line : int
        Of the function.
    scope : Scope
    """

    source: str
    line: int
    scope: Scope

    @property
    def names(self) -> Names:
        """What is known of names now."""
        # most functions have no statement that is not understood
        from advisor.ir.functions import names_around

        return names_around(self.source, self.line).seen(self._kind, self.scope.seen.around)

    def _kind(self, name: str) -> str:
        """Return what kind of object a name denotes; empty for attributes that are no names."""
        scope, name = self.scope, name_of(name)
        if name in scope.generators:
            return "generator"
        if scope.is_array(name):
            return "array"
        if name in scope.scalars or name in scope.numbers or name in scope.elements:
            return "number"
        return (
            "" if "." in name and name not in scope.seen.around else scope.things.get(name, OBJECT)
        )

    def _named(self, paths: Iterable[str]) -> frozenset[str]:
        around = self.scope.seen.around
        return frozenset(one if one in around else name_of(one.partition(".")[0]) for one in paths)

    def roots(self, node: cst.CSTNode) -> frozenset[str]:
        """Return the names whose memory the value of an expression may lead to."""
        return self._named(self.names.roots(as_python(node)))

    def kind_of(self, node: cst.BaseExpression) -> str:
        """Return which of Python's own objects an expression makes, as far as it shows."""
        kind = self.names.kind(as_python(node))
        return kind if kind in KINDS else OBJECT

    def steps(self, node: cst.CSTNode) -> tuple[int, int, int]:
        """Return what a statement takes of the interpreter at least; a loop, of one iteration."""
        return self.names.steps(as_python(node))

    def effects(self, node: cst.CSTNode) -> Effects:
        """Return what running a piece of source may do."""
        tree, names, scope = as_python(node), self.names, self.scope
        found = names.changes([tree])
        links: list[frozenset[str]] = []
        every = [link for part in ast.walk(tree) for link in names.links(part)]
        # which of several names is which array, nobody follows
        every += [frozenset(found.bound)] if isinstance(tree, ast.Assign) else []
        for link in map(self._named, every):
            apart = [one for one in links if not one & link]
            links = [*apart, link.union(*(one for one in links if one & link))]
        bound = self._named(found.wholly)
        changed = bound | self._named(found.elements)
        # what others have as well, and nothing here follows
        touched = changed.union(*links) & (names.file.bound - names.bound)
        outer = {name for name in touched if not scope.is_followed(name)}
        kept = [link for link in links if len(link) > 1 and link & outer]
        reaches = found.unknown or bool(kept or changed & outer)
        return Effects(changed.union(*kept), bound, tuple(links), reaches)


# --- others ---------------------------------------------------------------------------------------
# Work besides that on arrays: texts, lists, dictionaries, objects, calls of whatever there is.
#
# What an expression computes with arrays on the way is found in it and counts; the rest is either
# Python's own bookkeeping, which takes no time worth telling, or work that nobody can price.


METADATA = frozenset({"shape", "ndim", "dtype", "size", "itemsize", "nbytes", "flags", "base"})
"""Attributes of arrays that say nothing of their elements."""

_LOOKING = frozenset({"len", "isinstance", "type", "id", "hasattr", "callable", "range", "zip"})
"""Builtins that look at no element of an array they are given."""

_NO_VALUES = (
    cst.List | cst.Tuple | cst.Dict | cst.Set | cst.SimpleString | cst.ConcatenatedString
    | cst.FormattedString | cst.ListComp | cst.DictComp | cst.SetComp | cst.GeneratorExp
    | cst.Lambda
)  # fmt: skip


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
    if isinstance(node, cst.BaseExpression) and not isinstance(node, _NO_VALUES):
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
    given = any(_holds_array(one.value, scope) for one in node.args)
    if builtin and (not given or name in _LOOKING):
        return
    if full == "numpy.random.seed" or full.startswith(OF_NUMBERS):
        return
    if full.partition(".")[0] == "numpy" or work.inert:
        raise refused
    if not builtin or given:
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        plain = owner is not None and scope.kind_of(owner) not in (OBJECT, "function")
        if owner is not None and _is_array(owner, scope):
            raise refused
        if not plain:
            called = dotted(node.func) or "this expression"
            work.unpriced = f"the call of `{called}`"


def _holds_array(node: cst.BaseExpression, scope: Scope) -> bool:
    """Return whether an expression is an array, or may be one that comes out of one."""
    try:
        return bool(scope.type_of(value_of(node, scope)).extents)
    except NotUnderstood:
        return _is_array(node, scope)


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
    return scope.kind_of(node) in (OBJECT, "function")
