"""Statements of a kernel's body, as statements of the intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from advisor.frontend.arrays import AUGMENTED, type_of, value_of, whole_read
from advisor.frontend.declarations import Declarations
from advisor.frontend.names import dotted, resolve
from advisor.frontend.problems import NotUnderstood
from advisor.frontend.regions import region
from advisor.frontend.scalars import literal_int, scalar
from advisor.frontend.scope import Scope
from advisor.ir.shapes import ArrayType, ShapeConflict, describe
from advisor.ir.signs import known_non_negative, least_index
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Scatter,
    Stated,
    Statement,
    Store,
    Unknown,
)
from advisor.ir.values import Elementwise, Read, Scalar, Value
from advisor.source import Span
from costdb.expr import Expr, num, sym

RESULT = "<returned>"
"""The name under which an unnamed returned expression is bound."""


@dataclass(frozen=True, slots=True)
class Pragmas:
    """What ``# advise:`` comments say of statements, by the line they speak of."""

    trips: Mapping[int, Expr]
    probabilities: Mapping[int, Expr]
    costs_us: Mapping[int, Expr]


class Body:
    """Reads the statements of one kernel in order, keeping what names denote."""

    def __init__(self, scope: Scope, declarations: Declarations, pragmas: Pragmas) -> None:
        self.scope = scope
        self.declarations = declarations
        self.pragmas = pragmas

    def block(self, node: cst.BaseSuite) -> tuple[Statement, ...]:
        """Return the statements of a suite."""
        found: list[Statement] = []
        for part in node.body:
            if isinstance(part, cst.SimpleStatementLine):
                for small in part.body:
                    found.extend(self._guarded(small, self._small))
            elif isinstance(part, cst.BaseSmallStatement):
                found.extend(self._guarded(part, self._small))
            elif isinstance(part, cst.BaseCompoundStatement):
                found.extend(self._guarded(part, self._compound))
        return tuple(found)

    def _guarded(
        self,
        node: cst.BaseSmallStatement | cst.BaseCompoundStatement,
        read: Callable[[Any], Sequence[Statement]],
    ) -> Sequence[Statement]:
        """Read a statement; what is not understood becomes an explicit unknown."""
        span = self.scope.span(node)
        stated = self.pragmas.costs_us.get(span.start_line)
        mentions = names_in(node)
        if stated is not None:
            self._forget_assigned(node)
            return (Stated(stated, mentions, span),)
        try:
            return read(node)
        except NotUnderstood as unknown:
            self._forget_assigned(node)
            return (Unknown(unknown.reason, mentions, span),)

    def _forget_assigned(self, node: cst.CSTNode) -> None:
        for name in assigned_names(node):
            self.scope.forget(name)

    def _small(self, node: cst.BaseSmallStatement) -> Sequence[Statement]:
        span = self.scope.span(node)
        match node:
            case cst.Pass() | cst.Import() | cst.ImportFrom() | cst.Assert():
                return ()
            case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
                return ()
            case cst.Expr(value=cst.Call() as call):
                return self._call(call, span)
            case cst.Assign(targets=[target]):
                return self._assign(target.target, node.value, span)
            case cst.AnnAssign():
                return self._annotated(node, span)
            case cst.AugAssign():
                return self._augmented(node, span)
            case cst.Return():
                return self._return(node, span)
        raise NotUnderstood("this kind of statement is not understood")

    def _assign(
        self, target: cst.BaseExpression, value: cst.BaseExpression, span: Span
    ) -> Sequence[Statement]:
        if isinstance(target, cst.Name):
            return self._bind(target.value, value, span)
        if isinstance(target, cst.Subscript):
            place = self._place(target)
            return (self._store(place, value_of(value, self.scope), span),)
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            return self._unpack(target, value, span)
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Attribute):
            return self._unpack_shape(target, value)
        raise NotUnderstood("this kind of assignment is not understood")

    def _bind(self, name: str, node: cst.BaseExpression, span: Span) -> Sequence[Statement]:
        scope = self.scope
        try:
            number = scalar(node, scope)
        except NotUnderstood:
            pass
        else:
            scope.bind_scalar(name, number)
            return ()
        value = value_of(node, scope)
        if isinstance(value, Read):
            # a basic subscript, or another name: shares the memory of the array behind it
            if value.array == name:
                raise NotUnderstood(f"`{name}` is rebound to a part of itself")
            found = type_of(value, scope)
            if not found.extents:
                scope.forget(name)
                scope.numbers[name] = found.dtype
                return (ScalarBind(name, value, span),)
            if name in scope.declared or name in scope.locals:
                raise NotUnderstood(f"`{name}` is rebound to another array's memory")
            scope.forget(name)
            scope.views[name] = value
            return ()
        if isinstance(value, Scalar):
            scope.forget(name)
            scope.numbers[name] = value.dtype
            return ()
        found = type_of(value, scope)
        if not found.extents:
            scope.forget(name)
            scope.numbers[name] = found.dtype
            return (ScalarBind(name, value, span),)
        scope.bind_local(name, found)
        return (Bind(name, value, span),)

    def _unpack(self, target: cst.Tuple, value: cst.Tuple, span: Span) -> Sequence[Statement]:
        left = [dotted(element.value) for element in target.elements]
        right = [dotted(element.value) for element in value.elements]
        own = self.scope.declared.keys() | self.scope.locals.keys()
        if sorted(map(str, left)) == sorted(map(str, right)) and own.issuperset(map(str, left)):
            types = {self.scope.array_type(str(name)) for name in left}
            if len(types) == 1:
                names = frozenset(map(str, left))
                self.scope.renamed |= names
                return (Rename(names, span),)
        if len(left) == len(right) and None not in left:
            inputs = frozenset().union(*(names_in(element) for element in value.elements))
            if not inputs & set(map(str, left)):
                made: list[Statement] = []
                for name, element in zip(left, value.elements, strict=True):
                    made.extend(self._bind(str(name), element.value, span))
                return made
        raise NotUnderstood("this kind of assignment is not understood")

    def _unpack_shape(self, target: cst.Tuple, value: cst.Attribute) -> Sequence[Statement]:
        names = [dotted(element.value) for element in target.elements]
        array = dotted(value.value)
        if value.attr.value != "shape" or array is None or not self.scope.is_array(array):
            raise NotUnderstood("this kind of assignment is not understood")
        extents = self.scope.extents_of(array)
        if len(extents) != len(names) or None in names:
            raise NotUnderstood(f"`{array}` does not have {len(names)} dimensions")
        for name, extent in zip(names, extents, strict=True):
            self.scope.bind_scalar(str(name), extent)
        return ()

    def _annotated(self, node: cst.AnnAssign, span: Span) -> Sequence[Statement]:
        if not isinstance(node.target, cst.Name):
            raise NotUnderstood("an annotation of something that is no name")
        name = node.target.value
        declared = self.declarations.declared(name, node.annotation.annotation)
        if declared is not None:
            if name in self.scope.locals:
                raise NotUnderstood(f"`{name}` is declared after its first use")
            self.scope.forget(name)
            self.scope.declared[name] = declared
        if node.value is None:
            return ()
        return self._bind(name, node.value, span)

    def _augmented(self, node: cst.AugAssign, span: Span) -> Sequence[Statement]:
        scope = self.scope
        operation = AUGMENTED.get(type(node.operator))
        if operation is None:
            raise NotUnderstood("this operator is not understood on arrays")
        place: Read
        if isinstance(node.target, cst.Name):
            name = node.target.value
            if name in scope.scalars:
                raise NotUnderstood(f"`{name}` changes its value in a way that is not followed")
            if not scope.is_array(name):
                if name in scope.numbers:
                    added = value_of(node.value, scope)
                    return (ScalarBind(name, added, span),)
                raise NotUnderstood(f"`{name}` is not known here")
            place = whole_read(name, scope)
        elif isinstance(node.target, cst.Subscript):
            place = self._place(node.target)
        else:
            raise NotUnderstood("this kind of assignment is not understood")
        value = Elementwise(operation, (place, value_of(node.value, scope)))
        return (self._store(place, value, span),)

    def _place(self, target: cst.Subscript) -> Read:
        if not isinstance(target.value, cst.Name) or not self.scope.is_array(target.value.value):
            raise NotUnderstood("a store to something that is not known to be an array")
        name = target.value.value
        extents = self.scope.extents_of(name)
        return self.scope.select(name, region(target.slice, extents, self.scope))

    def _store(self, place: Read, value: Value, span: Span) -> Store:
        try:
            target = describe(place, self.scope.array_type)
            source = describe(value, self.scope.array_type)
            # element types do not matter for whether the shapes agree
            describe(
                Elementwise("add", (place, value)),
                lambda name: ArrayType("float64", self.scope.array_type(name).extents),
            )
        except ShapeConflict as error:
            raise NotUnderstood(str(error)) from error
        if len(source.extents) > len(target.extents):
            raise NotUnderstood("the value has more dimensions than its place")
        return Store(place.array, place.region, value, span)

    def _call(self, node: cst.Call, span: Span) -> Sequence[Statement]:
        """Read ``np.add(a, b, out=c)``; other calls for their effect are not understood."""
        full = resolve(node.func, dict(self.scope.imports)) or ""
        outs = [a for a in node.args if a.keyword is not None and a.keyword.value == "out"]
        if full == "print":
            return ()
        if full == "numpy.add.at":
            return (self._scatter(node, span),)
        if full.startswith("numpy.") and len(outs) == 1:
            target = outs[0].value
            rest = node.with_changes(args=[a for a in node.args if a is not outs[0]])
            if isinstance(target, cst.Name) and self.scope.is_array(target.value):
                place = whole_read(target.value, self.scope)
            elif isinstance(target, cst.Subscript):
                place = self._place(target)
            else:
                raise NotUnderstood("out= of something that is not known to be an array")
            return (self._store(place, value_of(rest, self.scope), span),)
        called = dotted(node.func) or "this expression"
        raise NotUnderstood(f"the call of `{called}` is not understood")

    def _scatter(self, node: cst.Call, span: Span) -> Scatter:
        """Read ``np.add.at(array, places, value)`` for a vector and a vector of places."""
        if len(node.args) != 3 or any(a.keyword or a.star for a in node.args):
            raise NotUnderstood("np.add.at whose arguments cannot be read")
        array, places, value = (argument.value for argument in node.args)
        if not isinstance(array, cst.Name) or not self.scope.is_array(array.value):
            raise NotUnderstood("np.add.at on something that is not known to be an array")
        target = whole_read(array.value, self.scope)
        if target.array != array.value or len(target.region) != 1:
            raise NotUnderstood("np.add.at on something other than a vector of its own")
        at, added = value_of(places, self.scope), value_of(value, self.scope)
        if isinstance(at, Scalar):
            raise NotUnderstood("np.add.at at a single place")
        if len(type_of(at, self.scope).extents) != 1:
            raise NotUnderstood("np.add.at at something other than a vector of places")
        return Scatter(target.array, at, added, "add", span)

    def _return(self, node: cst.Return, span: Span) -> Sequence[Statement]:
        if node.value is None:
            return (Return(frozenset(), span),)
        parts = (
            [element.value for element in node.value.elements]
            if isinstance(node.value, cst.Tuple)
            else [node.value]
        )
        made: list[Statement] = []
        leaving: set[str] = set()
        for number, part in enumerate(parts):
            try:
                value = value_of(part, self.scope)
            except NotUnderstood:
                scalar(part, self.scope)
                continue
            if isinstance(value, Read) and isinstance(part, cst.Name):
                leaving.add(value.array)
            elif not isinstance(value, Scalar):
                name = f"{RESULT}{number or ''}"
                found = type_of(value, self.scope)
                if found.extents:
                    self.scope.bind_local(name, found)
                    made.append(Bind(name, value, span))
                else:
                    made.append(ScalarBind(name, value, span))
                leaving.add(name)
        return (*made, Return(frozenset(leaving), span))

    def _compound(self, node: cst.BaseCompoundStatement) -> Sequence[Statement]:
        span = self.scope.span(node)
        match node:
            case cst.For():
                return self._for(node, span)
            case cst.While():
                trips = self.pragmas.trips.get(span.start_line)
                if trips is None:
                    raise NotUnderstood("a while loop without `# advise: trip COUNT` above it")
                return self._looped(node.body, None, num(0), trips, 1, span)
            case cst.If():
                return self._if(node, span)
        raise NotUnderstood("this kind of statement is not understood")

    def _for(self, node: cst.For, span: Span) -> Sequence[Statement]:
        trips = self.pragmas.trips.get(span.start_line)
        if node.orelse is not None or node.asynchronous is not None:
            raise NotUnderstood("a for loop with else, or an asynchronous one")
        variable = node.target.value if isinstance(node.target, cst.Name) else None
        bounds = self._range(node.iter)
        if bounds is None or variable is None:
            if trips is None:
                raise NotUnderstood("a loop over something other than range(...)")
            return self._looped(node.body, None, num(0), trips, 1, span)
        low, high, step = bounds
        if trips is not None:
            high = low + trips * step
        return self._looped(node.body, variable, low, high, step, span)

    def _range(self, node: cst.BaseExpression) -> tuple[Expr, Expr, int] | None:
        if not isinstance(node, cst.Call) or dotted(node.func) not in ("range", "prange"):
            return None
        if not 1 <= len(node.args) <= 3 or any(a.keyword or a.star for a in node.args):
            raise NotUnderstood("a range that cannot be read")
        values = [argument.value for argument in node.args]
        step = literal_int(values[2]) if len(values) == 3 else 1
        if step is None or step < 1:
            raise NotUnderstood("a range whose step is not a positive literal")
        if len(values) == 1:
            return num(0), scalar(values[0], self.scope), step
        return scalar(values[0], self.scope), scalar(values[1], self.scope), step

    def _looped(
        self,
        suite: cst.BaseSuite,
        variable: str | None,
        low: Expr,
        high: Expr,
        step: int,
        span: Span,
    ) -> Sequence[Statement]:
        scope = self.scope
        # what an earlier iteration assigned is not what the name denoted before the loop
        for name in assigned_names(suite):
            scope.forget(name)
        symbol = f"{variable or 'iteration'}.line{span.start_line}"
        if variable is not None:
            scope.bind_scalar(variable, sym(symbol))
        scope.minima[symbol] = least_index(low, scope.minima)
        body = self.block(suite)
        for name in assigned_names(suite):
            scope.forget(name)
        if variable is not None:
            scope.forget(variable)
        return (Loop(symbol, low, high, step, body, span),)

    def _if(self, node: cst.If, span: Span) -> Sequence[Statement]:
        probability = self.pragmas.probabilities.get(span.start_line)
        decided = self._decided(node.test)
        if decided is True:
            return self.block(node.body)
        if decided is False:
            return self._else(node)
        if probability is None:
            raise NotUnderstood("a condition without `# advise: prob P` above it")
        before_views = dict(self.scope.views)
        then = self.block(node.body)
        self.scope.views = dict(before_views)
        orelse = self._else(node)
        self.scope.views = before_views
        for name in assigned_names(node):
            self.scope.forget(name)
        return (Choice(probability, then, orelse, span),)

    def _else(self, node: cst.If) -> tuple[Statement, ...]:
        if isinstance(node.orelse, cst.Else):
            return self.block(node.orelse.body)
        if isinstance(node.orelse, cst.If):
            return tuple(self._guarded(node.orelse, self._compound))
        return ()

    def _decided(self, test: cst.BaseExpression) -> bool | None:
        """Return how a comparison of sizes comes out for all sizes of at least 1, if it does."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return None
        operator = test.comparisons[0].operator
        try:
            left = scalar(test.left, self.scope)
            right = scalar(test.comparisons[0].comparator, self.scope)
        except NotUnderstood:
            return None
        if isinstance(operator, cst.GreaterThan | cst.GreaterThanEqual):
            left, right = right, left
        minima = self.scope.minima
        if isinstance(operator, cst.LessThan | cst.GreaterThan):
            if known_non_negative(right - left - 1, minima):
                return True
            return False if known_non_negative(left - right, minima) else None
        if isinstance(operator, cst.LessThanEqual | cst.GreaterThanEqual):
            if known_non_negative(right - left, minima):
                return True
            return False if known_non_negative(left - right - 1, minima) else None
        return None


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: set[str] = set()
        self.assigned: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:  # noqa: N802
        self.found.add(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802
        node.value.visit(self)
        return False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:  # noqa: N802
        self._target(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:  # noqa: N802
        self._target(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:  # noqa: N802
        self._target(node.target)

    def visit_For(self, node: cst.For) -> None:  # noqa: N802
        self._target(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:  # noqa: N802
        self._target(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:  # noqa: N802
        self._target(node.name)

    def _target(self, node: cst.BaseExpression) -> None:
        if isinstance(node, cst.Name):
            self.assigned.add(node.value)
        elif isinstance(node, cst.Tuple | cst.List):
            for element in node.elements:
                self._target(element.value)
        elif isinstance(node, cst.StarredElement):
            self._target(node.value)


def names_in(node: cst.CSTNode) -> frozenset[str]:
    """Return every name that stands in a piece of source."""
    visitor = _Names()
    node.visit(visitor)
    return frozenset(visitor.found)


def assigned_names(node: cst.CSTNode) -> frozenset[str]:
    """Return every name that a piece of source binds."""
    visitor = _Names()
    node.visit(visitor)
    return frozenset(visitor.assigned)
