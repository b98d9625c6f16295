"""Work besides that on arrays: texts, lists, dictionaries, objects, calls of whatever there is.

What an expression computes with arrays on the way is found in it and counts; the rest is either
Python's own bookkeeping, which takes no time worth telling, or work that nobody can price.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from advisor.frontend.arrays import value_of
from advisor.frontend.bindings import dotted, names_in, resolve
from advisor.frontend.effects import BUILTINS
from advisor.frontend.scope import OBJECT, Scope
from advisor.frontend.trees import NotUnderstood, parts_of
from advisor.ir.values import Read, Value, reads
from costdb.records import dataclass, field

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
