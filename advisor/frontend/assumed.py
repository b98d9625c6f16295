"""What the text of a function says of the names in it, where no call and no run tells.

``u[i, j]`` says that ``u`` has two dimensions, ``n, m = u.shape`` too, and what is an argument of
``range`` is a whole number. Element types and sizes nothing says: elements are taken for float64,
those that are subscripts for int64, and sizes stay symbols. Each finding states that, and each edit
has it as its condition. Where the text leaves a doubt about a name, nothing is assumed of it.

Names are parameters, attributes of them, what the module binds once, and what the function does:
of that a statement that is read tells more, so what is assumed counts where none is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from textwrap import dedent

from advisor.finding import MODULE
from advisor.observed import Seen, SeenArray, SeenBinding, SeenNumber
from costdb.records import replace


class Use(Enum):
    """How a name is used, or an attribute."""

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
    lines, around = source.splitlines(), _bound_once(outside)
    found = [(MODULE, 1, ast.arguments([], [], None, [], [], None, []), outside)]
    # how arrays lie in memory, which compiled loops walk through, nothing tells
    found += (
        (name, node.lineno, node.args, node.body)
        for name, node in _functions(tree.body, "")
        if not node.decorator_list
    )
    return tuple(
        _assumed(name, line, given, body, around if body is not outside else {}, lines)
        for name, line, given, body in found
        if any(_is_worth_reading(part) for part in body)
    )


def assumed_of(names: Iterable[str], text: str) -> Seen:
    """Return what a part of a function tells of names in it; nothing where it does not parse."""
    try:
        body = ast.parse(dedent(text)).body
    except SyntaxError:
        body = []
    given = [ast.arg(one) for one in dict.fromkeys(name.partition(".")[0] for name in names)]
    arguments = ast.arguments([], given, None, [], [], None, [])
    return _assumed("", 1, arguments, body, (), text.splitlines())


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


def _stored(body: Iterable[ast.stmt]) -> Counter[str]:
    """Return how often names are bound, or deleted."""
    parts = (one for part in body for one in ast.walk(part) if isinstance(one, ast.Name))
    return Counter(one.id for one in parts if not isinstance(one.ctx, ast.Load))


def _bound_once(body: Iterable[ast.stmt]) -> dict[str, ast.Assign]:
    """Return the names that one assignment binds, outside of loops, and nothing else."""
    stored, found = _stored(body), dict[str, ast.Assign]()
    pending = list(body)
    while pending:
        match pending.pop():
            case ast.Assign(targets=[target]) as made:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                names = (one.id for one in parts if isinstance(one, ast.Name))
                found |= {name: made for name in names if stored[name] == 1}
            case ast.If(body=then, orelse=orelse):
                pending += (*then, *orelse)
            case ast.With(body=inner):
                pending += inner
    return found


def _assumed(
    name: str,
    line: int,
    given: ast.arguments,
    body: Iterable[ast.stmt],
    around: Iterable[str],
    lines: Sequence[str],
) -> Seen:
    parameters = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    uses: _Uses = {one.arg: set(_stated(one.annotation)) for one in parameters}
    own = _bound_once(body)
    stored = _stored(body)
    uses |= {one: set() for one in around if one not in stored and one not in uses}
    own = {one: made for one, made in own.items() if one not in uses}
    uses |= {one: set() for one in own}
    for parameter, value in _defaults(given):
        whole, number = (
            isinstance(value, ast.Constant) and type(value.value) is kind for kind in (int, float)
        )
        uses[parameter].add(Use.WHOLE if whole else Use.NUMBER if number else Use.OTHER)
    for inner in (one for statement in body for one in ast.walk(statement)):
        for used, use in _said(inner):
            if used.partition(".")[0] in uses.keys() - own.keys() or used in own:
                uses.setdefault(used, set()).add(use)
    # an attribute of an array is none of its own
    uses = {
        one: use for one, use in uses.items() if "." not in one or not uses[one.partition(".")[0]]
    }
    arrays = [array for text, use in uses.items() if (array := _array(text, use)) is not None]
    numbers = [
        SeenNumber(text, "int64" if Use.WHOLE in use else "float64")
        for text, use in uses.items()
        if use and use <= {Use.NUMBER, Use.WHOLE}
    ]
    told: tuple[SeenArray | SeenNumber, ...] = (*arrays, *numbers)
    bindings = (
        SeenBinding(lines[own[one.name].lineno - 1].strip(), one.name, _as_bound(one))
        for one in told
        if one.name in own
    )
    return Seen(
        name,
        line,
        "assumed",
        tuple(one for one in arrays if one.name not in own),
        tuple(one for one in numbers if one.name not in own),
        bindings=tuple(bindings),
    )


def _as_bound(one: SeenArray | SeenNumber) -> SeenArray | SeenNumber:
    """Return what a function binds; of its numbers it is known whose they are."""
    if isinstance(one, SeenArray):
        return one
    return replace(one, dtype=one.dtype.rstrip("64"))


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
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if attribute != "T":
            yield f"{owner}.{attribute}", use
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
