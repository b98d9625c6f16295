"""Lists that loops fill, as arrays: what is put in their place, and what else changes for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.ir.kernel import Kernel
from advisor.ir.shapes import is_whole
from advisor.ir.statements import Statement, Store
from advisor.ir.values import Chosen, Elementwise, Read, Value, parts_of, reads
from advisor.source import Edit, Span
from costdb.expr import ONE
from costdb.wording import IDENTIFIER
from transforms.kit.kernels import named, type_of
from transforms.kit.rewrite import nodes_of, replace_statement, span_of, stands_alone, statements_at
from transforms.loops.masked import NotRaised, always, guarded, is_loud

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
    elif isinstance(store.value, Read) and not known.escapes:
        text = f"{text}.copy()"
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
    """Return where the comprehension stands that stores fill an array for; None for none."""
    found = [kernel.lists[one.array].place for one in stores if one.array in kernel.lists]
    return next((place for place in found if place is not None), None)


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
    own = {
        name.id
        for one in ast.walk(node)
        if isinstance(one, ast.comprehension)
        for name in ast.walk(one.target)
        if isinstance(name, ast.Name)
    }
    if (place.end_line, place.end_column) != (call.end_line, call.end_column):
        return ()
    if own.intersection(_WORD.findall("\n".join(lines))):
        # names that only the comprehension knows
        return ()
    ahead = Span(place.start_line, place.start_column, call.start_line, call.start_column)
    *before, made = lines
    return (replace_statement(place, [*before, f"{context.text(ahead)}{made}"], context),)


def edits_of(stores: tuple[Store, ...], kernel: Kernel) -> Iterator[Edit]:
    """Yield what else changes where arrays take the place of lists."""
    context = kernel.context
    names = {one.array for one in stores if one.array in kernel.lists and not one.variable}
    names = {name for name in names if kernel.lists[name].place is None}
    first, last = context.whole
    for (line, _), node in statements_at(context).items():
        inside = first <= line <= last
        match node:
            case ast.Assign([ast.Name(name)]) if inside and name in names:
                yield replace_statement(span_of(node, context.lines), [], context)
    for part in nodes_of(context.source) if names else ():
        match part:
            case ast.Call(
                ast.Attribute(ast.Name(module), "array" | "asarray"), [ast.Name(name)], []
            ) if name in names and module == context.array_module:
                if not kernel.lists[name].escapes:
                    place = span_of(part, context.lines)
                    if first <= place.start_line <= last:
                        yield Edit(place, name)
