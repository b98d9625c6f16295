"""Array expressions of the source, as values of the intermediate form."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from advisor.dtypes import Kind, UnknownDtype, dtype_of
from advisor.frontend.names import dotted, resolve
from advisor.frontend.problems import NotUnderstood
from advisor.frontend.regions import is_new_axis, region, reversed_axis
from advisor.frontend.scalars import literal_int, scalar
from advisor.frontend.scope import Scope
from advisor.ir.shapes import (
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    ArrayType,
    ShapeConflict,
    describe,
    kind_of_or_none,
    whole,
)
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    PeriodicPad,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Transpose,
    Value,
)
from costdb.expr import Expr, num, to_text

_SAME_NAME = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "negative",
    "sqrt",
    "exp",
    "log",
    "log2",
    "sin",
    "cos",
    "tan",
    "tanh",
    "arctan",
    "absolute",
    "minimum",
    "maximum",
    "power",
    "square",
    "where",
    "floor_divide",
    "remainder",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
)
ELEMENTWISE = {
    **{name: name for name in _SAME_NAME},
    "true_divide": "divide",
    "abs": "absolute",
    "mod": "remainder",
}

OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
    cst.FloorDivide: "floor_divide",
    cst.Modulo: "remainder",
    cst.Power: "power",
    cst.BitAnd: "bitwise_and",
    cst.BitOr: "bitwise_or",
    cst.BitXor: "bitwise_xor",
    cst.LeftShift: "left_shift",
    cst.RightShift: "right_shift",
    cst.LessThan: "less",
    cst.LessThanEqual: "less_equal",
    cst.GreaterThan: "greater",
    cst.GreaterThanEqual: "greater_equal",
    cst.Equal: "equal",
    cst.NotEqual: "not_equal",
}
AUGMENTED: dict[type[cst.CSTNode], str] = {
    cst.AddAssign: "add",
    cst.SubtractAssign: "subtract",
    cst.MultiplyAssign: "multiply",
    cst.DivideAssign: "divide",
    cst.FloorDivideAssign: "floor_divide",
    cst.ModuloAssign: "remainder",
    cst.PowerAssign: "power",
    cst.BitAndAssign: "bitwise_and",
    cst.BitOrAssign: "bitwise_or",
    cst.BitXorAssign: "bitwise_xor",
}
SCANS = {"cumsum": "add", "cumprod": "multiply"}
REDUCTIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "mean": "add"}
METHODS = frozenset({"copy", "astype", "view"}) | SCANS.keys() | REDUCTIONS.keys()


def value_of(node: cst.BaseExpression, scope: Scope) -> Value:
    """Return the value of an expression over arrays and numbers.

    Raises
    ------
    NotUnderstood
        For anything outside the understood language.
    """
    match node:
        case cst.Name(value=name):
            return _named(name, scope)
        case cst.Integer():
            return Scalar(node.value, PYTHON_INTEGER)
        case cst.Float():
            return Scalar(node.value, PYTHON_FLOAT)
        case cst.UnaryOperation(operator=cst.Minus()):
            operand = value_of(node.expression, scope)
            if isinstance(operand, Scalar):
                return Scalar("-" + operand.text, operand.dtype)
            return Elementwise("negative", (operand,))
        case cst.UnaryOperation(operator=cst.Plus()):
            return value_of(node.expression, scope)
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return _product(node.left, node.right, scope)
        case cst.BinaryOperation():
            return _operation(OPERATORS.get(type(node.operator)), (node.left, node.right), scope)
        case cst.Comparison() if len(node.comparisons) == 1:
            other = node.comparisons[0]
            operation = OPERATORS.get(type(other.operator))
            return _operation(operation, (node.left, other.comparator), scope)
        case cst.Subscript():
            return _subscripted(node, scope)
        case cst.Call():
            return _call(node, scope)
        case cst.Attribute():
            return _attribute(node, scope)
    raise NotUnderstood("this kind of expression is not understood")


def type_of(value: Value, scope: Scope) -> ArrayType:
    """Return element type and shape of a value."""
    try:
        return describe(value, scope.array_type)
    except ShapeConflict as error:
        raise NotUnderstood(str(error)) from error
    except UnknownDtype as error:
        raise NotUnderstood(str(error)) from error


def whole_read(name: str, scope: Scope) -> Read:
    """Return all of what an array's name denotes."""
    return scope.select(name, whole(scope.extents_of(name)))


def _named(name: str, scope: Scope) -> Value:
    if scope.is_array(name):
        return whole_read(name, scope)
    if name in scope.scalars:
        return Scalar(name, PYTHON_INTEGER)
    if name in scope.numbers:
        return Scalar(name, scope.numbers[name])
    raise NotUnderstood(f"`{name}` is not known here")


def _attribute(node: cst.Attribute, scope: Scope) -> Value:
    full = resolve(node, dict(scope.imports))
    if full in ("numpy.pi", "numpy.e", "numpy.inf", "math.pi", "math.e"):
        return Scalar(full, PYTHON_FLOAT)
    if node.attr.value == "T":
        return _transposed(value_of(node.value, scope), None, scope)
    if dotted(node) is not None and node.attr.value == "size":
        return Scalar(to_text(scalar(node, scope)), PYTHON_INTEGER)
    raise NotUnderstood(f"attribute `{node.attr.value}` is not understood")


def _operation(operation: str | None, nodes: tuple[cst.BaseExpression, ...], scope: Scope) -> Value:
    if operation is None:
        raise NotUnderstood("this operator is not understood on arrays")
    parts = tuple(value_of(node, scope) for node in nodes)
    if all(isinstance(part, Scalar) for part in parts):
        literal = PYTHON_FLOAT if operation == "divide" else PYTHON_INTEGER
        if any(isinstance(part, Scalar) and part.dtype == PYTHON_FLOAT for part in parts):
            literal = PYTHON_FLOAT
        texts = " ? ".join(part.text for part in parts if isinstance(part, Scalar))
        return Scalar(f"({texts})", literal)
    made = Elementwise(operation, parts)
    type_of(made, scope)  # shapes must agree
    return made


def _subscripted(node: cst.Subscript, scope: Scope) -> Value:
    if isinstance(node.value, cst.Name) and scope.is_array(node.value.value):
        name = node.value.value
        extents = scope.extents_of(name)
        axis = reversed_axis(node.slice, len(extents))
        if axis is not None:
            return Flip(whole_read(name, scope), axis)
        places = _places(node.slice, scope)
        if places is not None and len(extents) == 1:
            return Gather(whole_read(name, scope), places)
        kept = [element for element in node.slice if not is_new_axis(element)]
        selected: Value = scope.select(name, region(kept, extents, scope))
        return _expanded(selected, node.slice, scope)
    inner = value_of(node.value, scope)
    if node.slice and all(_is_plain_or_new(element) for element in node.slice):
        return _expanded(inner, node.slice, scope)
    axis = reversed_axis(node.slice, len(type_of(inner, scope).extents))
    if axis is None:
        raise NotUnderstood("a subscript of an expression")
    return _flip(inner, axis)


def _places(elements: Sequence[cst.SubscriptElement], scope: Scope) -> Value | None:
    """Return the array of places of ``x[places]``; None where it is another subscript."""
    if len(elements) != 1 or not isinstance(elements[0].slice, cst.Index):
        return None
    node = elements[0].slice.value
    if not isinstance(node, cst.Name) or not scope.is_array(node.value):
        return None
    places = whole_read(node.value, scope)
    found = type_of(places, scope)
    if len(found.extents) != 1 or kind_of_or_none(found.dtype) is not Kind.INTEGER:
        raise NotUnderstood("an array as subscript that is no vector of whole numbers")
    return places


def _is_plain_or_new(element: cst.SubscriptElement) -> bool:
    entry = element.slice
    plain = isinstance(entry, cst.Slice) and not (entry.lower or entry.upper or entry.step)
    return plain or is_new_axis(element)


def _expanded(value: Value, elements: Sequence[cst.SubscriptElement], scope: Scope) -> Value:
    """Put in the new axes of a subscript, by their places among the dimensions that remain."""
    if not any(map(is_new_axis, elements)):
        return value
    position = 0
    for element in elements:
        entry = element.slice
        if isinstance(entry, cst.Index) and isinstance(entry.value, cst.Ellipsis):
            raise NotUnderstood("an ellipsis beside a new axis")
        if is_new_axis(element):
            value = Expand(value, position)
        if is_new_axis(element) or isinstance(entry, cst.Slice):
            position += 1
    return value


def _product(left: cst.BaseExpression, right: cst.BaseExpression, scope: Scope) -> MatMul:
    made = MatMul(value_of(left, scope), value_of(right, scope))
    type_of(made, scope)  # shapes must agree
    return made


def _transposed(operand: Value, axes: cst.BaseExpression | None, scope: Scope) -> Value:
    dimensions = len(type_of(operand, scope).extents)
    if axes is None:
        return Transpose(operand, tuple(reversed(range(dimensions))))
    if not isinstance(axes, cst.Tuple):
        raise NotUnderstood("the axes of a transposition are no literal tuple")
    order = tuple(_axis(element.value, dimensions, "transpose") for element in axes.elements)
    if sorted(order) != list(range(dimensions)):
        raise NotUnderstood("the axes of a transposition are no permutation")
    return Transpose(operand, order)


def _fourier(name: str, arguments: list[cst.Arg], scope: Scope) -> Value:
    _only(arguments, {"axis"}, name)
    operand = value_of(arguments[0].value, scope)
    found = type_of(operand, scope)
    node = _keyword(arguments, "axis")
    last = len(found.extents) - 1
    axis = last if node is None else _axis(node, len(found.extents), name)
    if len(arguments) > 2 or (len(arguments) == 2 and node is None):
        raise NotUnderstood("a Fourier transform of another length")
    if kind_of_or_none(found.dtype) is None:
        raise NotUnderstood("a Fourier transform of something of unknown type")
    single = found.dtype in ("float16", "float32", "complex64")
    if single:
        # NumPy 2 keeps single precision, NumPy 1 does not
        raise NotUnderstood("a Fourier transform in single precision")
    return Fourier(operand, axis, "complex128", inverse=name == "ifft")


def _flip(inner: Value, axis: int) -> Value:
    """A scan of a reversed array, reversed back, is a scan from the other end."""
    if isinstance(inner, Scan) and inner.axis == axis and not inner.reverse:
        operand = inner.operand
        if isinstance(operand, Flip) and operand.axis == axis:
            return Scan(operand.operand, axis, inner.operation, inner.dtype, reverse=True)
    return Flip(inner, axis)


def _call(node: cst.Call, scope: Scope) -> Value:
    full = resolve(node.func, dict(scope.imports))
    if full is not None and full.startswith("numpy."):
        return _function(full.removeprefix("numpy."), node, scope)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in METHODS:
        receiver = value_of(node.func.value, scope)
        if not isinstance(receiver, Scalar):
            return _method(node.func.attr.value, receiver, list(node.args), scope)
    if full in ("math.sqrt", "math.exp", "math.log", "math.sin", "math.cos"):
        return Scalar(full, PYTHON_FLOAT)
    called = dotted(node.func) or "this expression"
    raise NotUnderstood(f"the call of `{called}` is not understood")


def _function(name: str, node: cst.Call, scope: Scope) -> Value:
    arguments = list(node.args)
    if any(argument.star for argument in arguments):
        raise NotUnderstood("starred arguments")
    if name in ELEMENTWISE:
        _only(arguments, set(), name)
        nodes = tuple(argument.value for argument in arguments)
        return _operation(ELEMENTWISE[name], nodes, scope)
    if name in ("matmul", "dot") and len(arguments) == 2:
        return _product(arguments[0].value, arguments[1].value, scope)
    if name == "outer" and len(arguments) == 2:
        left, right = (value_of(argument.value, scope) for argument in arguments)
        made = Elementwise("multiply", (Expand(left, 1), Expand(right, 0)))
        if len(type_of(made, scope).extents) != 2:
            raise NotUnderstood("np.outer of something other than two vectors")
        return made
    if name in ("fft.fft", "fft.ifft"):
        return _fourier(name.removeprefix("fft."), arguments, scope)
    if name == "transpose" and arguments:
        axes = _argument(arguments, 1, "axes")
        return _transposed(value_of(arguments[0].value, scope), axes, scope)
    if name == "sort" and arguments:
        _only(arguments, {"axis"}, name)
        operand = value_of(arguments[0].value, scope)
        dimensions = len(type_of(operand, scope).extents)
        along = _argument(arguments, 1, "axis")
        return Sort(operand, dimensions - 1 if along is None else _axis(along, dimensions, name))
    if name == "take" and len(arguments) == 2 and all(a.keyword is None for a in arguments):
        operand, places = (value_of(argument.value, scope) for argument in arguments)
        if len(type_of(operand, scope).extents) == 1 and type_of(places, scope).extents:
            return Gather(operand, places)
    if name in ("zeros", "ones", "empty", "full"):
        return _created(name, arguments, scope)
    if name in ("zeros_like", "ones_like", "empty_like", "full_like"):
        return _created_like(name, arguments, scope)
    if name in ("roll", "pad") or name in METHODS or name in ("array", "ascontiguousarray"):
        operand = value_of(arguments[0].value, scope)
        if isinstance(operand, Scalar):
            raise NotUnderstood(f"np.{name} of a number")
        if name == "roll":
            return _roll(operand, arguments[1:], scope)
        if name == "pad":
            return _pad(operand, arguments[1:], scope)
        method = "copy" if name in ("array", "ascontiguousarray") else name
        return _method(method, operand, arguments[1:], scope)
    raise NotUnderstood(f"np.{name} is not understood")


def _method(name: str, operand: Value, arguments: list[cst.Arg], scope: Scope) -> Value:
    found = type_of(operand, scope)
    if name == "copy":
        _only(arguments, {"dtype", "order", "copy"}, name)
        wanted = _keyword(arguments, "dtype")
        return Copy(operand, found.dtype if wanted is None else _dtype(wanted, scope))
    if name == "astype":
        wanted = _argument(arguments, 0, "dtype")
        if wanted is None:
            raise NotUnderstood("astype without a type")
        return Copy(operand, _dtype(wanted, scope))
    if name in SCANS:
        _only(arguments, {"axis", "dtype"}, name)
        axis = _axis(_argument(arguments, 0, "axis"), len(found.extents), name)
        wanted = _argument(arguments, 1, "dtype")
        dtype = _accumulator(found.dtype) if wanted is None else _dtype(wanted, scope)
        return Scan(operand, axis, SCANS[name], dtype)
    if name in REDUCTIONS:
        _only(arguments, {"axis", "dtype"}, name)
        node = _argument(arguments, 0, "axis")
        none = node is None or (isinstance(node, cst.Name) and node.value == "None")
        axis_or_all = None if none else _axis(node, len(found.extents), name)
        wanted = _argument(arguments, 1, "dtype")
        dtype = found.dtype if name in ("max", "min") else _accumulator(found.dtype)
        if name == "mean" and kind_of_or_none(dtype) in (Kind.INTEGER, Kind.BOOLEAN):
            dtype = "float64"
        dtype = dtype if wanted is None else _dtype(wanted, scope)
        return Reduction(operand, axis_or_all, REDUCTIONS[name], dtype)
    raise NotUnderstood(f"`{name}` is not understood")


def _accumulator(dtype: str) -> str:
    """Return the type in which NumPy sums: no integer narrower than the platform's."""
    kind = kind_of_or_none(dtype)
    if kind is Kind.BOOLEAN:
        return "int64"
    if kind is Kind.INTEGER:
        return "int64" if dtype_of(dtype).signed else "uint64"
    return dtype


def _created(name: str, arguments: list[cst.Arg], scope: Scope) -> Fill:
    shape = _argument(arguments, 0, "shape")
    if shape is None:
        raise NotUnderstood(f"np.{name} without a shape")
    value = _fill_value(name, arguments, 1)
    wanted = _argument(arguments, 2 if name == "full" else 1, "dtype")
    return Fill(
        value,
        _shape(shape, scope),
        "float64" if wanted is None else _dtype(wanted, scope),
    )


def _created_like(name: str, arguments: list[cst.Arg], scope: Scope) -> Fill:
    like = type_of(value_of(arguments[0].value, scope), scope)
    short = name.removesuffix("_like")
    wanted = _argument(arguments, 2 if short == "full" else 1, "dtype")
    dtype = like.dtype if wanted is None else _dtype(wanted, scope)
    return Fill(_fill_value(short, arguments, 1), like.extents, dtype)


def _fill_value(name: str, arguments: list[cst.Arg], position: int) -> str:
    if name == "full":
        node = _argument(arguments, position, "fill_value")
        if isinstance(node, cst.Integer | cst.Float):
            return node.value
        raise NotUnderstood("np.full with a value that is no literal")
    return {"zeros": "0", "ones": "1", "empty": ""}[name]


def _shape(node: cst.BaseExpression, scope: Scope) -> tuple[Expr, ...]:
    if isinstance(node, cst.Tuple | cst.List):
        return tuple(scalar(element.value, scope) for element in node.elements)
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return type_of(value_of(node.value, scope), scope).extents
    return (scalar(node, scope),)


def _roll(operand: Value, arguments: list[cst.Arg], scope: Scope) -> Value:
    _only(arguments, {"shift", "axis"}, "roll")
    shift, axis = _argument(arguments, 0, "shift"), _argument(arguments, 1, "axis")
    if shift is None:
        raise NotUnderstood("np.roll without a shift")
    dimensions = len(type_of(operand, scope).extents)
    if isinstance(shift, cst.Tuple) and isinstance(axis, cst.Tuple):
        rolled = operand
        for one, along in zip(shift.elements, axis.elements, strict=True):
            rolled = Roll(rolled, _axis(along.value, dimensions, "roll"), scalar(one.value, scope))
        return rolled
    return Roll(operand, _axis(axis, dimensions, "roll"), scalar(shift, scope))


def _pad(operand: Value, arguments: list[cst.Arg], scope: Scope) -> Value:
    _only(arguments, {"pad_width", "mode"}, "pad")
    width, mode = _argument(arguments, 0, "pad_width"), _argument(arguments, 1, "mode")
    if not isinstance(mode, cst.SimpleString) or mode.evaluated_value != "wrap":
        raise NotUnderstood("np.pad other than mode='wrap'")
    dimensions = len(type_of(operand, scope).extents)
    if not isinstance(width, cst.Tuple) or len(width.elements) != dimensions:
        raise NotUnderstood("np.pad whose widths are not written out by dimension")
    padded = operand
    for axis, element in enumerate(width.elements):
        if not isinstance(element.value, cst.Tuple) or len(element.value.elements) != 2:
            raise NotUnderstood("np.pad whose widths are not written out by dimension")
        before, after = (scalar(part.value, scope) for part in element.value.elements)
        if before != num(0) or after != num(0):
            padded = PeriodicPad(padded, axis, before, after)
    return padded


def _axis(node: cst.BaseExpression | None, dimensions: int, name: str) -> int:
    if node is None and dimensions == 1:
        return 0
    number = None if node is None else literal_int(node)
    if number is None or not -dimensions <= number < dimensions:
        raise NotUnderstood(f"the axis of `{name}` is not a literal of a {dimensions}-d array")
    return number % dimensions


def _dtype(node: cst.BaseExpression, scope: Scope) -> str:
    if isinstance(node, cst.SimpleString):
        name = str(node.evaluated_value)
    elif isinstance(node, cst.Attribute) and node.attr.value == "dtype":
        return type_of(value_of(node.value, scope), scope).dtype
    elif isinstance(node, cst.Name) and node.value in ("int", "float", "bool", "complex"):
        name = node.value
    else:
        full = resolve(node, dict(scope.imports)) or ""
        if not full.startswith("numpy."):
            raise NotUnderstood("an element type that cannot be read")
        name = full.removeprefix("numpy.")
    try:
        return dtype_of(name).name
    except UnknownDtype as error:
        raise NotUnderstood(str(error)) from error


def _argument(arguments: list[cst.Arg], position: int, name: str) -> cst.BaseExpression | None:
    found = _keyword(arguments, name)
    if found is not None:
        return found
    plain = [argument for argument in arguments if argument.keyword is None]
    return plain[position].value if position < len(plain) else None


def _keyword(arguments: list[cst.Arg], name: str) -> cst.BaseExpression | None:
    for argument in arguments:
        if argument.keyword is not None and argument.keyword.value == name:
            return argument.value
    return None


def _only(arguments: list[cst.Arg], allowed: set[str], name: str) -> None:
    for argument in arguments:
        if argument.keyword is not None and argument.keyword.value not in allowed:
            raise NotUnderstood(f"`{argument.keyword.value}=` of `{name}` is not understood")
