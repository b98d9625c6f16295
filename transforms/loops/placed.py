"""Loops that combine elements at places that only the data know, each as one call for all of it.

``g[at[i]] += w[i]; g[at[i] + 1] += v[i]`` is ``np.add.at(g, at, w); np.add.at(g, at + 1, v)``: the
indices of all loops around become axes of the places, which calls go through in the same order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from advisor.ir.kernel import Kernel, Legality, Proposal
from advisor.ir.shapes import ShapeConflict, kind_of_or_none, whole
from advisor.ir.statements import SET, Bind, Loop, Scatter, Statement, Store, mentioned, walk
from advisor.ir.values import (
    Chosen,
    Elementwise,
    Fill,
    Gather,
    Read,
    Scalar,
    Tally,
    Value,
    parts_of,
    reads,
)
from advisor.numpy_table import Kind, broadcast, count_of, promote
from advisor.source import Edit, Span
from costdb.expr import ONE
from costdb.expr.functions import chance
from transforms.kit import kernels, rewrite
from transforms.loops.array_statements import edit, given, loops, on, proposal
from transforms.loops.array_text import NoWords, Words
from transforms.loops.exactness import WHOLE, inexact, made_whole, of_other_order, tidied
from transforms.loops.lift import Lift, needed
from transforms.loops.masked import NotRaised, guarded
from transforms.loops.raising import is_raisable
from transforms.loops.substituted import substituted


def placed(kernel: Kernel) -> Iterator[Proposal]:
    """Yield one call for each statement of a loop that combines at places, or stores there."""
    for outer, loop in loops(kernel.body):
        if not any(isinstance(one, Scatter) for one in walk(loop.body)):
            continue
        plain, within, conditions = substituted(loop, outer, kernel)
        if conditions:
            continue
        for known, condition in given(plain, within):
            try:
                after = _over_all(plain, outer, known)
                argued = _legality(after, known)
                statements, variant = tidied(after, known)
            except (NotRaised, ShapeConflict):
                continue
            argued = on(argued, condition) if condition else argued
            if any(isinstance(one, Loop) for one in loop.body):
                argued = on(argued, "if the terms of all iterations fit in memory")
            edits = partial(edit, loop, statements, variant)
            if edits():
                sets = all(one.operation == SET for one in after)
                by = "assignments to places" if sets else "`add.at`"
                yield proposal(loop, statements, variant, argued, edits, True, by)
            break


def as_stores(one: Scatter, kernel: Kernel) -> tuple[Store, Store]:
    """Return what is read for the places, and for the values, as stores that read it."""
    region = whole(kernel.extents(one.array))
    places = Gather(Read(one.array, region), one.places, one.others)
    return Store(one.array, region, places, one.span), Store(one.array, region, one.value, one.span)


def _over_all(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> tuple[Scatter, ...]:
    """Return what the statements in a loop do in all iterations, one after the other.

    Raises
    ------
    NotRaised
        They have to take turns, or something has no form for all iterations.
    """
    if not is_raisable(loop, kernel) or loop.step != 1:
        raise NotRaised
    body: list[Scatter] = []
    for one in loop.body:
        if isinstance(one, Loop):
            body += _over_all(one, (*outer, loop), kernel)
        elif isinstance(one, Scatter) and one.by_element:
            body.append(one)
        else:
            raise NotRaised
    needs = {read.array for one in body for v in (*one.all_places, one.value) for read in reads(v)}
    for one in body:
        ways = {other.operation for other in body if other.array == one.array}
        several = sum(other.array == one.array for other in body) > 1
        if one.array in needs or len(ways) > 1 or (several and SET in ways):
            raise NotRaised
    lift = Lift(loop, outer, kernel, kernels.proofs(kernel, outer))
    stores = [store for one in body for store in as_stores(one, kernel)]
    lift.needed = frozenset(read for store in stores for read in needed(store))
    for store in stores:
        if not lift.is_there(store):
            raise NotRaised
        lift.note(store)
    return tuple(_lifted(one, lift) for one in body)


def _lifted(one: Scatter, lift: Lift) -> Scatter:
    """Return a statement for all iterations, which come first in the order of its places."""
    values = (*one.all_places, one.value)
    rank = max(map(lift.rank, values))

    def lifted(value: Value) -> Value:
        made, place = lift.value(value, rank)
        return lift.aligned(made, place, lift.rank(value), rank, 0)

    first, *others, terms = map(lifted, values)
    extents = broadcast([kernels.type_of(one, lift.kernel).extents for one in (first, *others)])
    if len(extents) <= rank or ONE in extents:
        # places that are the same ones in each iteration
        raise NotRaised
    held = []
    for name, value in one.held:
        try:
            held.append((name, lifted(value)))
        except NotRaised:
            continue
    first, *others, terms = _where_chosen((first, *others, terms), lift.kernel, lift.loop.span)
    return Scatter(
        one.array,
        first,
        terms,
        one.operation,
        lift.loop.span,
        by_element=True,
        others=tuple(others),
        held=tuple(held),
    )


def _where_chosen(values: Sequence[Value], kernel: Kernel, span: Span) -> Sequence[Value]:
    """Return places and terms of what is added on a condition as those that it chooses."""
    match values[0]:
        case Elementwise("where", (mask, _, nothing)):
            pass
        case _:
            return values
    found = kernels.type_of(mask, kernel)
    kept: list[Value] = []
    for one in values:
        match one:
            case Elementwise("where", (test, Scalar() as chosen, rest)) if test == mask:
                kept.append(chosen)
            case Elementwise("where", (test, chosen, rest)) if (test, rest) == (mask, nothing):
                if kernels.type_of(chosen, kernel).extents != found.extents:
                    raise NotRaised
                kept.append(Chosen(chosen, mask, chance(span.start_line) * count_of(found.extents)))
            case _:
                raise NotRaised
    return kept


def _legality(after: Sequence[Scatter], kernel: Kernel) -> Legality:
    """Return why results stay what they are.

    Raises
    ------
    NotRaised
        They may not.
    """
    stores = [store for one in after for store in as_stores(one, kernel)]
    for one in after:
        target, found = kernel.dtype(one.array), kernels.type_of(one.value, kernel).dtype
        number = isinstance(one.value, Scalar) and promote(target, found) == target
        if not (number or target == found):
            raise NotRaised
        if any(guarded(value, kernel) for value in (*one.all_places, one.value)):
            raise NotRaised
    apart = kernels.unless_apart(stores, kernel)
    argued = apart or kernels.safe(
        "the same terms are combined in the same order, each place for itself"
    )
    arrays = [one.array for one in after]
    rounded = [n for n in arrays if kind_of_or_none(kernel.dtype(n)) is not Kind.INTEGER]
    if len(rounded) > len(set(rounded)):
        words = "what several statements add to the same elements comes in another order"
        argued = kernels.unsafe(f"{words}, so results agree to rounding")
        argued = on(argued, "if no two arrays overlap in memory") if apart else argued
    stored = [
        broadcast([kernels.type_of(place, kernel).extents for place in one.all_places])
        for one in after
        if one.operation == SET
    ]
    if stored:
        # through places of several axes NumPy goes as they lie in memory
        ordered = all(len(places) == 1 for places in stored)
        words = ", or NumPy stores in their order, as it does" * ordered
        argued = on(argued, f"if no place comes twice{words}")
    doubts = (
        words for store in stores for words in (of_other_order(store), *inexact(store, kernel))
    )
    for words in filter(None, dict.fromkeys(doubts)):
        argued = kernels.unsafe(f"{argued.argument}, and {words}")
    if any(made_whole(part, kernel) for store in stores for part in parts_of(store.value)):
        argued = on(argued, WHOLE)
    return argued


# --- scatters -------------------------------------------------------------------------------------
# What loops, or calls, combine at places that only the data know: which there are, and as text.


def scatters(body: tuple[Statement, ...]) -> Iterator[tuple[Scatter, bool]]:
    """Yield scatters, and whether their array was filled with zeros just before."""
    zeros: set[str] = set()
    for statement in body:
        match statement:
            case Scatter():
                yield statement, statement.array in zeros
            case Loop(body=inner):
                yield from scatters(inner)
        zeros -= mentioned(statement)
        match statement:
            case Bind(name=name, value=Fill(value="0" | "0.0" | "0.")):
                zeros.add(name)


def is_count(scatter: Scatter) -> bool:
    """Return whether each place counts by one."""
    return scatter.operation == "add" and scatter.value == Scalar("1", "integer literal")


def tallied(
    scatter: Scatter, title: str, reason: str, argued: Legality, kernel: Kernel
) -> Proposal:
    """Return the proposal to add up by ``bincount`` what comes to each place."""
    extents = kernel.extents(scatter.array)
    region = whole(extents)
    tally = Tally(scatter.places, scatter.value, extents[0], "float64")
    if is_count(scatter):
        tally = Tally(scatter.places, None, extents[0], "int64")
    added = Elementwise("add", (Read(scatter.array, region), tally))
    store = Store(scatter.array, region, added, scatter.span, in_place=True)
    given = (scatter.places,) if is_count(scatter) else (scatter.places, scatter.value)
    return kernels.offered(
        kernel,
        rewrite.first_line(scatter.span, kernel.context),
        title,
        reason,
        kernel.with_body(kernels.with_statement(kernel.body, scatter, (store,))),
        argued,
        partial(_edits, scatter, given, kernel),
    )


def _edits(scatter: Scatter, given: tuple[Value, ...], kernel: Kernel) -> tuple[Edit, ...]:
    context, name = kernel.context, scatter.array
    try:
        terms, numpy = ", weights=".join(_given(scatter, given, kernel)), Words(kernel).module
    except NoWords:
        return ()
    if not terms or "\n" in terms or not rewrite.stands_alone(context, scatter.span):
        return ()
    made = f"{name} += {numpy}.bincount({terms}, minlength={name}.shape[0])"
    return (rewrite.replace_statement(scatter.span, [made], context),)


def _given(scatter: Scatter, given: tuple[Value, ...], kernel: Kernel) -> list[str]:
    """Return the source of places and values; nothing where it does something else."""
    node: ast.stmt | None = rewrite.statement_at(scatter.span, kernel.context)
    if scatter.by_element:
        flat = False
        while isinstance(node, ast.For) and len(node.body) == 1:
            flat |= ast.unparse(node.iter).endswith((".flatten()", ".ravel()", ".flat"))
            node = node.body[0]
        if not isinstance(node, ast.Assign | ast.AugAssign):
            return []
        # in the order of the loops
        several = flat or any(len(kernels.type_of(one, kernel).extents) > 1 for one in given)
        return [Words(kernel).text(one) + ".ravel()" * several for one in given]
    match node:
        case ast.Expr(ast.Call(args=[_, *parts])) if len(parts) == 2:
            lines = kernel.context.lines
            return [kernel.context.text(rewrite.span_of(one, lines)) for one in parts[: len(given)]]
    return []
