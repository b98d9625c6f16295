"""Statements under masks: what warns or fails is computed where a condition chooses it, only.

``np.where(b != 0, a / b, 0)`` divides everywhere. Where that may warn, or raise as ``np.seterr``
asks for, the elements that a condition chooses are taken out, computed with and put back:
``mask = b != 0; out[mask] = a[mask] / b[mask]``. Of terms that are added up, those that are not
chosen are computed with ones: ``np.where(mask, a / np.where(mask, b, 1), 0).sum(axis=1)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from advisor.ir.kernel import Kernel, with_part
from advisor.ir.nests import chosen_in
from advisor.ir.shapes import is_whole, kind_of_or_none, whole
from advisor.ir.statements import Bind, Statement, Store, walk, written
from advisor.ir.values import (
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Gather,
    Read,
    Scalar,
    Value,
    base_of,
    operands,
    parts_of,
    reads,
)
from advisor.numpy_table import PYTHON_INTEGER, ROWS, Kind
from advisor.source import Edit, Span
from costdb.expr import ONE
from costdb.records import IDENTIFIER
from transforms.kit.kernels import mapped, named, type_of
from transforms.kit.rewrite import nodes_of, replace_statement, span_of, stands_alone, statements_at

_FREE = re.compile(r"([(,]|[^=<>!]=|\breturn)\s*$")
"""What ends before an expression that nothing beside it binds."""
_TRUTHS = frozenset({"where", *(name for name, row in ROWS.items() if row.result == "truth")})
JOINED = ("logical_and", "logical_or")
"""What ``and`` and ``or`` are: the second operand is needed where the first one does not tell."""
_OVERFLOWING = frozenset({"add", "subtract", "multiply", "square"})
_SILENT = frozenset(
    {
        *("negative", "positive", "absolute", "fabs", "sign", "conjugate", "floor", "ceil"),
        *("trunc", "rint", "minimum", "maximum", "fmin", "fmax", "bitwise_and", "bitwise_or"),
        *("bitwise_xor", "invert", "left_shift", "right_shift"),
    }
)
_LOUD_ON_WHOLE = frozenset({"divide", "floor_divide", "remainder", "fmod", "power"})
_QUIET_OF_ONES = _LOUD_ON_WHOLE | {
    *("sqrt", "cbrt", "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "hypot", "arctan2"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan"),
}


class NotRaised(Exception):
    """A part that has no form with the index as an axis."""


def is_loud(value: Value, kernel: Kernel) -> bool:
    """Return whether an operation may fail, or warn of more than an overflow."""
    match value:
        case Gather():
            return True
        case Copy(operand, dtype):
            whole_number = kind_of_or_none(dtype) in (Kind.INTEGER, Kind.BOOLEAN)
            given = kind_of_or_none(type_of(operand, kernel).dtype)
            return whole_number and given not in (Kind.INTEGER, Kind.BOOLEAN)
        case Elementwise("power", (_, Scalar(text))) if text.isdecimal():
            return False
        case Elementwise(operation, parts) if operation not in _TRUTHS | _SILENT:
            kinds = {kind_of_or_none(type_of(part, kernel).dtype) for part in parts}
            if kinds <= {Kind.INTEGER, Kind.BOOLEAN, None} and kinds != {None}:
                return operation in _LOUD_ON_WHOLE
            return operation not in _OVERFLOWING
    return False


def always(value: Value) -> Iterator[Value]:
    """Yield what is computed for every element, whatever conditions choose."""
    yield value
    first = isinstance(value, Elementwise) and value.operation in ("where", *JOINED)
    for part in operands(value)[: 1 if first else None]:
        yield from always(part)


def _may_fail(value: Value, kernel: Kernel) -> bool:
    return any(is_loud(part, kernel) for part in parts_of(value))


def guarded(value: Value, kernel: Kernel) -> bool:
    """Return whether something that may fail is computed for some elements only."""
    known = set(always(value))
    if not any(part not in known and is_loud(part, kernel) for part in parts_of(value)):
        return False
    joined = any(isinstance(p, Elementwise) and p.operation in JOINED for p in parts_of(value))
    try:
        return joined or quiet(value, kernel) != value
    except NotRaised:
        return True


def quiet(value: Value, kernel: Kernel) -> Value:
    """Return a value that computes what may fail with ones wherever a condition does not choose it.

    Raises
    ------
    NotRaised
        Something fails of ones, too.
    """

    def other(part: object) -> object:
        match part:
            case Elementwise("where", (test, one, other)):
                ways = (_quiet(one, test, kernel), _quiet(other, negated(test), kernel))
                return replace(part, operands=(test, *ways))
        return part

    return mapped(value, other)


def negated(test: Value) -> Value:
    """Return the condition that holds where another one does not."""
    match test:
        case Scalar(text) if text.startswith("equal("):
            return replace(test, text=f"not_{text}", span=None)
        case Elementwise("equal", parts):
            return Elementwise("not_equal", parts)
    return Elementwise("logical_not", (test,))


def _quiet(value: Value, test: Value, kernel: Kernel) -> Value:
    """Return a value that is computed with ones where a condition does not hold."""
    if not _may_fail(value, kernel):
        return value
    match value:
        case Expand(operand, axis):
            if type_of(test, kernel).extents:
                if not isinstance(test, Expand) or test.axis != axis:
                    raise NotRaised
                test = test.operand
            return replace(value, operand=_quiet(operand, test, kernel))
        case Copy(operand):
            parts = [_quiet(operand, test, kernel)]
            fragile = [True]
        case Elementwise(operation, given):
            parts = [_quiet(one, test, kernel) for one in given]
            fragile = [operation not in _LOUD_ON_WHOLE or n == (operation != "power")
                       or (operation == "power" and not isinstance(one, Scalar))
                       for n, one in enumerate(given)]  # fmt: skip
        case _:
            raise NotRaised
    if is_loud(value, kernel):
        kinds = {kind_of_or_none(type_of(one, kernel).dtype) for one in parts}
        if not kinds <= {Kind.INTEGER, Kind.FLOATING, None}:
            raise NotRaised
        if isinstance(value, Elementwise) and value.operation not in _QUIET_OF_ONES:
            raise NotRaised
        chosen = [Elementwise("where", (test, one, Scalar("1", PYTHON_INTEGER))) for one in parts]
        parts = [made if needed and not _is_one(one, test) else one
                 for one, made, needed in zip(parts, chosen, fragile, strict=True)]  # fmt: skip
    changed = (
        {"operands": tuple(parts)} if isinstance(value, Elementwise) else {"operand": parts[0]}
    )
    made: Value = replace(value, **changed)
    if type_of(made, kernel).dtype != type_of(value, kernel).dtype:
        raise NotRaised
    return made


def _is_one(value: Value, test: Value) -> bool:
    """Return whether a value is 1 where a condition does not hold."""
    match value:
        case Elementwise("where", (known, one, Scalar("1"))):
            return _is_one(one, test) or _bare(known) == _bare(test)
        case Elementwise("sqrt" | "absolute", (one,)) | Elementwise("power", (one, Scalar())):
            return _is_one(one, test)
        case Expand(operand):
            return _is_one(operand, _bare(test))
    return False


def _bare(value: Value) -> Value:
    return _bare(value.operand) if isinstance(value, Expand) else value


def overflows(value: Value, kernel: Kernel) -> str:
    """Return an operation that may overflow where it is not chosen; empty where there is none."""
    known = set(always(value))
    for part in parts_of(value):
        match part:
            case Elementwise(operation) if (
                operation in {*_OVERFLOWING, "power"}
                and part not in known
                and not is_loud(part, kernel)
            ):
                if kind_of_or_none(type_of(part, kernel).dtype) is not Kind.INTEGER:
                    return operation
    return ""


def under_masks(
    store: Store, kernel: Kernel, before: Sequence[Statement]
) -> tuple[list[Statement], Kernel]:
    """Return statements that compute what may fail where a condition chooses it only.

    Masks that statements `before` have named are those.

    Raises
    ------
    NotRaised
        There are none.
    """
    if not guarded(store.value, kernel):
        return [store], kernel
    made = _Masks(store, kernel, before)
    own = Read(store.array, store.region)
    ways = list(made.ways(store.value, None, {}))
    kept = [(mask, value) for mask, value in ways if value != own]
    stores = []
    last = kept[-1][1] if kept else own
    reads_own = any(read.array == store.array for _, value in kept for read in reads(value))
    if not reads_own and len(kept) == len(ways) and not _may_fail(last, kernel):
        # what cannot fail comes first, and everywhere
        del kept[-1]
        stores.append(replace(store, value=last, in_place=False))
    for found, value in kept:
        mask = found if found is None else made.named(found)
        types = partial(type_of, kernel=made.kernel)
        if mask is None or types(mask).extents != types(own).extents:
            raise NotRaised
        numbers = (part for part in parts_of(value) if not types(part).extents)
        if chosen_in(value, mask, types, ONE) is None or any(
            is_loud(part, made.kernel) for part in numbers
        ):
            # a number is computed whatever the mask chooses
            raise NotRaised
        chosen = Elementwise("where", (mask, value, own))
        stores.append(replace(store, value=chosen, in_place=True))
    return [*made.binds, *stores], made.kernel


class _Masks:
    """Finds which masks choose what is stored."""

    def __init__(self, store: Store, kernel: Kernel, before: Sequence[Statement]) -> None:
        self.store, self.kernel, self.before = store, kernel, before
        self.own = Read(store.array, store.region)
        self.binds: list[Statement] = []

    def ways(
        self, value: Value, mask: Value | None, holds: Mapping[Value, bool]
    ) -> Iterator[tuple[Value | None, Value]]:
        """Yield masks, each with the value where it holds."""
        match value:
            case Elementwise("where", (condition, one, other)) if condition in holds:
                yield from self.ways(one if holds[condition] else other, mask, holds)
            case Elementwise("where", (Elementwise("equal", sides), one, other)) if one == self.own:
                condition = Elementwise("not_equal", sides)
                turned = Elementwise("where", (condition, other, one))
                yield from self.ways(turned, mask, holds)
            case Elementwise("where", (condition, one, other)) if guarded(value, self.kernel):
                fails = _may_fail(condition, self.kernel)
                if fails and (mask is not None or guarded(condition, self.kernel)):
                    raise NotRaised
                name = self.named(condition)
                for way, known in ((one, True), (other, False)):
                    chosen = name if known else Elementwise("invert", (name,))
                    joined = chosen if mask is None else Elementwise("bitwise_and", (mask, chosen))
                    yield from self.ways(way, joined, {**holds, condition: known})
            case Elementwise() | Copy() if guarded(value, self.kernel):
                yield from self.ways(self.pushed(value), mask, holds)
            case _:
                yield mask, value

    def named(self, condition: Value) -> Read:
        """Return the array of a condition, which is bound to a name."""
        if isinstance(condition, Read):
            return condition
        used, known = {read.array for read in reads(condition)}, None
        for one in reversed((*self.before, *self.binds)):
            if isinstance(one, Bind) and one.value == condition:
                known = one.name
            if known is not None or written(one) & used:
                break
        if known is None:
            bind, read, self.kernel = named("mask", condition, self.store.span, self.kernel)
            self.binds.append(bind)
            return read
        return Read(known, whole(self.kernel.extents(known)))

    def pushed(self, value: Value) -> Value:
        """Return a choice between two values that were computed with what is chosen."""
        for part in parts_of(value):
            match part:
                case Elementwise("where", (condition, one, other)):
                    ways = (with_part(value, part, one), with_part(value, part, other))
                    return Elementwise("where", (condition, *ways))
        raise NotRaised


# --- listed ---------------------------------------------------------------------------------------
# Lists that loops fill, as arrays: what is put in their place, and what else changes for it.


_WORD = re.compile(IDENTIFIER)
_ALONE = ast.Name | ast.Subscript | ast.Call | ast.Attribute


def picked(value: Value, own: Read) -> tuple[Value | None, Value]:
    """Return which places of a list are filled, None for all, and with what."""
    match value:
        case Elementwise("where", (condition, one, other)) if own in (one, other):
            kept = one if other == own else other
            if other != own:
                condition = Elementwise("invert", (condition,))
            mask, made = picked(kept, own)
            return _both(condition, mask), made
        case Elementwise("where", (condition, one, other)):
            (first, here), (second, there) = picked(one, own), picked(other, own)
            made = Elementwise("where", (condition, here, there))
            if first is None and second is None:
                return None, made
            if first is None and second is not None:
                return Elementwise("bitwise_or", (condition, second)), made
            no = Elementwise("invert", (condition,))
            ways = (_both(condition, first), _both(no, second))
            return Elementwise("bitwise_or", ways), made
    return None, value


def _both(one: Value, other: Value | None) -> Value:
    return one if other is None else Elementwise("bitwise_and", (one, other))


def filled(store: Store, kernel: Kernel) -> Value | None:
    """Return what a list holds after a statement that fills it; None where that has no form."""
    own = Read(store.array, store.region)
    if not is_whole(store.region, kernel.extents(store.array)):
        return None
    mask, value = picked(store.value, own)
    found = type_of(value, kernel)
    grows = any(read.array == store.array for read in reads(value))
    if grows or found.extents != type_of(own, kernel).extents:
        return None
    if mask is not None and not type_of(mask, kernel).extents:
        # one truth for all is no mask, but a new axis
        return None
    return value if mask is None else Chosen(value, mask, ONE)


def tidied_list(store: Store, kernel: Kernel) -> tuple[tuple[Statement, ...], Kernel]:
    """Return a statement that fills a list, after one that names its mask where it needs it twice.

    Raises
    ------
    NotRaised
        It computes what may fail for what is in no list.
    """
    own = Read(store.array, store.region)
    mask, value = picked(store.value, own)
    arrays = [one for one in reads(value) if type_of(one, kernel).extents]
    known = set(always(store.value))
    tested = (part for part in (() if mask is None else parts_of(mask)) if part not in known)
    if guarded(value, kernel) or any(is_loud(part, kernel) for part in tested):
        # of what is in no list nothing may be computed
        raise NotRaised
    if mask is None:
        return (store,), kernel
    before: tuple[Statement, ...] = ()
    if not isinstance(mask, Read) and len(arrays) > 1:
        bind, mask, kernel = named("mask", mask, store.span, kernel)
        before = (bind,)
    chosen = Elementwise("where", (mask, value, own))
    return (*before, replace(store, value=chosen, in_place=True, held=())), kernel


def in_list(text: str, store: Store, kernel: Kernel) -> str | None:
    """Return the source of a list, given that of its elements as an array."""
    known = kernel.lists[store.array]
    if known.places > 1 and not known.picked:
        text = f"{_tight(text)}.ravel()"
    elif base_of(store.value) is not None and not known.escapes:
        text = f"{_tight(text)}.copy()"
    if not known.escapes:
        return text
    if known.of_python is None or "list" in kernel.context.not_builtins:
        return None
    return f"{_tight(text)}.tolist()" if known.of_python else f"list({text})"


def _tight(text: str) -> str:
    """Return source in parentheses where a method of all of it would be one of its last part."""
    return text if isinstance(ast.parse(text, mode="eval").body, _ALONE) else f"({text})"


def doubt(store: Store, kernel: Kernel) -> str:
    """Return on what it hangs that an array does as well as a list; empty where on nothing."""
    known = kernel.lists.get(store.array)
    if known is None or known.escapes:
        return ""
    flat = len(kernel.extents(store.array)) == known.places
    if flat and kernel.dtype(store.array) == "float64":
        return ""
    return "results are equal if something is appended: NumPy makes float64 of nothing"


def comprehended(stores: Sequence[Store], kernel: Kernel) -> Span | None:
    """Return where the comprehension stands that stores do the work of; None for none."""
    known = filter(None, (kernel.lists.get(one.variable or one.array) for one in stores))
    return next((one.place for one in known if one.place is not None), None)


def in_statement(call: Span, lines: list[str], kernel: Kernel) -> tuple[Edit, ...]:
    """Return what puts an array in the place of a comprehension, and names it needs before it.

    Parameters
    ----------
    call : Span
        Of what makes an array of the comprehension.
    lines : list of str
        The last one is the array.
    kernel : Kernel
    """
    context = kernel.context
    around = (
        (span_of(node, context.lines), node)
        for (line, _), node in statements_at(context).items()
        if line == call.start_line
    )
    found = [(place, node) for place, node in around if place.contains(call)]
    if len(found) != 1 or not stands_alone(context, found[0][0]):
        return ()
    place, node = found[0]
    for comprehension in (one for one in ast.walk(node) if isinstance(one, ast.comprehension)):
        targets = ast.walk(comprehension.target)
        own = {one.id for one in targets if isinstance(one, ast.Name)}
        # names that only the comprehension knows, or one around that no line may stand in
        within = call.contains(span_of(comprehension.target, context.lines))
        if own.intersection(_WORD.findall("\n".join(lines if within else lines[:-1]))):
            return ()
    ahead = Span(place.start_line, place.start_column, call.start_line, call.start_column)
    behind = Span(call.end_line, call.end_column, place.end_line, place.end_column)
    (*before, made), (first, last) = lines, (context.text(one) for one in (ahead, behind))
    if "\n" in last:
        return ()
    if not (_FREE.search(first) and last[:1] in (")", ",", "")):
        made = _tight(made)
    return (replace_statement(place, [*before, f"{first}{made}{last}"], context),)


def edits_of(stores: tuple[Store, ...], kernel: Kernel) -> Iterator[Edit]:
    """Yield what else changes where arrays take the place of lists."""
    context = kernel.context
    names = {one.array for one in stores if one.array in kernel.lists and not one.variable}
    names = {name for name in names if kernel.lists[name].place is None}
    first, last = context.whole
    binds = (one for one in walk(kernel.body) if isinstance(one, Bind) and one.name in names)
    begun = {(one.span.start_line, one.span.start_column) for one in binds}
    for (line, _), node in statements_at(context).items():
        inside = first <= line <= last
        match node:
            case ast.Assign([ast.Name(name)], value) if inside and name in names:
                place = span_of(node, context.lines)
                empty = ast.unparse(value) in ("[]", "list()")
                if empty and (place.start_line, place.start_column) in begun:
                    yield replace_statement(place, [], context)
                if _array_of(value, kernel) == name and _is_made(node, name, kernel):
                    yield replace_statement(place, [], context)
                    names.remove(name)
    for part in nodes_of(context.source) if names else ():
        name = _array_of(part, kernel)
        if name in names and isinstance(part, ast.expr) and _is_made(part, name, kernel):
            yield Edit(span_of(part, context.lines), name)


def _is_made(node: ast.expr | ast.stmt, name: str, kernel: Kernel) -> bool:
    """Return whether what stands somewhere makes an array of a list, which nothing else needs."""
    place, known = span_of(node, kernel.context.lines), kernel.lists[name]
    first, last = kernel.context.whole
    within = Span(first, 0, last + 1, 0) if known.rebound is None else known.rebound
    return within.contains(place) and not known.escapes


def _array_of(node: ast.AST, kernel: Kernel) -> str:
    """Return the name of that of which a call makes an array as it is; empty for others."""
    match node:
        case ast.Call(
            ast.Attribute(ast.Name(module), "array" | "asarray"), [ast.Name(name)], []
        ) if module == kernel.context.array_module:
            return name
    return ""
