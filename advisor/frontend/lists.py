"""Lists that loops fill, ``res = []; for ...: res.append(value)``, and arrays that they let grow.

Each iteration appends at most once, so that a list is an array with a place for each iteration.
Where a condition decides, places that it leaves out are none of the list. Nothing else sees the
list before the loop is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from operator import is_not

import libcst as cst

from advisor.frontend.arrays import listed, value_of
from advisor.frontend.bindings import (
    assigned_names,
    counted_names,
    name_node,
    names_in,
    resolve,
    target_names,
)
from advisor.frontend.scope import Growing, Scope
from advisor.frontend.trees import NotKnown, NotUnderstood, is_loop, nodes_in
from advisor.ir.kernel import FilledList
from advisor.ir.shapes import ArrayType, whole
from advisor.ir.statements import Bind, Store
from advisor.ir.values import (
    Called,
    Chosen,
    Copy,
    Elementwise,
    Fill,
    Point,
    Range,
    Read,
    Scalar,
    Value,
)
from advisor.numpy_table import (
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    ROWS,
    UNKNOWN_DTYPE,
    count_of,
    promote,
    strong,
)
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num, substitute, sym
from costdb.expr.functions import chance
from costdb.records import dataclass, only, replace

CONVERTED = frozenset({"numpy.array", "numpy.asarray"})
"""Functions that make arrays of lists."""


def row_of(part: cst.CSTNode, rest: Sequence[cst.CSTNode], scope: Scope) -> tuple[str, str] | None:
    """Return a list, and that to which it is appended once a loop has filled it, and no more."""
    name = _empty_list(part)
    using = [one for one in rest if name is not None and counted_names(one)[name]]
    match using:
        case [cst.For() as loop, cst.SimpleStatementLine(body=[cst.Expr(value=call)])]:
            found = appended(call)
            if found is None or found[0] not in scope.lists or not _is_filled(loop, name or ""):
                return None
            whole_row = isinstance(found[1], cst.Name) and found[1].value == name
            plain = whole_row and not _is_picked(loop, name or "")
            return (name or "", found[0]) if plain else None
    return None


def _is_picked(loop: cst.CSTNode, name: str) -> bool:
    """Return whether conditions decide what a loop appends."""
    return any(
        isinstance(one, cst.Continue) or (isinstance(one, cst.If) and counted_names(one)[name] > 0)
        for one in nodes_in(loop)
    )


def begun(part: cst.CSTNode, rest: Sequence[cst.CSTNode], source: cst.CSTNode) -> str | None:
    """Return the name of an empty list that a loop after it fills; None for another statement.

    Parameters
    ----------
    part : CSTNode
    rest : sequence of CSTNode
        What follows it in its block.
    source : CSTNode
        All that can see the name.
    """
    name = _empty_list(part)
    if name is None:
        return None
    using = [one for one in rest if counted_names(one)[name]]
    seen = counted_names(source)[name]
    known = using and isinstance(using[0], cst.For) and _is_filled(using[0], name)
    return name if known and seen == 1 + sum(counted_names(one)[name] for one in using) else None


def _empty_list(part: cst.CSTNode) -> str | None:
    match part:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=made)]
        ):
            match made:
                case cst.List(elements=[]) | cst.Call(func=cst.Name(value="list"), args=[]):
                    return name
    return None


def appended(node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """Return the name of the list that a call appends to, and what to it."""
    match node:
        case cst.Call(
            func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="append")),
            args=[cst.Arg(value=value, keyword=None, star="")],
        ):
            return name, value
    return None


def _is_filled(node: cst.CSTNode, name: str) -> bool:
    """Return whether a statement does nothing with a list but append to it, once an iteration."""
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=call)]):
            found = appended(call)
            return found is not None and found[0] == name and not counted_names(found[1])[name]
        case cst.For():
            return not counted_names(node.iter)[name] and _fills(node.body, name)
        case cst.If():
            ways = [node.body, *([] if node.orelse is None else [node.orelse])]
            using = [way for way in ways if counted_names(way)[name]]
            unused = not counted_names(node.test)[name]
            return unused and all(
                _is_filled(way, name) if isinstance(way, cst.If) else _fills(way, name)
                for way in using
            )
    return False


def _fills(block: cst.CSTNode, name: str) -> bool:
    body = block.body if isinstance(block, cst.Else) else block
    if not isinstance(body, cst.IndentedBlock):
        return False
    using = [one for one in body.body if counted_names(one)[name]]
    return len(using) == 1 and _is_filled(using[0], name)


def grown(name: str, rest: Sequence[cst.CSTNode], scope: Scope) -> FilledList:
    """Return what is known of a list before the loop that fills it."""
    loop, *after = (one for one in rest if counted_names(one)[name])
    total = sum(counted_names(one)[name] for one in after)
    converted = sum(_conversions(one, name, scope) for one in after)
    rebound = _rebound(after[0], name, scope) if after else None
    bound = any(name in assigned_names(one) for one in after)
    escapes = rebound is None if bound else converted < total
    picked, row = _is_picked(loop, name), _own_row(loop, name)
    return FilledList(len(scope.running), picked, escapes, row=row, rebound=rebound)


def _rebound(part: cst.CSTNode, name: str, scope: Scope) -> Span | None:
    """Return where a statement is that gives the name of a list to what an array of it makes."""
    match part:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(cst.Name(value=bound))], value=value)]
        ) if bound == name and counted_names(value)[name] == _conversions(value, name, scope):
            return scope.span(part)
    return None


def _own_row(loop: cst.CSTNode, name: str) -> str:
    """Return what is bound in the block that appends it to a list, and not used after that."""
    for block in (one for one in nodes_in(loop) if isinstance(one, cst.IndentedBlock)):
        bound: set[str] = set()
        for place, one in enumerate(block.body):
            match one:
                case cst.SimpleStatementLine(body=[cst.Expr(value=call)]):
                    match appended(call):
                        case (of, cst.Name(value=row)) if of == name and row in bound:
                            used = any(counted_names(rest)[row] for rest in block.body[place + 1 :])
                            return "" if used else row
                case cst.SimpleStatementLine(
                    body=[cst.Assign(targets=[cst.AssignTarget(cst.Name(value=row))])]
                ):
                    bound.add(row)
    return ""


def _conversions(node: cst.CSTNode, name: str, scope: Scope) -> int:
    """Return how often a piece of source makes an array of a list."""
    found = 0
    for one in nodes_in(node):
        match one:
            case cst.Call(args=[cst.Arg(value=cst.Name(value=given)), *_]) if given == name:
                found += resolve(one.func, scope.imports) in CONVERTED
    return found


def put(name: str, node: cst.BaseExpression, span: Span, scope: Scope) -> Sequence[Store]:
    """Return the store to the place that an iteration has in a list.

    Raises
    ------
    NotUnderstood
        Nothing says how many places there are, or what they hold.
    """
    if isinstance(node, cst.Name) and scope.rows.get(node.value) == name:
        # its elements were stored in their places
        return ()
    row, name = name in scope.rows, scope.rows.get(name, name)
    known = scope.lists[name]
    # an array of lists is one of rows
    of_list = isinstance(node, cst.List | cst.Tuple) and not known.escapes
    value = listed(node, scope, "list") if of_list else value_of(node, scope)
    found = scope.type_of(value)
    places, extents = [], []
    for one in scope.running[known.around :]:
        if one is None or one[3] != 1:
            raise NotUnderstood("a list whose length does not follow from the loops that fill it")
        variable, low, high, _ = one
        places.append(Point(sym(variable) - low))
        extents.append(high - low)
    moving = frozenset(one[0] for one in scope.running[known.around :] if one is not None)
    if not moving.isdisjoint(frozenset().union(*map(free_symbols, extents))):
        raise NotUnderstood("a list to which each iteration appends another number of times")
    shares = isinstance(value, Read) and bool(found.extents) and known.place is None
    if shares and isinstance(value, Read):
        shares = value.array != known.row or value.array not in scope.locals
    if found.dtype == UNKNOWN_DTYPE or shares:
        raise NotUnderstood("a list of something other than numbers")
    items = value.operands if of_list and isinstance(value, Called) else (value,)
    if (of_list or not found.extents) and not all(_is_of_one_type(one, scope) for one in items):
        raise NotUnderstood(f"`{name}` may hold numbers of several types")
    made = ArrayType(strong(found.dtype), (*extents, *found.extents))
    if scope.locals.setdefault(name, made) != made:
        raise NotUnderstood(f"`{name}` holds numbers of several types")
    scope.lost.discard(name)
    scope.changed(name)
    kind = None if found.extents else _is_of_python(value, scope)
    if (known.places and known.of_python is not kind) or (row and kind is False):
        kind = None
    flat = len(extents) > 1 and not row
    scope.lists[name] = replace(known, places=1 + flat, of_python=kind)
    if known.picked or flat:
        count = count_of(tuple(extents))
        held = Fill("", tuple(extents), "bool")
        if known.picked:
            count = chance(span.start_line) * count
        scope.picked[name] = Chosen(Read(name, whole(made.extents)), held, count)
    region = (*places, *whole(found.extents))
    return (Store(name, region, value, span, held=scope.held_in(value)),)


def _is_of_one_type(value: Value, scope: Scope) -> bool:
    """Return whether a number has the same type whatever conditions choose."""
    match value:
        case Scalar(text, dtype) if any(one in text for one in ("where(", "maximum(", "minimum(")):
            return dtype == PYTHON_INTEGER
        case Elementwise("where" | "maximum" | "minimum" as operation, parts, called=False):
            ways = parts[operation == "where" :]
            types = {strong(scope.type_of(one).dtype) for one in ways}
            return len(types) == 1 and all(_is_of_one_type(one, scope) for one in ways)
        case Elementwise(operation, parts) if ROWS[operation].result != "truth":
            settled = [one for one in parts if _is_of_one_type(one, scope)]
            types = {strong(scope.type_of(one).dtype) for one in settled}
            whole_type = strong(scope.type_of(value).dtype)
            return len(settled) == len(parts) or whole_type in types
    return True


def _is_of_python(value: Value, scope: Scope) -> bool | None:
    """Return whether a number is one of Python's; None where it may be one of NumPy's."""
    match value:
        case Scalar(_, dtype):
            return True if dtype in (PYTHON_INTEGER, PYTHON_FLOAT) else None
        case Copy():
            return None
        case Elementwise("where" | "maximum" | "minimum" as operation, parts):
            kinds = {_is_of_python(one, scope) for one in parts[operation == "where" :]}
            return kinds.pop() if len(kinds) == 1 else None
        case Elementwise(_, parts):
            kinds = {_is_of_python(one, scope) for one in parts}
            return False if False in kinds else None if None in kinds else True
    return False


def room(name: str, span: Span, scope: Scope) -> Iterator[Bind]:
    """Yield what makes room for a list that a loop has filled, or an array that it let grow."""
    made = scope.locals.get(name)
    if made is not None:
        yield Bind(name, Fill("", made.extents, made.dtype), span)


# --- arrays that grow ---------------------------------------------------------------------------
#
# ``x = np.append(x, piece)`` does by copying all that is there what a list does without.

GROWN = "<grown {}>"
"""The name of what a loop grows: one stretch of memory, however many axes the array has."""


def growing_in(loop: cst.CSTNode, scope: Scope) -> dict[str, Growing]:
    """Return the arrays that a loop does nothing with but let them grow, in one place."""
    uses, found = counted_names(loop), dict[str, Growing]()
    for node in nodes_in(loop):
        match node:
            case cst.Assign([cst.AssignTarget(cst.Name(value=name))], value) if uses[name] == 2:
                if name in scope.growing or piece_of(name, value, scope.imports) is None:
                    continue
                first = ArrayType("float64", (num(0),))
                with suppress(NotKnown):
                    first = scope.array_type(name) if scope.has_array(name) else first
                found[name] = Growing(len(scope.running), first)
    return found


def piece_of(
    name: str, node: cst.BaseExpression, imports: Mapping[str, str]
) -> cst.BaseExpression | None:
    """Return what an expression puts behind an array of a name; None where it does anything else.

    Parameters
    ----------
    name : str
    node : BaseExpression
        ``np.append(name, piece)``, ``np.vstack([name, piece])`` and their like.
    imports : mapping of str to str
    """
    match node:
        case cst.Call(func, [cst.Arg(first, None, star=""), *rest]):
            called = (resolve(func, imports) or "").removeprefix("numpy.")
        case _:
            return None
    match called, first, rest:
        case "append", cst.Name(value=grown), [cst.Arg(piece, None, star=""), *options]:
            pass
        case (
            "concatenate" | "vstack" | "hstack",
            cst.List([cst.Element(cst.Name(value=grown)), cst.Element(piece)])
            | cst.Tuple([cst.Element(cst.Name(value=grown)), cst.Element(piece)]),
            options,
        ):
            pass
        case _:
            return None
    stated = [one for one in options if one.keyword is None or one.keyword.value == "axis"]
    most = called in ("append", "concatenate")
    return piece if len(stated) == len(options) <= most and grown == name else None


def joined(
    name: str, piece: cst.BaseExpression | None, span: Span, scope: Scope
) -> tuple[Store, ...]:
    """Return what puts a piece behind all that former iterations put there.

    One that is not read is as if it had one element.

    Raises
    ------
    NotUnderstood
        Nothing says how many iterations there are, or how long the piece is.
    """
    growing = scope.growing[name]
    value: Value
    match piece:
        case None:
            value = Fill("", (num(1),), growing.first.dtype)
        case cst.List([cst.Element(one)]) | cst.Tuple([cst.Element(one)]):
            value = value_of(one, scope)
        case _:
            value = value_of(piece, scope)
    found = scope.type_of(value)
    length, dtype = scope.odds * count_of(found.extents), strong(found.dtype)
    if dtype == UNKNOWN_DTYPE:
        raise NotUnderstood("an array to which nobody knows what is joined")
    start, dtype = count_of(growing.first.extents), promote(dtype, strong(growing.first.dtype))
    # how often it has grown, before this iteration and in all, and the length of a piece on average
    position: Expr = num(0)
    places: Expr = num(1)
    mean = mean_of_all = length
    for loop in scope.running[growing.around :]:
        if loop is None or loop[3] != 1:
            raise NotUnderstood("an array that grows in a loop of which nobody knows how long")
        variable, low, high, _ = loop
        position = position * (high - low) + sym(variable) - low
        places = places * (high - low)
        mean = _mean(mean, variable, low, sym(variable) - 1)
        mean_of_all = _mean(mean_of_all, variable, low, high - 1)
    there, end = start + position * mean, start + places * mean_of_all
    grown = GROWN.format(name)
    scope.locals[grown] = ArrayType(dtype, (end,))
    before = Read(grown, (Range(num(0), there),))
    made = Called("concatenate", (before, value), (there + length,), dtype, ())
    scope.forget(name)
    return (Store(grown, (Range(num(0), there + length),), made, span),)


def _mean(length: Expr, variable: str, first: Expr, last: Expr) -> Expr:
    """Return the mean over iterations of a length that changes evenly from one to the next."""
    return (substitute(length, {variable: first}) + substitute(length, {variable: last})) / 2


# --- comprehensions -------------------------------------------------------------------------------
# Comprehensions as the loops that they are: that fill a list, or that accumulate a number.
#
# ``x = np.array([f(v) for v in a if v > 0])`` does what ``part = []``, a loop that appends to it
# and ``x = np.array(part)`` do, and ``sum(f(v) for v in a)`` what a loop does that adds up. So they
# are read as these, the list or number under a name that stands in no source.


_REDUCING = frozenset({"mean", "sum", "max", "min", "std", "var", "median", "prod"})
_PERHAPS = cst.IfExp | cst.BooleanOperation | cst.BaseComp | cst.Lambda
_UNSAID = cst.NamedExpr | cst.Await | cst.Yield | cst.Lambda
"""What binds or leaves where a loop would do it in another place."""


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A statement with a comprehension, as several.

    Attributes
    ----------
    name : str
        Of the list, or of the number.
    function : str
        Of Python that makes a number of it; empty where it is a list.
    call : libcst.BaseExpression
        What makes the array, or the comprehension that a function is given.
    loop : libcst.For
    after : libcst.CSTNode
        The statement, with the name in the place of the comprehension.
    own : frozenset of str
        Names that are known in the comprehension alone.
    picked : bool
        Whether conditions decide what is in the list.
    originals : mapping of CSTNode to CSTNode
        Nodes of the file by what stands for them.
    """

    name: str
    function: str
    call: cst.BaseExpression
    loop: cst.For
    after: cst.CSTNode
    own: frozenset[str]
    picked: bool
    originals: Mapping[cst.CSTNode, cst.CSTNode]


def comprehension(part: cst.CSTNode, scope: Scope) -> Comprehension | None:
    """Return what a statement with a comprehension does; None for any other."""
    first = part.test if isinstance(part, cst.If) else part
    if first is part and not (isinstance(part, cst.SimpleStatementLine) and len(part.body) == 1):
        return None
    calls = (one for one in nodes_in(first) if isinstance(one, cst.Call))
    found = [(one, by) for one in calls if (by := _made_of(one, scope)) is not None]
    if not found:
        return None
    call, (function, module) = found[0]
    made = call.args[0].value
    assert isinstance(made, cst.ListComp | cst.GeneratorExp)
    within = {inner for one, _ in found for inner in nodes_in(one.args[0].value)}
    if any(isinstance(one, _PERHAPS) for one in nodes_in(first) if one not in within):
        return None
    if any(isinstance(one, _UNSAID) for one in nodes_in(made)):
        return None
    own = frozenset(
        name for one in only(cst.CompFor, nodes_in(made)) for name in target_names(one.target)
    )
    around = names_in(made.for_in.iter) | names_in(call.func)
    if own & around or any(map(scope.has_array, own)):
        return None
    at = scope.span(call)
    name = f"<list {at.start_line}{at.start_column:03}>"
    body = _appended(name, made.elt, 0)
    if function:
        name = f"{function}__{at.start_line}_{at.start_column}"
        body = (_accumulated(name, function, made.elt),)
    loop = None if body is None else _around(made.for_in, body)
    if loop is None:
        return None
    # the array of it, in the place of the call or of the comprehension
    array: cst.BaseExpression = name_node(name)
    if module:
        array = cst.Call(cst.Attribute(cst.Name(module), cst.Name("array")), [cst.Arg(array)])
    place = call if len(call.args) == 1 and not module else made
    originals: dict[cst.CSTNode, cst.CSTNode] = {loop: place}
    after = _with(part, place if function else made, array, originals)
    places = {id(one.target): one for one in nodes_in(made) if isinstance(one, cst.CompFor)}
    known = {*nodes_in(part)}
    for one in (*nodes_in(loop), *nodes_in(after)):
        if isinstance(one, cst.For) and id(one.target) in places:
            originals.setdefault(one, places[id(one.target)])
        elif one not in known:
            originals.setdefault(one, place)
        header = one.header if isinstance(one, cst.IndentedBlock) else None
        originals |= {} if header is None else {header: place}
    picked = any(isinstance(one, cst.CompFor) and bool(one.ifs) for one in nodes_in(made))
    return Comprehension(name, function, place, loop, after, own, picked, originals)


def _made_of(node: cst.Call, scope: Scope) -> tuple[str, str] | None:
    """Return what Python makes a number of a comprehension by, or what NumPy is called.

    Neither where an array is made of it; None for any other call.
    """
    match node:
        case cst.Call(cst.Name(name)) if is_loop(node) and not scope.not_builtin(name):
            return name, ""
        case cst.Call(func=func, args=[cst.Arg(cst.ListComp(), None, star=""), *_]):
            called = resolve(func, scope.imports) or ""
            if called in CONVERTED:
                return "", ""
            if called.removeprefix("numpy.") in _REDUCING:
                modules = (one for one, module in scope.imports.items() if module == "numpy")
                return next((("", one) for one in modules), None)
    return None


def _with(
    node: cst.CSTNode,
    old: cst.CSTNode,
    new: cst.CSTNode,
    originals: dict[cst.CSTNode, cst.CSTNode],
) -> cst.CSTNode:
    """Return a piece of source with another part in it; all others stay the same nodes."""
    if node is old:
        if isinstance(old, cst.BaseExpression) and old.lpar:
            # `return(a)` needs its parentheses
            return new.with_changes(lpar=old.lpar, rpar=old.rpar)
        return new
    for field in fields(node):
        value = getattr(node, field.name)
        parts = value if isinstance(value, list | tuple) else [value]
        made = [
            _with(one, old, new, originals) if isinstance(one, cst.CSTNode) else one
            for one in parts
        ]
        if any(map(is_not, made, parts)):
            given = made if isinstance(value, list | tuple) else made[0]
            changed = node.with_changes(**{field.name: given})
            originals[changed] = node
            return changed
    return node


def _line(small: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([small])


def _accumulated(name: str, function: str, value: cst.BaseExpression) -> cst.BaseStatement:
    """Return what a function of Python does with a part: the number goes on, or it knows enough."""
    if function in ("any", "all"):
        told = value if function == "any" else cst.UnaryOperation(cst.Not(), value)
        return cst.If(told, cst.IndentedBlock([_line(cst.Return())]))
    if function == "sum":
        return _line(cst.AugAssign(cst.Name(name), cst.AddAssign(), value))
    call = cst.Call(cst.Name(function), [cst.Arg(cst.Name(name)), cst.Arg(value)])
    return _line(cst.Assign([cst.AssignTarget(cst.Name(name))], call))


def _appended(
    name: str, value: cst.BaseExpression, depth: int
) -> Sequence[cst.BaseStatement] | None:
    """Return what appends a value to a list; None where that has no form."""
    before: Sequence[cst.BaseStatement] = ()
    if isinstance(value, cst.ListComp):
        row = f"<row {depth}>"
        inner = _appended(row, value.elt, depth + 1)
        loop = None if inner is None else _around(value.for_in, inner)
        if loop is None:
            return None
        begun = cst.Assign([cst.AssignTarget(name_node(row))], cst.List([]))
        before, value = (_line(begun), loop), name_node(row)
    call = cst.Call(cst.Attribute(name_node(name), cst.Name("append")), [cst.Arg(value)])
    return (*before, _line(cst.Expr(call)))


def _around(node: cst.CompFor, body: Sequence[cst.BaseStatement]) -> cst.For | None:
    """Return the loop that a comprehension goes through; None for an asynchronous one."""
    if node.asynchronous is not None:
        return None
    if node.inner_for_in is not None:
        inner = _around(node.inner_for_in, body)
        if inner is None:
            return None
        body = (inner,)
    for one in reversed(node.ifs):
        body = (cst.If(one.test, cst.IndentedBlock(body)),)
    return cst.For(node.target, node.iter, cst.IndentedBlock(body))
