"""What the text of a function says of its parameters, where no call and no run tells.

``u[i, j]`` says that ``u`` has two dimensions, ``n, m = u.shape`` too, and what is an argument of
``range`` is a whole number. Element types and sizes nothing says: elements are taken for float64,
those that are subscripts for int64, and sizes stay symbols. Each finding states that, and each edit
has it as its condition. Where the text leaves a doubt about a parameter, nothing is assumed of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from textwrap import dedent

from advisor.finding import MODULE
from advisor.observed import Seen, SeenArray, SeenNumber


class Use(Enum):
    """How a parameter is used, or an attribute of ``self``."""

    ARRAY = auto()
    """As only arrays are."""
    ELEMENTS = auto()
    """Its elements, by one subscript, as only numbers are."""
    SUBSCRIPTS = auto()
    """Its elements as subscripts."""
    NUMBER = auto()
    """As a number."""
    WHOLE = auto()
    """As a whole number."""
    OTHER = auto()
    """As neither."""


_Uses = dict[str, set[Use | int]]
"""By names; a number is that of the dimensions."""

_OF_ARRAYS = frozenset(
    {"shape", "dtype", "ndim", "strides", "itemsize", "nbytes", "astype", "flat"}
)
"""Attributes that lists and numbers do not have."""

_ALIKE = frozenset({"zeros_like", "empty_like", "ones_like", "full_like"})
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def assumed(source: str) -> tuple[Seen, ...]:
    """Return what is assumed of functions with loops, and of the module level of a file."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    outside = [one for one in tree.body if not isinstance(one, _Function | ast.ClassDef)]
    found = [(MODULE, 1, ast.arguments([], [], None, [], [], None, []), outside)]
    # how arrays lie in memory, which compiled loops walk through, nothing tells
    found += (
        (name, node.lineno, node.args, node.body)
        for name, node in _functions(tree.body, "")
        if not node.decorator_list
    )
    return tuple(
        _assumed(name, line, given, body)
        for name, line, given, body in found
        if any(_is_worth_reading(part) for part in body)
    )


def assumed_of(names: Iterable[str], text: str) -> Seen:
    """Return what a part of a function tells of names in it; nothing where it does not parse."""
    try:
        body = ast.parse(dedent(text)).body
    except SyntaxError:
        body = []
    given = [ast.arg(name) for name in names if "." not in name]
    return _assumed("", 1, ast.arguments([], given, None, [], [], None, []), body)


def _is_worth_reading(node: ast.stmt) -> bool:
    """Return whether a loop in it subscripts anything by what it computes."""
    return any(
        isinstance(one, ast.Subscript) and not isinstance(one.slice, ast.Constant)
        for loop in ast.walk(node)
        if isinstance(loop, ast.For | ast.While)
        for one in ast.walk(loop)
    )


def _functions(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, _Function]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name, node
            case ast.ClassDef():
                yield from _functions(node.body, f"{prefix}{node.name}.")
            case ast.If() | ast.Try():
                yield from _functions((*node.body, *node.orelse), prefix)
            case _:
                pass


def _assumed(name: str, line: int, given: ast.arguments, body: Iterable[ast.stmt]) -> Seen:
    parameters = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    uses: _Uses = {one.arg: set(_stated(one.annotation)) for one in parameters}
    for parameter, value in _defaults(given):
        whole, number = (
            isinstance(value, ast.Constant) and type(value.value) is kind for kind in (int, float)
        )
        uses[parameter].add(Use.WHOLE if whole else Use.NUMBER if number else Use.OTHER)
    for inner in (one for statement in body for one in ast.walk(statement)):
        for used, use in _said(inner):
            if used in uses or used.startswith("self."):
                uses.setdefault(used, set()).add(use)
    arrays = [array for text, use in uses.items() if (array := _array(text, use)) is not None]
    numbers = (
        SeenNumber(text, "int64" if Use.WHOLE in use else "float64")
        for text, use in uses.items()
        if use and use <= {Use.NUMBER, Use.WHOLE}
    )
    return Seen(name, line, "assumed", tuple(arrays), tuple(numbers))


def _stated(annotation: ast.expr | None) -> Iterator[Use]:
    text = "" if annotation is None else ast.unparse(annotation)
    if "ndarray" in text or "NDArray" in text:
        yield Use.ARRAY
    elif text in ("int", "float"):
        yield Use.WHOLE if text == "int" else Use.NUMBER
    elif text:
        yield Use.OTHER


def _defaults(given: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    placed = (*given.posonlyargs, *given.args)
    first = len(placed) - len(given.defaults)
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    for one, value in (*zip(placed[first:], given.defaults, strict=True), *named):
        if value is not None:
            yield one.arg, value


def _array(name: str, use: set[Use | int]) -> SeenArray | None:
    """Return an array of one number of dimensions, if a parameter can be nothing else."""
    found = [one for one in use if isinstance(one, int)]
    if not found and {Use.ARRAY, Use.ELEMENTS} <= use:
        found = [1]
    if len(found) != 1 or use & {Use.OTHER, Use.NUMBER, Use.WHOLE}:
        return None
    dtype = "int64" if Use.SUBSCRIPTS in use else "float64"
    return SeenArray(name, dtype, found[0], "C")


def _said(node: ast.AST) -> Iterator[tuple[str, Use | int]]:
    """Yield what a node by itself says of the names in it."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=value, attr="shape")):
            yield from _of(value, Use.ARRAY)
        case ast.Subscript(value=value, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            for part in parts:
                yield from _numbers(part, Use.WHOLE)
            if any(isinstance(one, ast.Starred) or _is_literal(one) for one in parts):
                yield from _of(value, Use.OTHER)
            elif isinstance(index, ast.Tuple):
                yield from _of(value, len(parts))
            if isinstance(value, ast.Subscript):
                # rows of an array, or lists in a list
                yield from _of(value.value, Use.OTHER)
        case ast.Assign(
            targets=[ast.Tuple(elts=names)], value=ast.Attribute(value=value, attr="shape")
        ):
            yield from _of(value, len(names))
        case ast.Assign(targets=[ast.Subscript(slice=ast.Tuple(elts=parts))], value=value) | (
            ast.AugAssign(target=ast.Subscript(slice=ast.Tuple(elts=parts)), value=value)
        ) if not any(isinstance(one, ast.Slice | ast.Constant) for one in parts):
            yield from _numbers(value, Use.NUMBER)
        case ast.Attribute(value=value, attr=attribute) if attribute in _OF_ARRAYS:
            yield from _of(value, Use.ARRAY)
        case ast.Call(func=ast.Attribute(attr=function), args=[value, *_]) if function in _ALIKE:
            yield from _of(value, Use.ARRAY)
        case ast.Call(func=ast.Name(id="range"), args=values):
            for value in values:
                yield from _numbers(value, Use.WHOLE)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
            for value in node.args:
                yield from _numbers(value, Use.NUMBER)
        case (
            ast.If(test=ast.Compare() as test)
            | ast.While(test=ast.Compare() as test)
            | (ast.IfExp(test=ast.Compare() as test))
        ) if all(isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for one in test.ops):
            for value in (test.left, *test.comparators):
                yield from _numbers(value, Use.NUMBER)
        case _:
            pass


def _of(node: ast.expr, use: Use | int) -> Iterator[tuple[str, Use | int]]:
    match node:
        case ast.Name(id=name):
            yield name, use
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            yield f"self.{attribute}", use
        case _:
            pass


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is not int


def _numbers(node: ast.expr, use: Use) -> Iterator[tuple[str, Use | int]]:
    """Yield what stands in an expression that is a number."""
    match node:
        case ast.BinOp(left=left, right=right, op=op) if isinstance(op, _ARITHMETIC):
            yield from _numbers(left, use)
            yield from _numbers(right, use)
        case ast.UnaryOp(operand=operand):
            yield from _numbers(operand, use)
        case ast.Subscript(value=value, slice=index) if not isinstance(
            index, ast.Tuple | ast.Slice
        ):
            yield from _of(value, Use.ELEMENTS)
            if use is Use.WHOLE:
                yield from _of(value, Use.SUBSCRIPTS)
        case ast.Name() | ast.Attribute():
            yield from _of(node, use)
        case _:
            pass
