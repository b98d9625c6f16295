"""Statements over arrays in the place of loops: what is proposed, and why results stay."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, islice, pairwise

from advisor.finding import Applicability
from advisor.ir.dependence import may_be_distributed
from advisor.ir.kernel import Kernel, Legality, Proposal, symbols
from advisor.ir.nests import NO_INDEX, index_name, is_of_elements
from advisor.ir.shapes import ShapeConflict, kind_of_or_none
from advisor.ir.statements import (
    Bind,
    Loop,
    Statement,
    Store,
    Unrolled,
    is_total,
    parts_of_range,
    unrolled,
    walk,
)
from advisor.ir.values import (
    Along,
    Called,
    Elementwise,
    MatMul,
    Point,
    Read,
    Reduction,
    Tally,
    Value,
    Windows,
    parts_of,
)
from advisor.numpy_table import REDUCED, Kind
from advisor.source import Edit, Span
from costdb.expr import ONE, free_symbols, python_text
from costdb.expr.nodes import Num, Sym
from costdb.expr.polynomials import affine_in
from transforms.kit import rewrite
from transforms.kit.kernels import offered, proofs, safe, unsafe, with_statement
from transforms.loops.array_text import bound, counted, is_count, lines
from transforms.loops.axes import told
from transforms.loops.distances import CONDITION, with_products
from transforms.loops.exactness import legality_of, tidied
from transforms.loops.expanded import expanded
from transforms.loops.lift import Raised
from transforms.loops.masked import NotRaised, comprehended, edits_of, in_statement
from transforms.loops.raising import WORD, raised, sequential, summed_apart
from transforms.loops.searched import Passed, is_search, legality, passed, searched
from transforms.loops.substituted import substituted

IF_NOT_EMPTY = "if no loop of it is empty"

_DOUBT = {Applicability.SAFE: 0, Applicability.UNSAFE: 1, Applicability.DISPLAY: 2}


def array_statements(kernel: Kernel, *, of_elements: bool) -> Iterator[Proposal]:
    """Yield statements over arrays for each loop over elements, or over array statements."""
    for outer, loop in loops(kernel.body):
        flat, known, (least, conditions) = loop, kernel, _in_order(loop.body, kernel)
        if unrolled(loop.body) != loop.body:
            flat = replace(loop, body=unrolled(loop.body))
            known = kernel.with_body(with_statement(kernel.body, loop, (flat,)))
            known = replace(known, least={**known.least, **least})
        for made in _made(flat, outer, known, of_elements):
            if _may_be_empty(made, loop.body, kernel):
                continue
            variant = replace(made.kernel, body=kernel.body)
            edits = partial(edit, loop, made.statements, variant)
            if any(one.variable for one in stores_in(made.statements)) and _is_raised(
                outer, kernel
            ):
                # a number of one iteration is gone with the loop around
                edits = partial(tuple)
            # what has no words here is no better written by somebody else
            if made.is_told or edits():
                argued = reduce(on, conditions, made.argued)
                after = made.statements
                yield proposal(loop, after, variant, argued, edits, of_elements, made.by)
    yield from _in_parts(kernel, of_elements)


@dataclass(frozen=True, slots=True)
class _Made:
    """Statements in the place of a loop, and why results stay; where `is_told`, also unwritten."""

    statements: tuple[Statement, ...]
    kernel: Kernel
    argued: Legality
    by: str = ""
    is_told: bool = False


def _made(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel, of_elements: bool, *, within: bool = False
) -> Iterator[_Made]:
    """Yield statements for a loop, or for those `within` it, which have no text of their own."""
    own, widened, kernel = expanded(loop, kernel)
    plain, known, conditions = substituted(widened, outer, kernel)
    if is_search(plain):
        if of_elements:
            yield from _found(loop, plain, outer, known)
        return
    spread = _of_all_iterations(own)
    scanned = [one for _, inner in loops((plain,)) for one in passed(inner, known)]
    numbers = [one.store for one in scanned]
    before = tuple(one for one in stores_in(plain.body) if one not in numbers)
    if not before or all(map(_is_of_elements, before)) != of_elements:
        return
    ways = [frozenset[str](), sequential(plain, outer, known)]
    if within and any(isinstance(one, Loop) for one in plain.body):
        ways.append(frozenset({plain.variable}))
    for kept in dict.fromkeys(ways if ways[1] else (ways[0], *ways[2:])):
        after, condition = _raised(plain, outer, known, kept)
        argued = legality_of(before, stores_in(after), known) if after else None
        if argued is None:
            continue
        argued = _reordered(plain, before, known) or argued
        argued = next(_doubted(argued, scanned, known), argued)
        for one in (*conditions, *spread):
            argued = on(argued, one)
        argued = on(argued, condition) if condition else argued
        computed = [part for one in stores_in(after) for part in told(one.value)]
        for one in dict.fromkeys(map(_condition, computed)):
            argued = on(argued, one) if one else argued
        if conditions:
            argued = on(argued, "if the terms of all rows fit in memory")
        filled = (one for one in before if one.region and one.array in kernel.lists)
        lists = any(loop.variable in symbols(Read(one.array, one.region)) for one in filled)
        by = _kind_of_sum(stores_in(after), kernel) if of_elements else ""
        shown = of_elements and not kept and not lists
        for body, why, how in ((after, argued, by), *_by_distances(after, argued, known)):
            with suppress(NotRaised):
                statements, variant = tidied(body, known)
                yield _Made((*own, *statements), variant, why, how, shown)


def _of_all_iterations(own: Sequence[Bind]) -> tuple[str, ...]:
    """Return on what conditions the arrays of all iterations may be made before a loop."""
    if not own:
        return ()
    named = " and ".join(f"`{one.name}`" for one in own)
    return f"if {named} of all iterations fit{'s' * (len(own) == 1)} in memory", IF_NOT_EMPTY


def _by_distances(
    after: tuple[Raised, ...], argued: Legality, kernel: Kernel
) -> Iterator[tuple[tuple[Raised, ...], Legality, str]]:
    """Yield statements that take distances of all pairs from a product, where there are some."""
    made = with_products(after, kernel)
    if made != after:
        yield made, on(argued, CONDITION), "statements with a product of arrays"


def _in_parts(kernel: Kernel, of_elements: bool) -> Iterator[Proposal]:
    """Yield statements for each loop that is read in parts of its range, of all in turn."""
    for outer, whole in _parted(kernel.body):
        parts = tuple(replace(one, body=unrolled(one.body)) for one in parts_of_range(whole))
        least, conditions = _in_order((whole,), kernel)
        known = kernel.with_body(with_statement(kernel.body, whole, parts))
        known = replace(known, least={**known.least, **least})
        made = [
            one
            for part in parts
            for one in islice(_made(part, outer, known, of_elements, within=len(parts) == 1), 1)
        ]
        if len(made) == len(parts) and not _may_be_empty(made[0], (whole,), kernel):
            after = tuple(chain.from_iterable(one.statements for one in made))
            weakest = max((one.argued for one in made), key=lambda one: _DOUBT[one.applicability])
            argued = reduce(on, conditions, weakest)
            names = {name: found for one in made for name, found in one.kernel.locals.items()}
            known = replace(made[-1].kernel, body=kernel.body, locals=names)
            edits = partial(edit, whole, after, known)
            yield proposal(whole, after, known, argued, edits, of_elements)


def _parted(
    body: Sequence[Statement], outer: tuple[Loop, ...] = ()
) -> Iterator[tuple[tuple[Loop, ...], Unrolled]]:
    """Yield the loops of a block that are read in parts, each with those around it."""
    for one in body:
        if isinstance(one, Unrolled) and parts_of_range(one):
            yield outer, one
        elif isinstance(one, Loop):
            yield from _parted(one.body, (*outer, one))


def _in_order(body: tuple[Statement, ...], kernel: Kernel) -> tuple[dict[str, int], list[str]]:
    """Return the least sizes with which parts of ranges are in order, and that in words."""
    least: dict[str, int] = {}
    words: list[str] = []
    texts = kernel.context.scalar_texts
    for parts in map(parts_of_range, walk(body)):
        if len(parts) < 2:
            # one alone is empty where its ends are the other way round
            continue
        ends = [end for one in parts for end in (one.low, one.high)]
        first = (ends[0] + 1, ends[-1])
        ordered = [(a, b) for a, b in pairwise(ends) if not isinstance(b - a, Num)]
        said = [(a, b) for a, b in ordered if b - a != first[1] - first[0]]
        words += [IF_NOT_EMPTY]
        words += [f"if {python_text(a, texts)} <= {python_text(b, texts)}" for a, b in said]
        for one, other in (*ordered, first):
            for name in free_symbols(other - one):
                slope, rest = affine_in(other - one, name) or (None, None)
                if slope == ONE and isinstance(rest, Num):
                    least[name] = max(least.get(name, 1), math.ceil(-rest.value))
    return least, words


def _may_be_empty(made: _Made, body: tuple[Statement, ...], kernel: Kernel) -> bool:
    """Return whether statements hang on a loop that may be empty where those of the source are not.

    Such go through the part of a range in which a condition holds.
    """
    alone = [parts[0] for parts in map(parts_of_range, walk(body)) if len(parts) == 1]
    known = proofs(kernel, ())
    sure = all(known.non_negative(one.high - one.low) for one in alone)
    return IF_NOT_EMPTY in made.argued.argument and not sure


def _reordered(loop: Loop, before: Sequence[Store], kernel: Kernel) -> Legality | None:
    """Return what changes where statements add to the same elements in turn, each at once then."""
    kinds = {kind_of_or_none(kernel.dtype(array)) for array in summed_apart(before)}
    if not kinds - {Kind.INTEGER} or may_be_distributed(loop):
        return None
    return unsafe(
        "what several statements add to the same elements comes in another order, so results agree"
        " to rounding"
    )


def on(argued: Legality, condition: str) -> Legality:
    """Return an argument that holds on a condition."""
    if condition in argued.argument:
        return argued
    return unsafe(f"{argued.argument}, {condition}")


def _found(loop: Loop, plain: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> Iterator[_Made]:
    """Yield what a search finds."""
    try:
        found = searched(plain, outer, kernel)
    except (NotRaised, ShapeConflict):
        return
    argued = safe("the first of equal ones is found, as in the loop")
    argued = on(argued, f"{found.condition}, {IF_NOT_EMPTY}")
    lines_after = kernel.context.lines[loop.span.end_line : kernel.context.whole[1]]
    used = found.best.array in WORD.findall("\n".join(lines_after))
    after = (found.place, found.best) if used or outer else (found.place,)
    yield _Made(after, kernel, argued, "a search of arrays")


def _doubted(argued: Legality, scanned: Sequence[Passed], kernel: Kernel) -> Iterator[Legality]:
    """Yield why scans may not hold the same, with what else is not sure."""
    doubts = [
        one
        for one in (legality(scan, kernel) for scan in scanned)
        if one.applicability is not Applicability.SAFE
    ]
    if not doubts:
        return
    words = [doubts[0].argument]
    if argued.applicability is Applicability.UNSAFE:
        words.append(argued.argument)
    yield unsafe(", ".join(words))


def _raised(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel, kept: frozenset[str]
) -> tuple[tuple[Raised, ...], str]:
    """Return what a loop is raised to, nothing where it is not, and a condition on it."""
    for known, condition in given(loop, kernel):
        try:
            return raised(loop, outer, known, kept), condition
        except (NotRaised, ShapeConflict):
            continue
    return (), ""


def _condition(value: Value) -> str:
    """Return on what condition a value is as good; empty where on none."""
    match value:
        case Along(operand=operand) if any(isinstance(one, Windows) for one in told(operand)):
            return "if a copy of all windows fits in memory"
        case Elementwise(_, parts) if any(isinstance(one, Windows) for one in parts):
            return "if a copy of all windows fits in memory"
        case Reduction(operand) if not any(isinstance(one, Read) for one in parts_of(operand)):
            return "if all of its terms fit in memory"
        case Called("searchsorted"):
            return "if the limits of groups ascend"
        case Called("repeat"):
            return (
                "if one row begins where the one before it ends, the first one at the first element"
            )
        case Tally(Read()):
            return "if no group is negative, or far beyond the last"
    return ""


def _is_raised(outer: tuple[Loop, ...], kernel: Kernel) -> bool:
    """Return whether the innermost of some loops becomes array statements itself."""
    if not outer:
        return False
    plain, known, _ = substituted(outer[-1], outer[:-1], kernel)
    return bool(_raised(plain, outer[:-1], known, frozenset())[0])


def given(loop: Loop, kernel: Kernel) -> Iterator[tuple[Kernel, str]]:
    """Yield a kernel with ever more that is taken to hold of a loop, and that in words."""
    yield kernel, ""
    # then every element is there, or its subscript an error
    known = replace(kernel, runs_through=True)
    yield known, IF_NOT_EMPTY
    extents = {
        name
        for array in kernel.arrays
        for one in kernel.extents(array)
        for name in free_symbols(one)
    }
    indices = _all_loops((loop,)).keys()
    texts = kernel.context.scalar_texts
    numbers = sorted((symbols(loop) - extents - indices) & texts.keys())
    if numbers:
        named = " and ".join(f"`{texts[one]}`" for one in numbers)
        for least, words in ((0, "not negative"), (1, "positive")):
            told = f"{IF_NOT_EMPTY} and {named} {'is' if len(numbers) == 1 else 'are'} {words}"
            yield replace(known, least={**dict.fromkeys(numbers, least), **kernel.least}), told


def stores_in(body: Sequence[Statement]) -> tuple[Store, ...]:
    """Return the stores among statements, and within them."""
    return tuple(one for one in walk(tuple(body)) if isinstance(one, Store))


def loops(
    body: Sequence[Statement], outer: tuple[Loop, ...] = ()
) -> Iterator[tuple[tuple[Loop, ...], Loop]]:
    """Yield the loops of a block, each with those around it, outermost first."""
    for one in body:
        if isinstance(one, Loop):
            yield outer, one
            yield from loops(one.body, (*outer, one))


def _all_loops(body: Sequence[Statement]) -> dict[str, Loop]:
    """Return the loops of a block by their variables, also those that are read in parts."""
    return {one.variable: one for one in walk(tuple(body)) if isinstance(one, Loop)}


def proposal(
    loop: Loop | Unrolled,
    after: Sequence[Statement],
    kernel: Kernel,
    argued: Legality,
    edits: partial[tuple[Edit, ...]],
    of_elements: bool,
    by: str = "",
) -> Proposal:
    """Return the proposal of statements for a loop and all within it."""
    within = _all_loops((loop,))
    stays = _all_loops(after)
    first = next((one for one in within if one not in stays), "")
    gone = [within[one] for one in within if one not in stays and (of_elements or one == first)]
    by = by or ("one array statement" if len(stores_in(after)) == 1 else "array statements")
    if stays:
        by += f" within {loops_named([*stays.values()], kernel)}"
    reason = "one call does what every iteration calls NumPy for"
    if of_elements:
        reason = "no interpreter runs for each element"
        if any(array.spec.mesh.axes for array in kernel.arrays.values()):
            fetched = "a statement over a slice fetches all that it needs of other ranks at once"
            reason = f"{fetched}, and {reason}"
    made = tuple(
        bound(one, kernel) if isinstance(one, Store) and is_total(one) else one for one in after
    )
    return offered(
        kernel,
        rewrite.first_line(loop.span, kernel.context),
        f"replace {loops_named(gone, kernel)} by {by}",
        reason,
        kernel.with_body(with_statement(kernel.body, loop, counted(made, kernel))),
        argued,
        edits,
    )


def loops_named(some: Sequence[Loop], kernel: Kernel) -> str:
    """Return how a title names loops: by what the source calls an index, or what has none."""
    nodes, names = rewrite.statements_at(kernel.context), list[str]()
    for one in some:
        node = nodes.get((one.span.start_line, one.span.start_column))
        own = index_name(one.variable)
        if own == NO_INDEX and isinstance(node, ast.For):
            own = ast.unparse(node.target)
        elif own == NO_INDEX:
            # the first comprehension there is what has no index
            inside = (
                part.generators[0].target
                for part in rewrite.nodes_of(kernel.context.source)
                if isinstance(part, ast.ListComp | ast.GeneratorExp)
                and one.span.contains(rewrite.span_of(part, kernel.context.lines))
            )
            own = next(map(ast.unparse, inside), own)
        names.append(f"`{own.removeprefix('(').removesuffix(')')}`")
    return f"the loop{'s' if len(some) > 1 else ''} over {', '.join(names)}"


def _is_of_elements(store: Store) -> bool:
    points = all(isinstance(part, Point) for part in store.region)
    return points and is_of_elements(store.value)


# --- the source ---------------------------------------------------------------------------------


def edit(loop: Loop | Unrolled, after: Sequence[Statement], kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edit that puts statements in the place of a loop; none where it cannot be."""
    known = lines(after, _with_names_in(loop, kernel))
    within = comprehended(stores_in(after), kernel)
    if known is not None and within is not None:
        return in_statement(within, known, kernel) if within == loop.span else ()
    if known is None or not _is_all_of(loop, after, "\n".join(known), kernel):
        return ()
    if not rewrite.stands_alone(kernel.context, loop.span):
        return ()
    others = edits_of(stores_in(after), kernel)
    return (*others, rewrite.replace_statement(loop.span, known, kernel.context))


def _with_names_in(loop: Loop | Unrolled, kernel: Kernel) -> Kernel:
    """Return a kernel that knows numbers by the names that a loop has for them, and no others."""
    context = kernel.context
    used = set(WORD.findall(context.text(loop.span)))
    computed = tuple(one for one in context.computed if one[0] in used)
    texts = {value.name: name for name, value in computed if isinstance(value, Sym)}
    known = replace(context, computed=computed, scalar_texts={**context.scalar_texts, **texts})
    return replace(kernel, context=known)


def _is_all_of(
    loop: Loop | Unrolled, after: Sequence[Statement], text: str, kernel: Kernel
) -> bool:
    """Return whether a loop of the source does nothing but what statements say.

    Their text may need no name that only the loop binds.
    """
    context = kernel.context
    nodes = rewrite.statements_at(context)
    node = nodes.get((loop.span.start_line, loop.span.start_column))
    if node is None:
        return False
    indices = set(map(index_name, _all_loops((loop,))))
    begun = {name for one in _all_loops((loop,)).values() for name, _ in one.starts}
    changed = {one.variable or one.array for one in stores_in(after)}
    own: set[str] = set()
    for part in ast.walk(node):
        match part:
            case (
                ast.For() | ast.Assign() | ast.AugAssign() | ast.If() | ast.Pass() | ast.Continue()
            ):
                continue
            case ast.Expr(ast.Call(keywords=[ast.keyword("out"), *_])):
                continue
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(), "append"))):
                continue
            case ast.stmt():
                return False
            case ast.Name(name, ast.Store()) if name not in changed:
                own.add(name)
    bound = {one.name for one in walk(tuple(after)) if isinstance(one, Bind)}
    bound |= set(map(index_name, _all_loops(after)))
    if (own - bound).intersection(WORD.findall(text)):
        return False
    first, last = context.whole
    own -= indices

    def is_outside(part: ast.AST) -> bool:
        if not isinstance(part, ast.Name) or part.id not in own:
            return False
        place: Span = rewrite.span_of(part, context.lines)
        if part.id in begun and place.start_line < loop.span.start_line:
            # what it was before the loop is no longer asked for
            return False
        return first <= place.start_line <= last and not loop.span.contains(place)

    return not own or not any(is_outside(part) for part in rewrite.nodes_of(context.source))


def _kind_of_sum(after: Sequence[Store], kernel: Kernel) -> str:
    """Return what a reduction of elements is called; empty where there is none."""
    for one in after:
        for part in parts_of(one.value):
            if isinstance(part, MatMul) or (isinstance(part, Reduction) and part.fused):
                return "a product of arrays"
            if isinstance(part, Reduction) and is_count(part, kernel):
                return "a `count_nonzero` of arrays"
            if isinstance(part, Reduction):
                return f"a `{REDUCED[part.operation]}` of arrays"
    return ""
