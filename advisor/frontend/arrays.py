"""Array expressions of the source, as values of the intermediate form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import reduce
from itertools import pairwise

import libcst as cst

from advisor.frontend.bindings import dotted, names_in, resolve
from advisor.frontend.calls import METHODS, Calls, counted
from advisor.frontend.indices import (
    OF_SHAPES,
    Known,
    Selection,
    known,
    scalar,
    selection,
    whole_number,
)
from advisor.frontend.scope import Given, Scope, function_of
from advisor.frontend.splits import decided
from advisor.frontend.trees import NotUnderstood
from advisor.ir.effects import DRAWS
from advisor.ir.shapes import ArrayType, is_whole, kind_of_or_none, whole
from advisor.ir.statements import Bind, ScalarBind
from advisor.ir.values import (
    Called,
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Gather,
    Part,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Scan,
    Subscript,
    Transpose,
    Value,
    base_of,
)
from advisor.numpy_functions import FUNCTIONS
from advisor.numpy_table import (
    OF_CMATH,
    OF_MATH,
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    REDUCTIONS,
    ROWS,
    WHOLE_OF_MATH,
    Kind,
    Shape,
    ShapeConflict,
    UnknownDtype,
    broadcast,
    count_of,
    dtype_of,
    is_dtype,
    joined,
    promote,
    reduced,
    reduced_dtype,
    strong,
)
from advisor.source import Span
from costdb.expr import ONE, Expr, floor_div, num, to_text
from costdb.expr.functions import chance, trips
from costdb.records import IDENTIFIER, dataclass, replace

# What NumPy's functions are given in a kernel, and the values that they make there.


_BUILTIN_TYPES = frozenset({"int", "float", "bool", "complex"})


@dataclass(frozen=True, slots=True)
class KernelDoor:
    """What a kernel's arguments say, and the values that operations on arrays are."""

    scope: Scope
    value: Callable[[Known], Value]

    def array(self, argument: Known, name: str) -> Value:
        """Return the array that an argument is, also of numbers that are written out."""
        if isinstance(argument, cst.List | cst.Tuple):
            return listed(argument, self.scope)
        value = self.value(argument)
        if isinstance(value, Scalar):
            raise NotUnderstood(f"np.{name} of a number")
        return value

    def integer(self, argument: Known) -> int | None:
        """Return a whole number that depends on no size."""
        return whole_number(known(argument, self.scope))

    def size(self, argument: Known, name: str) -> Expr:
        """Return a whole number over sizes."""
        return scalar(argument, self.scope)

    def shape(self, argument: Known) -> Shape:
        """Return a shape that is written out, or that of an array."""
        items = self.items(argument)
        return tuple(scalar(one, self.scope) for one in ((argument,) if items is None else items))

    def items(self, argument: Known) -> Sequence[Known] | None:
        """Return what a tuple or list consists of."""
        found = known(argument, self.scope)
        return found if isinstance(found, tuple) else None

    def dtype(self, argument: Known) -> str:
        """Return the name of the element type that an expression such as ``np.int32`` denotes."""
        node, scope = argument, self.scope
        if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
            return self.type_of(self.array(node.value, "dtype")).dtype
        if isinstance(node, cst.SimpleString):
            name = str(node.evaluated_value)
        elif isinstance(node, cst.Name) and node.value in _BUILTIN_TYPES:
            if scope.not_builtin(node.value):
                raise NotUnderstood(f"`{node.value}` may be something other than the builtin")
            name = node.value
        else:
            full = (isinstance(node, cst.CSTNode) and resolve(node, scope.imports)) or ""
            if not full.startswith("numpy."):
                raise NotUnderstood("an element type that cannot be read")
            name = full.removeprefix("numpy.")
        try:
            return dtype_of(name).name
        except UnknownDtype as error:
            raise NotUnderstood(str(error)) from error

    def text(self, argument: Known) -> str | None:
        """Return a text that is written out."""
        return str(argument.evaluated_value) if isinstance(argument, cst.SimpleString) else None

    def is_none(self, argument: Known) -> bool:
        """Return whether an argument is None."""
        return isinstance(argument, cst.Name) and argument.value == "None"

    def written(self, argument: Known) -> str:
        """Return the source, or the number."""
        if isinstance(argument, cst.CSTNode):
            return cst.Module([]).code_for_node(argument)
        return repr(argument)

    def constant(self, argument: Known) -> tuple[str, str]:
        """Return a number that fills an array, and the type of such an array."""
        value = self.value(argument)
        if not isinstance(value, Scalar) or value.text in ("arange", "eye"):
            raise NotUnderstood("np.full with the elements of an array")
        if isinstance(argument, cst.CSTNode) and names_in(argument) & self.scope.varying:
            # it would stand in a text that says nothing of iterations
            raise NotUnderstood("an argument that is another number in each iteration")
        return value.text, strong(value.dtype)

    def type_of(self, value: Value) -> ArrayType:
        """Return element type and shape of a value."""
        return self.scope.type_of(value)

    def made(self, form: Value) -> Value:
        """Return an operation, once shapes and element types agree."""
        match form:
            case Elementwise():
                return self._applied(form)
            case Flip(Scan(Flip(inner, first), along, operation, dtype, False), last) if (
                first == along == last
            ):
                # a scan of a reversed array, reversed back, is a scan from the other end
                form = Scan(inner, along, operation, dtype, reverse=True)
            case Reduction(Elementwise(_, sides), axis, fused=True):
                # the elements of a vector are multiplied with those of another, never stretched
                shapes = [self.type_of(side).extents for side in sides]
                one, other = (
                    shapes if axis is None else (shape[axis : axis + 1] for shape in shapes)
                )
                if not one or one != other:
                    reason = "a product of arrays whose extents may differ"
                    pairs = (pair for pair in zip(one, other, strict=False) if pair[0] != pair[1])
                    raise self.scope.misfit(ShapeConflict(reason, *next(pairs, ())))
        self.type_of(form)
        return form

    def _applied(self, form: Elementwise) -> Value:
        """Return an operation element by element, of numbers alone a number."""
        operation, parts = form.operation, form.operands
        found = self.type_of(form)
        numbers = [part for part in parts if isinstance(part, Scalar)]
        if operation == "power" and self.type_of(parts[0]).dtype == "bool":
            raise NotUnderstood("a power of booleans, whose type depends on the exponent")
        if len(numbers) < len(parts):
            return form
        if operation == "power" and not _has_known_type(*numbers):
            raise NotUnderstood("a power of a number, whose type depends on its sign")
        # unlike an operator, a function makes NumPy's number of a Python one
        dtype = strong(found.dtype) if form.called else found.dtype
        if operation == "power" and dtype == PYTHON_INTEGER and numbers[1].text.startswith("-"):
            dtype = PYTHON_FLOAT
        return Scalar(f"{operation}({', '.join(part.text for part in numbers)})", dtype)

    def may_be_complex(self, value: Value) -> bool:
        """Return whether elements are complex, or are real only as they are assumed to be."""
        dtype = self.type_of(value).dtype
        return dtype.startswith("complex") or (self.scope.seen.likely and dtype != "int64")

    def shares_out(self) -> bool:
        """Return whether ranks share out some array."""
        return any(one.spec.mesh.axes for one in self.scope.declared.values())

    def copy(self, operand: Value, dtype: str, order: str, *, always: bool) -> Value:
        """Return a copy, or the operand itself where nothing about it has to change.

        What may share the memory of its operand, the caller of this has to find out.
        """
        own = self.type_of(operand).dtype
        copied = Copy(operand, dtype or own)
        if always or copied.dtype != own:
            return copied
        if not isinstance(operand, Read) or order == "K":
            return operand
        whole_array = is_whole(operand.region, self.scope.array_type(operand.array).extents)
        declared = self.scope.declared.get(operand.array)
        lies = declared is not None and declared.spec.order == order
        return operand if whole_array and lies else copied

    def fill(
        self, value: str, shape: Shape | None, dtype: str, order: str, like: Value | None = None
    ) -> Value:
        """Return a new array."""
        assert shape is not None
        if like is not None and not isinstance(like, Read | Transpose | Expand | Flip):
            raise NotUnderstood("an array like one that is computed for its shape alone")
        return Fill(value, shape, dtype)

    def vector(self, made: Fill, extent: Expr | None) -> Value:
        """Return a new vector, which takes as long to make as one of a constant."""
        if extent is None:
            extent = counted([self._number(one) for one in made.of])
        if extent is None:
            raise NotUnderstood("a vector of a length that is not known")
        return replace(made, shape=(extent,))

    def _number(self, value: Value) -> Value:
        """Return the number that a name stands for, if it is bound once."""
        name = value.text if isinstance(value, Scalar) else ""
        once = self.scope.times_bound(name) <= 1
        return self.scope.started.get(name, value) if once else value

    def between(self, operand: Value, axis: int, before: int, behind: int) -> Value:
        """Return a part of an array that has a name."""
        if not isinstance(operand, Read):
            raise NotUnderstood("a part of something other than an array that has a name")
        along = [d for d, part in enumerate(operand.region) if not isinstance(part, Point)][axis]
        part = operand.region[along]
        if not isinstance(part, Range) or part.high == part.low:
            raise NotUnderstood("a part of nothing, or of a slice with a step")
        inner = Range(part.low + before, part.high - behind)
        region = (*operand.region[:along], inner, *operand.region[along + 1 :])
        return Read(operand.array, region)

    def flat(self, operand: Value) -> Value:
        """Return an array as a vector."""
        found = self.type_of(operand)
        return Called("ravel", (operand,), (count_of(found.extents),), found.dtype)

    def misfit(self, conflict: ShapeConflict) -> NotUnderstood:
        """Return the problem that operands do not fit."""
        return self.scope.misfit(conflict)

    def joined(self, name: str, parts: Known, axis: int) -> Value:
        """Return arrays joined into one."""
        items = self.items(parts)
        if not items:
            raise NotUnderstood(f"np.{name} of something that is not written out")
        values = tuple(self.array(item, name) for item in items)
        types = [self.type_of(value) for value in values]
        try:
            broadcast([_beside(name, one.extents, axis) for one in types])
            shape = joined(name, [one.extents for one in types], axis)
        except ShapeConflict as error:
            raise self.scope.misfit(error) from error
        if shape is None:
            raise NotUnderstood(f"np.{name} of arrays of these shapes")
        dtype = reduce(promote, [one.dtype for one in types])
        return Called(name, values, shape, dtype, (("axis", str(axis)),))


def listed(node: cst.BaseExpression, scope: Scope, name: str = "array") -> Value:
    """Return the array that NumPy makes of numbers that are written out, or a list of these."""
    values: list[Value] = []

    def shape_of(part: cst.BaseExpression) -> tuple[int, ...]:
        if not isinstance(part, cst.List | cst.Tuple):
            values.append(value_of(part, scope))
            if scope.type_of(values[-1]).extents:
                raise NotUnderstood("an array of arrays that are written out")
            return ()
        inner = {shape_of(element.value) for element in part.elements}
        if len(inner) > 1:
            raise NotUnderstood("an array of rows of several lengths")
        return (len(part.elements), *(inner.pop() if inner else ()))

    extents = tuple(map(num, shape_of(node)))
    if not values:
        return Fill("", extents, "float64")
    dtype = reduce(promote, [strong(scope.type_of(value).dtype) for value in values])
    written = cst.Module([]).code_for_node(node)
    return Called(name, tuple(values), extents, dtype, (("object", written),))


def _reshaped(node: cst.Call, scope: Scope) -> Value:
    """Return what ``x.reshape(n, -1)`` or ``x.flatten()`` makes of an array."""
    door = _door(scope)
    assert isinstance(node.func, cst.Attribute)
    operand = door.array(node.func.value, "reshape")
    flat = door.flat(operand)
    found = scope.type_of(flat)
    (count,) = found.extents
    if node.func.attr.value == "flatten":
        return Copy(flat, found.dtype)
    if any(argument.keyword or argument.star for argument in node.args) or not node.args:
        raise NotUnderstood("a shape that is not written out")
    nodes = [argument.value for argument in node.args]
    shape = [size for one in nodes for size in door.shape(one)]
    open_ = [place for place, size in enumerate(shape) if size == num(-1)]
    if len(open_) == 1:
        others = count_of(tuple(size for size in shape if size != num(-1)))
        shape[open_[0]] = count if others == ONE else floor_div(count, others)
    elif open_:
        raise NotUnderstood("a shape of which two extents are open")
    stated = ", ".join(map(door.written, nodes))
    return Called("reshape", (operand,), tuple(shape), found.dtype, (("shape", f"({stated})"),))


def _beside(name: str, shape: Shape, axis: int) -> Shape:
    """Return what has to be alike of arrays that are joined."""
    if name == "stack" or len(shape) < 2:
        return shape if name in ("stack", "vstack", "column_stack") else ()
    along = {"vstack": 0, "hstack": 1, "column_stack": 1}.get(name, axis % len(shape))
    return reduced(shape, along)


def _has_known_type(base: Scalar, exponent: Scalar) -> bool:
    """Return whether the type of a power of numbers follows from the types of both.

    A whole number to a negative power is a fraction, and a negative one to a fraction is complex.
    """
    if exponent.dtype == PYTHON_INTEGER:
        whole_base = base.dtype == PYTHON_INTEGER or kind_of_or_none(base.dtype) is Kind.INTEGER
        # to a negative power, of NumPy's whole numbers there is none
        written = exponent.text.removeprefix("-" * base.text.isdigit())
        return not whole_base or written.isdigit()
    return base.dtype != PYTHON_INTEGER or base.text.isdigit()


def value_of(node: Known, scope: Scope) -> Value:
    """Return the value of an expression over arrays and numbers.

    Raises
    ------
    NotUnderstood
        For anything outside the understood language.
    """
    if isinstance(node, Expr):
        return Scalar(to_text(node), PYTHON_INTEGER)
    value = _value_of(node, scope)
    item = isinstance(node, cst.Name) and "[" in node.value
    if not isinstance(node, cst.CSTNode) or item or node in scope.elsewhere:
        # an item of a tuple that was seen stands nowhere, and what a function does elsewhere
        return replace(value, span=None) if isinstance(value, Scalar) else value
    if not isinstance(value, Scalar):
        # a node that was put together stands nowhere
        with suppress(KeyError):
            scope.written[scope.span(node)] = value
        return value
    return Scalar(value.text, value.dtype, scope.span(node))


def _value_of(node: Known, scope: Scope) -> Value:
    match node:
        case cst.Name(value=name):
            return _named(name, scope)
        case cst.Integer():
            return Scalar(node.value, PYTHON_INTEGER)
        case cst.Float():
            return Scalar(node.value, PYTHON_FLOAT)
        case cst.Imaginary():
            return Scalar(node.value, PYTHON_COMPLEX)
        case cst.UnaryOperation(operator=cst.Not()):
            return _truth("logical_not", [value_of(node.expression, scope)], scope)
        case cst.UnaryOperation():
            return _signed(node, scope)
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            left, right = value_of(node.left, scope), value_of(node.right, scope)
            return Calls(_door(scope)).product(left, right)
        case cst.BinaryOperation():
            return _operation(function_of(node.operator), (node.left, node.right), scope)
        case cst.Comparison():
            nodes = [node.left, *(part.comparator for part in node.comparisons)]
            made = [
                _operation(function_of(part.operator), pair, scope)
                for part, pair in zip(node.comparisons, pairwise(nodes), strict=True)
            ]
            return made[0] if len(made) == 1 else _truth("logical_and", made, scope)
        case cst.BooleanOperation():
            operation = "logical_and" if isinstance(node.operator, cst.And) else "logical_or"
            sides = [value_of(node.left, scope), value_of(node.right, scope)]
            return _truth(operation, sides, scope)
        case cst.Subscript():
            return _subscripted(unchained(node, scope), scope.span(node), scope)
        case cst.IfExp():
            holds = decided(node.test, scope)
            if holds is not None:
                return value_of(node.body if holds else node.orelse, scope)
            return _chosen(node, scope)
        case cst.Call():
            return _call(node, scope)
        case cst.Attribute():
            return _attribute(node, scope)
    raise NotUnderstood("this kind of expression is not understood")


def _truth(operation: str, parts: Sequence[Value], scope: Scope) -> Value:
    """Return what joins truth values of single elements."""
    if any(scope.type_of(part) != ArrayType("bool", ()) for part in parts):
        raise NotUnderstood("the truth of something other than a comparison of numbers")
    made = parts[0] if len(parts) > 1 else Elementwise(operation, tuple(parts))
    for part in parts[1:]:
        made = Elementwise(operation, (made, part))
    return made


def _signed(node: cst.UnaryOperation, scope: Scope) -> Value:
    """Return what one of Python's operators before an operand makes of it."""
    operation, operand = function_of(node.operator), value_of(node.expression, scope)
    if operation is None or (operation == "invert" and isinstance(operand, Scalar)):
        raise NotUnderstood("this operator is not understood on numbers")
    if operation == "positive":
        known = isinstance(operand, Scalar)
        return operand if known else Copy(operand, scope.type_of(operand).dtype)
    if isinstance(operand, Scalar):
        return Scalar("-" + operand.text, operand.dtype)
    return Elementwise(operation, (operand,))


def whole_read(name: str, scope: Scope) -> Read:
    """Return all of what an array's name denotes."""
    return scope.select(name, whole(scope.extents_of(name)))


def _named(name: str, scope: Scope) -> Value:
    if name in scope.picked:
        return scope.picked[name]
    if scope.is_array(name):
        return whole_read(name, scope)
    if name in scope.elements:
        return scope.elements[name]
    if name in scope.scalars:
        return Scalar(name, PYTHON_INTEGER)
    if name in scope.numbers:
        return Scalar(name, scope.numbers[name])
    if name in ("True", "False"):
        return Scalar(name, "bool")
    if scope.imports.get(name) in _CONSTANTS:
        return Scalar(scope.imports[name], PYTHON_FLOAT)
    raise scope.unknown(name)


_CONSTANTS = frozenset(
    f"{module}.{name}"
    for module in ("numpy", "math", "cmath")
    for name in ("pi", "e", "inf", "nan")
)


def _attribute(node: cst.Attribute, scope: Scope) -> Value:
    full = resolve(node, scope.imports)
    if full in _CONSTANTS:
        return Scalar(full, PYTHON_FLOAT)
    if node.attr.value == "T":
        operand = value_of(node.value, scope)
        dimensions = len(scope.type_of(operand).extents)
        return Transpose(operand, tuple(reversed(range(dimensions))))
    if node.attr.value in ("real", "imag") and known(node, scope) is node:
        operand = value_of(node.value, scope)
        found = scope.type_of(operand)
        if kind_of_or_none(found.dtype) is Kind.COMPLEX:
            part = reduced_dtype("spread", found.dtype)
            return Called(node.attr.value, (operand,), found.extents, part)
        if node.attr.value == "real" and kind_of_or_none(found.dtype) is not None:
            return operand
    return _number(node, scope, f"attribute `{node.attr.value}` is not understood")


def _number(node: cst.BaseExpression, scope: Scope, otherwise: str) -> Value:
    """Return what stands for an expression in a written-out tuple or a shape, and whole numbers."""
    found = known(node, scope)
    if found is node or isinstance(found, tuple):
        raise NotUnderstood(otherwise)
    return value_of(found, scope)


def _operation(operation: str | None, nodes: tuple[cst.BaseExpression, ...], scope: Scope) -> Value:
    if operation is None:
        raise NotUnderstood("this operator is not understood on arrays")
    return _door(scope).made(Elementwise(operation, tuple(value_of(n, scope) for n in nodes)))


def _chosen(node: cst.IfExp, scope: Scope) -> Value:
    """Return one of two numbers, as elements of arrays decide: both count as computed."""
    made = _operation("where", (node.test, node.body, node.orelse), scope)
    if isinstance(made, Scalar) or scope.type_of(made).extents or not scope.by_element:
        raise NotUnderstood("a choice between two values by something other than elements")
    if isinstance(made, Elementwise):
        condition, *ways = made.operands
        return replace(made, operands=(as_mask(condition, scope), *ways))
    return made


def as_mask(value: Value, scope: Scope) -> Value:
    """Return what decides a choice as booleans: a number does so where it is not 0."""
    if isinstance(value, Scalar) or scope.type_of(value).dtype == "bool":
        return value
    return Elementwise("not_equal", (value, Scalar("0", PYTHON_INTEGER)))


def unchained(node: cst.Subscript, scope: Scope) -> cst.Subscript:
    """Return ``a[i, j]`` for ``a[i][j]`` of an array, whose rows are views of it."""
    if not isinstance(node.value, cst.Subscript):
        return node
    row = unchained(node.value, scope)
    of_array = isinstance(row.value, cst.Name) and scope.is_array(row.value.value)
    if not of_array or not all(_is_place(element, scope) for element in row.slice):
        return node
    return node.with_changes(value=row.value, slice=[*row.slice, *node.slice])


def _is_place(element: cst.SubscriptElement, scope: Scope) -> bool:
    """Return whether an index is a single whole number."""
    found = _index([element], scope)
    if found is None or found[1].extents:
        return False
    return kind_of_or_none(strong(found[1].dtype)) is Kind.INTEGER


def _subscripted(node: cst.Subscript, span: Span, scope: Scope) -> Value:
    if isinstance(node.value, cst.Name) and scope.is_array(node.value.value):
        name = node.value.value
        extents = scope.extents_of(name)
        places = _places(node.slice, scope)
        if places is not None and len(extents) == 1:
            return Gather(whole_read(name, scope), places)
        try:
            found = selection(node.slice, extents, scope)
        except NotUnderstood:
            part = masked_part(node, scope)
            if part is not None:
                return _masked(*part, span, scope)
            made: Value | None = _chosen_along(name, node, span, scope)
            made = made or _crossed(name, node.slice, scope)
            made = made or _between(name, node.slice, scope) or _gathered(name, node.slice, scope)
            if made is None:
                raise
            return made
        return _selected(scope.select(name, found.region), found, scope)
    if known(node, scope) is not node:
        return _number(node, scope, "a tuple")
    single = len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index)
    match node:
        case cst.Subscript(cst.Name(name), [cst.SubscriptElement(cst.Index(index))]) if (
            name in scope.listed and (at := whole_number(known(index, scope))) is not None
        ):
            return Scalar(f"{name}[{at}]", scope.listed[name][1])
        case cst.Subscript(cst.Call() as call, [cst.SubscriptElement(cst.Index(cst.Integer("0")))]):
            places = _where_true(call, ("numpy.where", "numpy.nonzero"), scope)
            if places is not None:
                return places
            results = several_of(call, scope) or ()
            # a result that is alone has a first element
            if len(results) > 1:
                return results[0]
    listed = sorted_list(node.value, scope) if single else None
    inner = value_of(node.value, scope) if listed is None else listed
    extents = scope.type_of(inner).extents
    mask = mask_within(node, inner, scope)
    if mask is not None:
        return _masked(inner, mask, span, scope)
    found = selection(node.slice, extents, scope)
    if not is_whole(found.region, extents):
        if base_of(inner) is not None or isinstance(inner, Fill):
            raise NotUnderstood("a subscript of an expression")
        inner = Part(inner, found.region)
    return _selected(inner, found, scope)


def sorted_list(node: cst.BaseExpression, scope: Scope) -> Value | None:
    """Return the list that ``sorted(x)`` makes of a vector, of which single items are taken.

    A list is no array where it is added to, or multiplied; None for any other expression.
    """
    match node:
        case cst.Call(cst.Name(value="sorted"), [cst.Arg(value=given, keyword=None, star="")]):
            if not scope.not_builtin("sorted"):
                value = Calls(_door(scope)).of_python("sorted", value_of(given, scope))
                scope.written[scope.span(node)] = value
                return value
    return None


def _selected(value: Value, found: Selection, scope: Scope) -> Value:
    """Return a value with axes reversed and put in."""
    for axis in found.flipped:
        value = _door(scope).made(Flip(value, axis))
    return reduce(Expand, found.expanded, value)


def _masked(value: Value, mask: Value, span: Span, scope: Scope) -> Chosen:
    """Return what a mask chooses of an array.

    How many that are stands for itself, as long as the mask holds the same: a share of them that
    nothing tells, named by the line that first chose by it.
    """
    known = scope.counts.get(mask)
    if known is None:
        share = chance(span.start_line)
        known = scope.counts[mask] = share * count_of(scope.type_of(mask).extents)
    return Chosen(value, mask, known)


def _chosen_along(name: str, node: cst.Subscript, span: Span, scope: Scope) -> Value | None:
    """Return what a mask chooses along a later axis: ``x[:, mask]`` is ``x.T[mask].T``."""
    axis, dimensions = len(node.slice) - 1, len(scope.extents_of(name))
    if not 0 < axis < dimensions or not all(map(_is_all, node.slice[:-1])):
        return None
    rest = [n for n in range(dimensions) if n != axis]
    turned = Transpose(whole_read(name, scope), (axis, *rest))
    mask = mask_within(node.with_changes(slice=node.slice[-1:]), turned, scope)
    if mask is None or len(scope.type_of(mask).extents) > 1:
        return None
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(rest) + 1))
    return Transpose(_masked(turned, mask, span, scope), back)


def _is_all(element: cst.SubscriptElement) -> bool:
    """Return whether an axis is kept as it is: ``:``."""
    match element.slice:
        case cst.Slice(lower=None, upper=None, step=None):
            return True
    return False


def _between(name: str, elements: Sequence[cst.SubscriptElement], scope: Scope) -> Chosen | None:
    """Return a row of ``x[p[i]:p[i + 1]]``, which is as long as rows are in the mean."""
    match elements:
        case [cst.SubscriptElement(cst.Slice(cst.BaseExpression() as low, high, step=None))]:
            match value_of(low, scope), high and value_of(high, scope):
                case Read(starts, (Point(at),)) as first, Read(ends, (Point(then),)) as end:
                    extent, pointers = scope.extents_of(name)[0], scope.extents_of(starts)[0]
                    whole_numbers = kind_of_or_none(scope.type_of(end).dtype) is Kind.INTEGER
                    if whole_numbers and starts == ends and then - at == ONE:
                        mask = Called("between", (first, end), (extent,), "bool")
                        return Chosen(whole_read(name, scope), mask, extent / pointers)
    return None


def _index(
    elements: Sequence[cst.SubscriptElement], scope: Scope
) -> tuple[Value, ArrayType] | None:
    """Return the only index of a subscript with its type; None where it is no single value."""
    if len(elements) != 1 or not isinstance(elements[0].slice, cst.Index):
        return None
    try:
        value = value_of(elements[0].slice.value, scope)
        return value, scope.type_of(value)
    except NotUnderstood:
        return None


def mask_within(node: cst.Subscript, value: Value, scope: Scope) -> Value | None:
    """Return the truth values that choose elements, or rows, of an array; None of none."""
    index, found = _index(node.slice, scope) or (None, None)
    extents = scope.type_of(value).extents
    rank = 0 if found is None or found.dtype != "bool" else len(found.extents)
    if found is None or not 1 <= rank <= len(extents):
        return None
    pairs = zip(found.extents, extents, strict=False)
    misfits = [pair for pair in pairs if pair[0] != pair[1]]
    scope.misfits += misfits
    return None if misfits else index


def masked_part(node: cst.Subscript, scope: Scope) -> tuple[Read, Value] | None:
    """Return a part of an array, and the truth values that choose from its first axes.

    ``a[i, mask]`` is a part of ``a[i]``, and ``a[mask, 0]`` of ``a[:, 0]``.
    """
    if not isinstance(node.value, cst.Name) or not scope.is_array(node.value.value):
        return None
    name, entries = node.value.value, [*node.slice]
    types = [_index([one], scope) for one in entries]
    at = [n for n, one in enumerate(types) if one is not None and one[1].dtype == "bool"]
    if len(at) != 1:
        return None
    place, chooses = whole_read(name, scope), entries[at[0]]
    if len(entries) > 1:
        entries[at[0]] = cst.SubscriptElement(cst.Slice(None, None))
        try:
            part = selection(entries, scope.extents_of(name), scope)
        except NotUnderstood:
            return None
        before = all(isinstance(one, Point) for one in part.region[: at[0]])
        mask = types[at[0]]
        if part.flipped or part.expanded or not before or mask is None or len(mask[1].extents) > 1:
            return None
        place = scope.select(name, part.region)
    index = mask_within(node.with_changes(slice=[chooses]), place, scope)
    return None if index is None else (place, index)


def places_in(
    elements: Sequence[cst.SubscriptElement], extents: tuple[Expr, ...], scope: Scope
) -> tuple[list[tuple[int, Value]], tuple[Subscript, ...]] | None:
    """Return what of a subscript only the data know, by axis, and the region that the rest is.

    None where the program states all of it, or where it is none.
    """
    found: list[tuple[int, Value]] = []
    stated: list[cst.SubscriptElement] = []
    for axis, element in enumerate(elements):
        index = _index([element], scope)
        if index is not None and _is_of_data(index[0], scope):
            if kind_of_or_none(strong(index[1].dtype)) is not Kind.INTEGER:
                return None
            found.append((axis, index[0]))
            element = cst.SubscriptElement(slice=cst.Slice(lower=None, upper=None))
        stated.append(element)
    if not found or len(elements) > len(extents):
        return None
    region = selection(stated, extents, scope)
    if region.flipped or region.expanded or len(region.region) != len(extents):
        return None
    return found, region.region


def _is_of_data(index: Value, scope: Scope) -> bool:
    """Return whether only the data know an index, be it computed of a number that has a name."""
    if not isinstance(index, Scalar):
        return True
    computed = scope.numbers.keys() - scope.scalars.keys()
    return any(map(scope.times_bound, computed.intersection(re.findall(IDENTIFIER, index.text))))


def _gathered(name: str, elements: Sequence[cst.SubscriptElement], scope: Scope) -> Gather | None:
    """Return what an array has at places of which only the data know some."""
    found = places_in(elements, scope.extents_of(name), scope)
    if found is None:
        return None
    places, region = found
    kept = [axis for axis, part in enumerate(region) if not isinstance(part, Point)]
    if [axis for axis, _ in places] != kept[: len(places)]:
        return None
    made = Gather(scope.select(name, region), places[0][1], tuple(one for _, one in places[1:]))
    scope.type_of(made)
    return made


def _crossed(name: str, elements: Sequence[cst.SubscriptElement], scope: Scope) -> Gather | None:
    """Return the rows and columns of ``x[np.ix_(rows, columns)]``; None for other subscripts."""
    match elements:
        case [cst.SubscriptElement(cst.Index(cst.Call(func, [rows, columns])))] if (
            resolve(func, scope.imports) == "numpy.ix_"
        ):
            pass
        case _:
            return None
    sides: list[Value] = []
    for side in (rows, columns):
        value = value_of(side.value, scope)
        found = scope.type_of(value)
        if len(found.extents) != 1 or side.keyword or side.star:
            raise NotUnderstood("np.ix_ of something other than two vectors")
        if found.dtype == "bool":
            count = _masked(value, value, scope.span(side.value), scope).count
            value = Called("flatnonzero", (value,), (count,), "int64")
        sides.append(value)
    made = Gather(whole_read(name, scope), Expand(sides[0], 1), (sides[1],))
    scope.type_of(made)
    return made


def _places(elements: Sequence[cst.SubscriptElement], scope: Scope) -> Value | None:
    """Return the array of places of ``x[places]``; None where it is another subscript."""
    node = getattr(elements[0].slice, "value", None)
    if len(elements) != 1 or not isinstance(node, cst.Name) or not scope.is_array(node.value):
        return None
    places = whole_read(node.value, scope)
    found = scope.type_of(places)
    if found.dtype == "bool":
        return None
    if len(found.extents) != 1 or kind_of_or_none(found.dtype) is not Kind.INTEGER:
        raise NotUnderstood("an array as subscript that is no vector of whole numbers")
    return places


def _door(scope: Scope) -> KernelDoor:
    return KernelDoor(scope, lambda node: value_of(node, scope))


def several_of(node: cst.BaseExpression, scope: Scope) -> tuple[Value, ...] | None:
    """Return the results of a function that has several; None for any other expression."""
    if (made := _grid(node, scope)) is not None:
        return made
    if not isinstance(node, cst.Call):
        return None
    name = (resolve(node.func, scope.imports) or "").removeprefix("numpy.")
    row = FUNCTIONS.get(name)
    if row is None or len(row.dtypes) < 2:
        return None
    return Calls(_door(scope)).several(name, _given(node.args))


def _grid(node: cst.BaseExpression, scope: Scope) -> tuple[Value, ...] | None:
    """Return the indices of a grid along each of its axes; None for any other expression."""
    match node:
        case cst.Call(func, [cst.Arg(value=shape, keyword=None, star="")]):
            name, extents, dtype = resolve(func, scope.imports), None, "int64"
            if name == "numpy.indices":
                extents = _door(scope).shape(shape)
        case cst.Subscript(value, [_, _, *_]) if resolve(value, scope.imports) == "numpy.mgrid":
            name, axes = "numpy.mgrid", [_of_axis(one.slice, scope) for one in node.slice]
            extents = tuple(extent for extent, _ in axes)
            dtype = reduce(promote, (found for _, found in axes))
        case _:
            return None
    if extents is None or name is None:
        return None
    stated = (("of", cst.Module([]).code_for_node(node)),)
    name = name.removeprefix("numpy.")
    return tuple(
        Called(f"{name}[{axis}]", (), extents, dtype, stated) for axis in range(len(extents))
    )


def _of_axis(node: cst.BaseSlice, scope: Scope) -> tuple[Expr, str]:
    """Return how many places a slice of ``np.mgrid`` has, and their type."""
    match node:
        case cst.Slice(cst.BaseExpression() as low, cst.BaseExpression() as high, step=None):
            return scalar(high, scope) - scalar(low, scope), "int64"
        case cst.Slice(step=cst.Imaginary(value=count)):
            return num(int(float(count[:-1]))), "float64"
        case cst.Slice(step=cst.BinaryOperation(count, cst.Multiply(), cst.Imaginary("1j"))):
            return scalar(count, scope), "float64"
    raise NotUnderstood("a slice of np.mgrid with a step")


def _where_true(node: cst.Call, functions: Collection[str], scope: Scope) -> Value | None:
    """Return the places of what holds, or each value once: as many as a mask would choose.

    None for a call of other functions.
    """
    full = resolve(node.func, scope.imports) or ""
    if full not in functions or len(node.args) != 1 or node.args[0].keyword or node.args[0].star:
        return None
    name = full.removeprefix("numpy.")
    operand = value_of(node.args[0].value, scope)
    extents = scope.type_of(operand).extents
    flat = len(extents) == 1 or name in ("unique", "flatnonzero")
    if not extents or not (flat or name == "argwhere"):
        return None
    dtype = strong(scope.type_of(operand).dtype) if name == "unique" else "int64"
    # there are as many as the truth of each has, or as hold for the first time; labels are few
    truths = Called(name, (operand,), extents, dtype) if name == "unique" else operand
    if name == "unique" and not dtype.startswith("float"):
        scope.counts.setdefault(truths, trips(scope.span(node).start_line))
    count = _masked(operand, truths, scope.span(node), scope).count
    if any(one != truths and known == count for one, known in scope.counts.items()):
        raise NotUnderstood("several lengths in one line that only the data know")
    shape = (count, num(len(extents))) if name == "argwhere" else (count,)
    return Called("flatnonzero" if name in ("where", "nonzero") else name, (operand,), shape, dtype)


def _applied_along(node: cst.Call, scope: Scope) -> Value:
    """Return what one of NumPy's reductions gives that Python calls for each vector of an array."""
    function, axis, array = (argument.value for argument in node.args)
    name = (resolve(function, scope.imports) or "").removeprefix("numpy.")
    row, calls = REDUCTIONS.get(name), Calls(_door(scope))
    if row is None or any(argument.keyword or argument.star for argument in node.args):
        raise NotUnderstood("np.apply_along_axis of another function than a reduction")
    reduced = calls.function(name, [Given(array), Given(axis, "axis")])
    found, along = scope.type_of(reduced), whole_number(known(axis, scope))
    operand = value_of(array, scope)
    along = (along or 0) % len(scope.type_of(operand).extents)
    stated = (("operation", row.operation), ("axis", str(along)))
    return Called("apply_along_axis", (operand,), found.extents, found.dtype, stated)


def drawn(node: cst.BaseExpression, scope: Scope) -> Called | None:
    """Return the random numbers that a statement draws; None for any other expression.

    A draw changes its generator. It is read as all that a statement does, which is neither done
    twice nor left out: no two of them are equal.
    """
    if not isinstance(node, cst.Call):
        return None
    full = resolve(node.func, scope.imports) or ""
    of, _, name = full.rpartition(".")
    certain, asked, told = of == "numpy.random", False, ""
    if not certain and isinstance(node.func, cst.Attribute):
        owner, name = node.func.value, node.func.attr.value
        told = dotted(owner) or ""
        certain = told in scope.generators or is_generator(owner, scope)
        # what is asked for random numbers, and nothing else is known of, is such a generator
        drawing = name in DRAWS or (name == "choice" and len(node.args) > 1)
        asked = drawing and bool(told) and not full and not scope.is_known(told)
    if not (asked or certain):
        return None
    made = Calls(_door(scope)).drawn(name, _given(node.args))
    by = "" if certain else told
    return replace(made, stated=(("drawn", str(scope.span(node))), ("taken for a generator", by)))


def note_drawn(name: str, made: Called, scope: Scope) -> None:
    """Have edits say what a name has to be, where only a guess tells who draws it."""
    if dict(made.stated)["taken for a generator"]:
        scope.given.add(name)


def is_generator(node: cst.BaseExpression, scope: Scope) -> bool:
    """Return whether an expression makes a generator of random numbers."""
    made = resolve(node.func, scope.imports) if isinstance(node, cst.Call) else None
    return made in ("numpy.random.default_rng", "numpy.random.RandomState")


def _call(node: cst.Call, scope: Scope) -> Value:
    full = resolve(node.func, scope.imports)
    number = _converted(full or "", node, scope)
    if number is not None:
        return number
    if (places := _where_true(node, _OF_DATA, scope)) is not None:
        return places
    if full in FUNCTIONS:
        # those of SciPy have their whole names there
        return Calls(_door(scope)).function(full, _given(node.args))
    if full in OF_SHAPES:
        return _number(node, scope, "a shape that is not known")
    if full == "numpy.apply_along_axis" and len(node.args) == 3:
        return _applied_along(node, scope)
    if full is not None and full.startswith("numpy.") and not full.startswith("numpy.random."):
        return Calls(_door(scope)).function(full.removeprefix("numpy."), _given(node.args))
    method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    if method in ("reshape", "flatten") and full is None:
        return _reshaped(node, scope)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in METHODS:
        receiver = value_of(node.func.value, scope)
        if not isinstance(receiver, Scalar):
            return Calls(_door(scope)).method(node.func.attr.value, receiver, _given(node.args))
    if full is not None and full.startswith(("math.", "cmath.")):
        made = _of_math(full, node.args, scope)
        if made is not None:
            return made
    if isinstance(node.func, cst.Name) and not scope.not_builtin(node.func.value):
        if node.func.value == "len":
            return _number(node, scope, "a length that is not known")
        made = _builtin(node.func.value, node.args, scope)
        if made is not None:
            return made
    shown = scope.expanded(node)
    if shown is not None:
        return scope.results.get(node) or value_of(shown, scope)
    numbers = drawn(node, scope)
    if numbers is not None:
        # the statement goes on with what one before it draws
        span, found = scope.span(node), scope.type_of(numbers)
        name = f"drawn__{span.start_line}_{span.start_column}"
        if name not in {getattr(one, "name", "") for one in scope.pending}:
            note_drawn(name, numbers, scope)
            if found.extents:
                scope.bind_local(name, found)
                scope.pending.append(Bind(name, numbers, span))
            else:
                scope.bind_number(name, found.dtype)
                scope.pending.append(ScalarBind(name, numbers, span))
        return whole_read(name, scope) if found.extents else Scalar(name, found.dtype)
    called = dotted(node.func) or "this expression"
    raise NotUnderstood(f"the call of `{called}` is not understood")


_OF_DATA = frozenset({"numpy.flatnonzero", "numpy.argwhere", "numpy.unique"})
_PYTHONS = {"int": PYTHON_INTEGER, "float": PYTHON_FLOAT}


def _converted(full: str, node: cst.Call, scope: Scope) -> Value | None:
    """Return the number that ``np.float32(x)`` or ``float(x)`` makes of one; None for others."""
    if len(node.args) != 1 or node.args[0].keyword or node.args[0].star:
        return None
    named = isinstance(node.func, cst.Name) and not scope.not_builtin(node.func.value)
    python = _PYTHONS.get(dotted(node.func) or "") if named else None
    if python is None and not is_dtype(full.removeprefix("numpy.")):
        return None
    if python == PYTHON_FLOAT and isinstance(node.args[0].value, cst.SimpleString):
        return Scalar("float('inf')", PYTHON_FLOAT)
    operand = value_of(node.args[0].value, scope)
    if scope.type_of(operand).extents:
        raise NotUnderstood("a number made of a whole array")
    dtype = python or dtype_of(full.removeprefix("numpy.")).name
    if isinstance(operand, Scalar):
        return Scalar(f"{full or dotted(node.func)}({operand.text})", dtype)
    return Copy(operand, strong(dtype), of_python=python is not None)


def _of_math(full: str, given: Sequence[cst.Arg], scope: Scope) -> Value | None:
    """Return what a function of ``math``, or ``cmath``, gives of numbers; None for others."""
    if any(argument.keyword or argument.star for argument in given):
        return None
    parts = [value_of(argument.value, scope) for argument in given]
    numbers = [part.text for part in parts if isinstance(part, Scalar)]
    module, _, name = full.partition(".")
    if module == "cmath" and name not in OF_CMATH:
        return None
    if len(numbers) == len(parts) and module == "cmath":
        return Scalar(f"{full}({', '.join(numbers)})", PYTHON_COMPLEX)
    if len(numbers) == len(parts):
        dtype = "bool" if name.startswith("is") and name != "isqrt" else PYTHON_FLOAT
        dtype = PYTHON_INTEGER if name in WHOLE_OF_MATH else dtype
        return Scalar(f"{full}({', '.join(numbers)})", dtype)
    operation = OF_MATH.get(name)
    single = not any(scope.type_of(part).extents for part in parts)
    if operation is None or ROWS[operation].operands != len(parts) or not single:
        return None
    dtype = "float64" if module == "math" else "complex128"
    converted = (
        part if isinstance(part, Scalar) else Copy(part, dtype, of_python=True) for part in parts
    )
    made = Elementwise(operation, tuple(converted))
    return Copy(made, strong(PYTHON_INTEGER), of_python=True) if name in WHOLE_OF_MATH else made


_OF_VECTORS = ("sum", "max", "min")
_EXTREMES = {"min": "minimum", "max": "maximum"}


def _builtin(name: str, given: Sequence[cst.Arg], scope: Scope) -> Value | None:
    """Return the value of a call of a builtin function; None for those that are not read."""
    if any(argument.keyword or argument.star for argument in given):
        return None
    nodes = tuple(argument.value for argument in given)
    if name == "abs" and len(nodes) == 1:
        return _operation("absolute", nodes, scope)
    if name == "round" and len(nodes) == 1 and isinstance(one := value_of(nodes[0], scope), Scalar):
        return Scalar(f"round({one.text})", PYTHON_INTEGER)
    if name in _OF_VECTORS and len(nodes) == 1 and not isinstance(nodes[0], cst.BaseComp):
        operand = value_of(nodes[0], scope)
        return Calls(_door(scope)).of_python(name, operand)
    if name in _EXTREMES and len(nodes) > 1:
        parts = [value_of(node, scope) for node in nodes]
        if any(scope.type_of(part).extents for part in parts):
            raise NotUnderstood(f"`{name}` of whole arrays")
        return reduce(lambda a, b: _door(scope).made(Elementwise(_EXTREMES[name], (a, b))), parts)
    return None


def _given(arguments: Sequence[cst.Arg]) -> list[Given[Known]]:
    return [
        Given(one.value, None if one.keyword is None else one.keyword.value, bool(one.star))
        for one in arguments
    ]
