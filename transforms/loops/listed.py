"""# ADV508 elements-as-numbers

**What it does.** Finds loops over single elements that no array statement replaces. They go through
lists of Python's numbers: arrays become lists before the loop, and what it stores to becomes the
array again.

**Why it costs.** An element of an array is made an object of NumPy's each time it is named, and so
is what is computed of it. Of a list it is a number that is there.

**Example**

```python
for j in range(1, n):
    a[i, j] = (a[i, j - 1] + a[i, j]) / 2
```

**Use instead**

```python
a_list = a[i].tolist()
for j in range(1, n):
    a_list[j] = (a_list[j - 1] + a_list[j]) / 2
a[i] = a_list
```

**When it stays quiet.** Where the loop names more of an array than elements, or calls what may; for
element types that Python's numbers are wider than, but where all operators are `&`, `|`, `^` and
`>>`; where what divides changes in the loop; with numbers that NumPy computed before; where a
number that the loop binds is asked for what only NumPy's have; where array statements do what the
loop does; and where the loop by itself does not get twice as fast, or a call saves less than 0.1
ms.

**Fix safety.** Unsafe: results are equal bit for bit where no number leaves its element type, and
nothing is divided by zero, for which Python raises an error. Numbers that the loop binds are
Python's afterwards. Where the row of an index is made a list, only a loop that runs shows that it
is there.

**Models used.** The steps of the interpreter: one on a number of a list is taken to be as long as
an iteration.

**References.** NumPy's documentation of `tolist`, and of scalars.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import prod

from advisor.ir import statements as ir
from advisor.ir.kernel import Kernel, Proposal, proposals_of
from advisor.ir.shapes import ShapeConflict, kind_of_or_none, whole
from advisor.ir.statements import Bind, Choice, Loop, Scatter, Statement, Store, walk
from advisor.ir.values import Gather, Read, parts_of
from advisor.numpy_table import PYTHON_FLOAT, PYTHON_INTEGER, strong
from advisor.source import Edit, Span, each_of
from costdb.expr import ONE, ZERO, Expr
from costdb.records import dataclass, replace
from transforms.kit import kernels, rewrite
from transforms.kit.rewrite import span_of
from transforms.loops import vectorise
from transforms.loops.array_statements import IF_NOT_EMPTY

LEAST = 2.0, 1e-3
"""The loop by itself, and seconds in all calls: lists take memory of their own."""

_LITERALS = frozenset({PYTHON_INTEGER, PYTHON_FLOAT})
_WIDE = _LITERALS | {"int64", "int32", "float64", "bool"}
_NARROW = _WIDE | {"int8", "int16", "uint8", "uint16", "uint32", "uint64"}
_BITS = {ast.BitAnd, ast.BitOr, ast.BitXor, ast.RShift, ast.Not}
"""Operators that leave no type."""
_PLACES = ast.Name | ast.BinOp | ast.Subscript | ast.Call | ast.Attribute
_CONDITION = (
    "numbers are Python's own, and equal where none leaves its element type and nothing is divided"
    " by zero, which raises an error"
)


@dataclass(frozen=True, slots=True)
class _Use:
    """An element that a loop names, or a vector through which it goes: that has no places."""

    name: ast.Name
    element: ast.expr
    places: tuple[ast.expr, ...]


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield for the outermost loops that lists do for the same over these."""
    if kernels.is_compiled_alone(kernel) or any(a.spec.mesh.axes for a in kernel.arrays.values()):
        return
    made = proposals_of(kernel, vectorise.propose)
    others = {one.span.start_line for one in made if one.least != vectorise.LEAST}
    yield from _in_block(kernel.body, kernel, others)


def _in_block(
    body: tuple[Statement, ...],
    kernel: Kernel,
    others: Collection[int],
    around: Sequence[Loop] = (),
) -> Iterator[Proposal]:
    for parts in vectorise.at_one_place(body):
        if parts[0].span.start_line not in others:
            inner = tuple(one for part in parts for one in part.body)
            found = list(_listed(parts, kernel, around))
            yield from found or _in_block(inner, kernel, others, parts)


def _listed(parts: Sequence[Loop], kernel: Kernel, around: Sequence[Loop]) -> Iterator[Proposal]:
    """Yield a loop, which may be read in parts, over lists in the place of arrays.

    Of what the loop `around` it neither changes nor moves through, it would make them in vain.
    """
    span, context = parts[0].span, kernel.context
    node = rewrite.statement_at(span, context)
    if not isinstance(node, ast.For) or not rewrite.stands_alone(context, span):
        return
    uses = _uses(node, kernel)
    if (
        not uses
        or not vectorise.is_compilable(node, context.source)
        or not _are_numbers(node, parts, uses, kernel)
    ):
        return
    bound, changed = {*_bound(node), *uses}, _stores(parts)
    stored = {one.array for one in changed}
    if stored & uses.keys() and len(uses) > 1 and kernel.aliases & uses.keys():
        # views of what changes
        return
    outer = rewrite.statement_at(around[0].span, context) if around else None
    moving = {one.array for one in _stores(around)} | (_bound(outer) if outer else set())
    names, count, most, ahead, behind, edits = dict[str, str](), ZERO, 1, "", "", list[Edit]()
    indent, condition = rewrite.indent_at(span, context), _CONDITION
    for array, own in uses.items():
        kept, extents = _kept(own, bound), kernel.extents(array)
        name = rewrite.fresh_name(f"{array}_list", {*context.identifiers, *kernel.locals})
        places = own[0].places[:kept]
        within = {getattr(n, "id", "") for place in places for n in ast.walk(place)}
        if around and moving.isdisjoint({array, *within}):
            return
        if kernel.assumed and not all(
            any(not use.places or _goes_along(use.places[k], bound) for use in own)
            for k in range(kept, len(extents))
        ):
            # it may name few of the elements that the list would have
            return
        part = array + f"[{', '.join(map(ast.unparse, places))}]" * bool(kept)
        names[array], most = name, max(most, len(extents) - kept)
        count = count + prod(extents[kept:], start=ONE) * (1 + (array in stored))
        ahead += f"{name} = {part}.tolist()\n{indent}"
        # a list of no rows does not tell how long they are
        rows = f"{context.array_module}.reshape({name}, {part}.shape)"
        made = rows if len(extents) - kept > 1 else name
        behind += f"\n{indent}{part if kept else f'{array}[:]'} = {made}" * (array in stored)
        written = [_rewritten(use, name, kept, kernel) for use in own]
        if not all(written):
            return
        edits += [edit for some in written for edit in some]
        condition = f"{_CONDITION}, {IF_NOT_EMPTY}" if kept else condition
    column = len(context.lines[span.end_line - 1])
    end = Span(span.end_line, column, span.end_line, column)
    edits = [Edit(rewrite.before(span), ahead), *edits, *[Edit(end, behind)] * bool(behind)]
    known, others = kernel, dict[int, tuple[Statement, ...]]()
    for loop in parts:
        each: Expr = count if loop is parts[0] else ZERO
        others[id(loop)] = (replace(kernels.renamed(loop, names), listed=(each, most)),)
    for array, name in names.items():
        value = Read(array, whole(kernel.extents(array)))
        known = known.with_locals({name: kernels.type_of(value, kernel)})
        others[id(parts[0])] = (Bind(name, value, span), *others[id(parts[0])])
    shared = kernels.overlaps(changed, kernel)
    found = kernels.offered(
        kernel,
        rewrite.first_line(span, context),
        f"turn {' and '.join(f'`{one}`' for one in uses)} into lists for the loop",
        "every element of an array is an object of NumPy's, which is slower than a number",
        known.with_body(kernels.replaced(kernel.body, others)),
        kernels.unsafe(condition + f", if {shared}" * bool(shared)),
        partial(tuple, edits),
    )
    rest = kernel.with_body(kernels.replaced(kernel.body, dict.fromkeys(others, ())))
    yield replace(found, least=LEAST, rest=rest)


def _stores(parts: Sequence[Loop]) -> list[Store]:
    # what is stored at places that only data tell has an array and a value, too
    return [one for one in walk(tuple(parts)) if isinstance(one, Store | Scatter)]  # type: ignore[misc]


def _uses(node: ast.For, kernel: Kernel) -> dict[str, list[_Use]]:
    """Return what a loop names of each array; nothing where that is more than elements."""
    parents = {part: one for one in ast.walk(node) for part in ast.iter_child_nodes(one)}
    arrays, found = {*kernel.arrays, *kernel.locals}, dict[str, list[_Use]]()
    for name in ast.walk(node):
        match name:
            case ast.Subscript(ast.Name(one)) | ast.For(iter=ast.Name(one)) if one not in arrays:
                # it may be a view
                return {}
        if not isinstance(name, ast.Name) or name.id not in arrays:
            continue
        rank, places = len(kernel.extents(name.id)), list[ast.expr]()
        element: ast.expr = name
        while len(places) < rank and isinstance(up := parents[element], ast.Subscript):
            if up.value is not element:
                break
            places += each_of(up.slice)
            element = up
        match parents[element]:
            case _ if not rank:
                # a number
                continue
            case ast.Attribute(attr="shape" | "size") | ast.Call(ast.Name("len")) if not places:
                continue
            case ast.For(iter=vector) if vector is name and rank == 1:
                pass
            case _ if len(places) != rank or not all(map(_is_index, places)):
                return {}
        found.setdefault(name.id, []).append(_Use(name, element, tuple(places)))
    return {} if found.keys() & {*kernel.lists, *kernel.given_as_lists} else found


def _is_index(place: ast.expr) -> bool:
    match place:
        case ast.Constant(value) | ast.UnaryOp(ast.USub(), ast.Constant(value)):
            return type(value) is int
    return isinstance(place, _PLACES)


def _goes_along(place: ast.expr, bound: Collection[str]) -> bool:
    """Return whether a place is that of an iteration, or differs from it by what is fixed."""
    match place:
        case ast.Name(name):
            return name in bound
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return any(_goes_along(one, bound) for one in (left, right))
    return False


def _kept(uses: Sequence[_Use], changing: Collection[str]) -> int:
    """Return how many of the first places are the same in all, and in every iteration."""
    kept = 0
    for column in zip(*(use.places[:-1] for use in uses), strict=False):
        nodes = list(ast.walk(column[0]))
        moves = (isinstance(n, ast.Call) or getattr(n, "id", "") in changing for n in nodes)
        if any(moves) or len(set(map(ast.dump, column))) > 1:
            break
        kept += 1
    return kept


def _rewritten(use: _Use, name: str, kept: int, kernel: Kernel) -> tuple[Edit, ...]:
    """Return what names an element of a list; nothing where more than places is written."""
    context = kernel.context
    own, *places = (span_of(one, context.lines) for one in (use.name, *use.places))
    if not places:
        return (Edit(own, name),)
    end = span_of(use.element, context.lines).end
    gaps = [Span(*a.end, *b.start) for a, b in pairwise((own, *places, Span(*end, *end)))]
    first, *inner, last = ("".join(context.text(gap).split()) for gap in gaps)
    if (first, last) != ("[", "]") or not {*inner} <= {",", "]["}:
        return ()
    head = Edit(Span(*own.start, *places[kept].start), f"{name}[")
    return head, *(Edit(gap, "][") for gap in gaps[kept + 1 : -1])


def _are_numbers(
    node: ast.stmt, parts: Sequence[Loop], uses: Mapping[str, object], kernel: Kernel
) -> bool:
    """Return whether Python's numbers do for all that a loop computes."""
    tree, inside = rewrite.nodes_of(kernel.context.source), {*ast.walk(node)}
    own = {one.name: one for one in tree if isinstance(one, ast.FunctionDef)}
    modules = {n.asname or n.name for one in tree if isinstance(one, ast.Import) for n in one.names}
    nodes, moving = [*inside], {*uses, *_bound(node)}
    for one in nodes:
        if isinstance(one, ast.Name) and one.id in own:
            nodes += ast.walk(own.pop(one.id))
    for one in nodes:
        match one:
            case ast.Attribute(ast.Name(name)) if name in {*modules, *uses}:
                continue
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(int())):
                continue
            case (
                ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=by)
                | ast.AugAssign(op=ast.Div() | ast.FloorDiv() | ast.Mod(), value=by)
            ) if moving & {getattr(part, "id", "") for part in ast.walk(by)}:
                # it may be zero in some iteration
                return False
            case ast.BinOp(op=ast.Pow()) | ast.AugAssign(op=ast.Pow()) | ast.UnaryOp(ast.Invert()):
                return False
            case ast.Attribute() | ast.Name("pow" | "round" | "sum"):
                return False
            case ast.Return() if one in inside:
                return False
            case ast.Subscript() if one not in inside:
                return False
    bound, lines = _bound(node), range(1, len(tree)) if kernel.alone else kernel.lines
    outside = [n for n in tree if n not in inside and getattr(n, "lineno", 0) in lines]
    asked = {id(one.value) for one in outside if isinstance(one, ast.Attribute)}
    left = {one.id for one in outside if isinstance(one, ast.Name)}
    made = [one for one in walk(tuple(parts)) if getattr(one, "name", "") in left]
    leaving = {kernels.type_of(v, kernel).dtype for one in made for v in ir.values_of(one)}
    given = {getattr(one, "id", "") for one in inside} - bound - uses.keys()
    for one in (one for one in outside if isinstance(one, ast.Assign)):
        names = {getattr(part, "id", "") for part in ast.walk(one.value)}
        if kernel.context.array_module in names and given & _bound(one):
            # what is computed with a number of the library's is one
            return False
    try:
        types = _types(parts, kernel) | {kernel.dtype(array) for array in uses}
    except ShapeConflict:
        # releases of NumPy differ on what it is
        return False
    every = {kernel.dtype(array) for array in (*kernel.arrays, *kernel.locals)}
    stays = any(id(one) in asked for one in outside if getattr(one, "id", "") in bound)
    if stays or not (every <= _WIDE or leaving <= _LITERALS):
        # only numbers of the library have methods, and widen arrays of narrow types
        return False
    said = (one.op for one in nodes if isinstance(one, ast.BinOp | ast.AugAssign | ast.UnaryOp))
    stays = {*map(type, said)} <= _BITS and not any(isinstance(n, ast.Attribute) for n in nodes)
    return types <= (_NARROW if stays and leaving <= _LITERALS else _WIDE)


def _bound(node: ast.AST) -> frozenset[str]:
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return frozenset(one.id for one in names if isinstance(one.ctx, ast.Store))


def _types(parts: Sequence[Loop], kernel: Kernel) -> set[str]:
    """Return the types of all numbers of a loop, with an empty one where they may not be listed."""
    found = set[str]()
    for one in walk(tuple(parts)):
        values = [*ir.values_of(one)]
        match one:
            case Choice(condition=condition) if condition is not None:
                values.append(condition)
            case Store(array, _, value) | Scatter(array, _, value):
                kinds = {kind_of_or_none(strong(kernel.dtype(array)))}
                fits = {kind_of_or_none(strong(kernels.type_of(value, kernel).dtype))} == kinds
                found |= set() if fits else {""}
            case Loop() | Choice() | ir.ScalarBind() | ir.Unrolled():
                pass
            case _:
                return {""}
        every = [part for value in values for part in parts_of(value)]
        tables = [part.operand for part in every if isinstance(part, Gather)]
        for part in every:
            told = kernels.type_of(part, kernel)
            made = getattr(part, "operation", getattr(part, "text", "")).partition("(")[0]
            # of truth values these are such, and numbers of Python's
            plain = told.dtype != "bool" or made not in ("add", "multiply")
            found.add(told.dtype if plain and (not told.extents or part in tables) else "")
    return found


TRANSFORM = kernels.KernelRule("ADV508", "elements-as-numbers", __doc__ or "", propose)
