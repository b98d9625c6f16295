"""Kernels as rules see them: nests that may be rewritten, other parts, slices for elements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import is_, is_not
from typing import Any, TypeVar, cast

from advisor.distribution import ArraySpec, NotDistributed
from advisor.finding import Applicability
from advisor.ir.dependence import non_negative_within, slope_of
from advisor.ir.kernel import DeclaredArray, Kernel, Legality, Proposal
from advisor.ir.nests import Nest, index_name, nests
from advisor.ir.shapes import ArrayType, describe, whole
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Statement,
    Store,
    Unrolled,
    values_of,
    walk,
)
from advisor.ir.values import (
    Elementwise,
    Expand,
    Fill,
    MatMul,
    Read,
    Reduction,
    Subscript,
    Value,
    operands,
    reads,
)
from advisor.source import Edit, Span
from costdb.expr import Expr, evaluate, free_symbols, num, substitute, sym
from costdb.expr.functions import Max, Min
from costdb.expr.nodes import Add, Num, Sym, split_coefficient
from costdb.records import dataclass, field, fields, is_dataclass, only, replace
from transforms.kit.rewrite import fresh_name

Node = TypeVar("Node")


# --- which kernels and nests --------------------------------------------------------------------


def rewritable(kernel: Kernel) -> Iterator[Nest]:
    """Yield the nests over single elements whose indices nothing else needs."""
    for nest in nests(kernel.body):
        names = [index_name(variable) for variable in nest.variables]
        texts = kernel.context.scalar_texts
        known = all(texts.get(v) == name for v, name in zip(nest.variables, names, strict=True))
        if (
            known
            and nest.is_by_element
            and len(set(names)) == len(names)
            and not kernel.observed & set(names)
            and not any(loop.stated for loop in nest.loops)
        ):
            yield nest


def blocks(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    """Yield a block, and those of its loops and branches."""
    yield body
    for one in body:
        match one:
            case Loop():
                yield from blocks(one.body)
            case Choice():
                yield from blocks(one.then)
                yield from blocks(one.orelse)


def is_compiled_alone(kernel: Kernel) -> bool:
    """Return whether a kernel is compiled and all it uses lies in one place.

    No interpreter and no message is then saved by whole arrays, which would need memory of their
    own, and a ``prange`` would be lost.
    """
    dims = (dim for array in kernel.arrays.values() for dim in array.spec.dims)
    return kernel.context.is_compiled and all(isinstance(d, NotDistributed) for d in dims)


def is_spread(spec: ArraySpec, dimension: int) -> bool:
    """Return whether ranks share out a dimension of an array."""
    dim = spec.dims[dimension]
    return not isinstance(dim, NotDistributed) and spec.mesh.ranks_along(dim.axes) != "1"


def inner_first(value: Value) -> Iterator[Value]:
    """Yield all that a value is computed from, left to right, and then the value."""
    for part in operands(value):
        yield from inner_first(part)
    yield value


def type_of(value: Value, kernel: Kernel) -> ArrayType:
    """Return the element type and the shape of a value."""
    known = kernel.found.setdefault(type_of, {})
    return describe(value, lambda name: ArrayType(kernel.dtype(name), kernel.extents(name)), known)


def is_all_of(nest: Nest, nodes: Mapping[tuple[int, int], ast.stmt]) -> bool:
    """Return whether the loops of the source hold nothing but what a nest says.

    Numbers of one iteration, say, stand in the values that are computed from them.
    """
    found = [nodes.get((loop.span.start_line, loop.span.start_column)) for loop in nest.loops]
    counts = [1] * (len(nest.loops) - 1) + [len(nest.body)]
    return all(
        isinstance(node, ast.For) and len(node.body) == count
        for node, count in zip(found, counts, strict=True)
    )


# --- why results stay ---------------------------------------------------------------------------


safe = partial(Legality, Applicability.SAFE)
"""The argument holds for every run."""
unsafe = partial(Legality, Applicability.UNSAFE)
"""It holds if something else does."""
displayed = partial(Legality, Applicability.DISPLAY)
"""No edit is offered, for the reason that it gives."""


def offered(
    kernel: Kernel,
    span: Span,
    title: str,
    reason: str,
    variant: Kernel,
    argued: Legality,
    edits: Callable[[], tuple[Edit, ...]],
    *,
    compiled: bool = False,
) -> Proposal:
    """Return a proposal, only shown where decorators get the new text, if not `compiled`."""
    decorators = kernel.context.decorators
    if decorators and not compiled:
        argued = displayed(f"what `{decorators[0]}` makes of the new text is not known")
    return Proposal(title, reason, span, variant, argued, edits)


def overlaps(stores: Sequence[Store], kernel: Kernel) -> str:
    """Return which names an edit needs to share no memory, in words; empty where none may."""
    stored = dict.fromkeys(store.array for store in stores)
    named = sorted({read.array for store in stores for read in reads(store.value)})
    shared = dict.fromkeys(
        name
        for one in stored
        for other in (*stored, *named)
        if one != other
        and (
            (one in kernel.arrays and other in kernel.arrays)
            or not kernel.aliases.isdisjoint((one, other))
        )
        for name in (one, other)
    )
    return apart(list(shared))


def apart(names: Sequence[str]) -> str:
    """Return in words that names share no memory."""
    shown = [f"`{name}`" for name in names]
    if len(shown) > 2:
        return f"no two of {', '.join(shown)} overlap in memory"
    if len(shown) == 1:
        return f"nothing that is changed overlaps with {shown[0]} in memory"
    return f"{' and '.join(shown)} do not overlap in memory" if shown else ""


def unless_apart(stores: Iterable[Store], kernel: Kernel) -> Legality | None:
    """Return why results may change where memory overlaps, None where no two names share any."""
    shared = overlaps(tuple(stores), kernel)
    return overlapping(shared) if shared else None


def overlapping(shared: str) -> Legality:
    """Return what is told of an edit that names of the same memory would spoil."""
    return unsafe(f"results are equal bit for bit if {shared}, which is up to the caller")


# --- other statements and values ----------------------------------------------------------------


def replaced(
    body: tuple[Statement, ...], changes: Mapping[int, tuple[Statement, ...]]
) -> tuple[Statement, ...]:
    """Return a block with others in the place of statements, which are found by identity.

    Parameters
    ----------
    body : tuple of Statement
    changes : mapping of int to tuple of Statement
        What stands in the place of the statement of an ``id``. Other statements stay the same
        objects, so that later changes find theirs.
    """
    made: list[Statement] = []
    for statement in body:
        if id(statement) in changes:
            made.extend(changes[id(statement)])
        elif isinstance(statement, Loop | Unrolled):
            inner = replaced(statement.body, changes)
            same = _same(inner, statement.body)
            made.append(statement if same else replace(statement, body=inner))
        elif isinstance(statement, Choice):
            then, orelse = replaced(statement.then, changes), replaced(statement.orelse, changes)
            same = _same(then, statement.then) and _same(orelse, statement.orelse)
            made.append(statement if same else replace(statement, then=then, orelse=orelse))
        else:
            made.append(statement)
    return tuple(made)


def _same(one: tuple[Statement, ...], other: tuple[Statement, ...]) -> bool:
    # equal stores may cost different times
    return len(one) == len(other) and all(map(is_, one, other))


def with_statement(
    body: tuple[Statement, ...], old: Statement, new: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """Return a block in which some statements stand in the place of one."""
    return replaced(body, {id(old): new})


def around(loops: tuple[Loop, ...], body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return statements within some loops, outermost first."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def mapped(node: Node, change: Callable[[object], object]) -> Node:
    """Return a statement, a value or a tuple of them with every part of it changed, inner first."""
    kept: dict[int, object] = {}

    def made(part: Any) -> Any:
        if isinstance(part, tuple):
            parts = tuple(map(made, part))
            return parts if any(map(is_not, parts, part)) else part
        if not is_dataclass(part) or isinstance(part, Span | Expr | type):
            return part
        if id(part) not in kept:
            before = {one.name: getattr(part, one.name) for one in fields(part)}
            after = {name: made(one) for name, one in before.items()}
            changed = any(map(is_not, after.values(), before.values()))
            kept[id(part)] = change(replace(part, **after) if changed else part)
        return kept[id(part)]

    return cast(Node, made(node))


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return statements or values that read and store other arrays in the place of some."""

    def other(part: object) -> object:
        if isinstance(part, Read | Store):
            return replace(part, array=names.get(part.array, part.array))
        return part

    return mapped(node, other)


def along(axis: int, part: Subscript, extents: tuple[Expr, ...]) -> tuple[Subscript, ...]:
    """Return the region that is `part` of one axis and all of the others."""
    region = whole(extents)
    return (*region[:axis], part, *region[axis + 1 :])


def named(wanted: str, value: Value, span: Span, kernel: Kernel) -> tuple[Bind, Read, Kernel]:
    """Return what gives a value a name like the one wanted, all of it, and the kernel with it."""
    name = fresh_name(wanted, {*kernel.arrays, *kernel.locals, *kernel.context.identifiers})
    known = kernel.with_locals({name: type_of(value, kernel)})
    return Bind(name, value, span), Read(name, whole(known.extents(name))), known


def turned(
    names: Iterable[str], axis: int, other: int, like: DeclaredArray, kernel: Kernel
) -> tuple[dict[str, str], Kernel]:
    """Return arrays like some, two dimensions of which are distributed the other way round.

    What is not declared itself is `like` another array. The kernel declares what is returned.
    """
    arrays, found = dict(kernel.arrays), dict[str, str]()
    for name in names:
        found[name] = fresh_name(f"{name}_turned", {*kernel.context.identifiers, *arrays})
        declared, dtype = kernel.arrays.get(name, like), kernel.dtype(name)
        dims, halo = list(declared.spec.dims), (0,) * len(declared.spec.dims)
        dims[axis], dims[other] = dims[other], dims[axis]
        spec = replace(declared.spec, name=found[name], dims=tuple(dims), halo=halo, dtype=dtype)
        arrays[found[name]] = replace(
            declared, spec=spec, dtype=dtype, extents=kernel.extents(name)
        )
    return found, replace(kernel, arrays=arrays)


def accesses(statement: Statement) -> list[Read]:
    """Return what a statement reads, and what it stores to, as if it were read."""
    found = [read for value in values_of(statement) for read in reads(value)]
    if isinstance(statement, Store):
        found.append(Read(statement.array, statement.region))
    return found


def copied(target: str, source: str, kernel: Kernel, span: Span) -> Store:
    """Return the statement that copies all of an array to another one."""
    region = whole(kernel.extents(source))
    return Store(target, region, Read(source, region), span)


# What is known of the bounds of slices within loops.


ZERO = num(0)


@dataclass(slots=True)
class Proofs:
    """What holds wherever some loops are running.

    Attributes
    ----------
    minima : dict of str to int
        Least values of symbols; of any other symbol nothing is known.
    extents : frozenset of Expr
        Of arrays, none of which is negative.
    least, greatest : dict of str to Expr
        Values of the indices of the loops, outermost first.
    """

    minima: dict[str, int]
    extents: frozenset[Expr] = frozenset()
    least: dict[str, Expr] = field(default_factory=dict)
    greatest: dict[str, Expr] = field(default_factory=dict)

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        if self._is_shown(expr):
            return True
        lowest = self._lowest(expr)
        for term in lowest.terms if isinstance(lowest, Add) else (lowest,):
            factor, extreme = split_coefficient(term)
            if isinstance(extreme, Max | Min):
                # the least of several parts is at least 0 where all are
                ways = (lowest - term + num(factor) * one for one in extreme.args)
                needs = any if (factor > 0) == isinstance(extreme, Max) else all
                return needs(map(self.non_negative, ways))
        return False

    def _is_shown(self, expr: Expr) -> bool:
        lowest = self._lowest(expr)
        gaps = (lowest - extent for extent in (num(0), *self.extents))
        if any(isinstance(gap, Num) and gap.value >= 0 for gap in gaps):
            return True
        named = set(free_symbols(expr))
        for index in reversed(self.greatest):
            if index in named:
                named |= free_symbols(self.greatest[index])
        return named <= self.minima.keys() and non_negative_within(expr, self.minima, self.greatest)

    def _lowest(self, expr: Expr) -> Expr:
        """Return the least value of an expression over the loops, as far as it is affine."""
        for index in reversed(self.greatest):
            slope = slope_of(expr, index)
            if slope:
                end = self.least if slope > 0 else self.greatest
                expr = substitute(expr, {index: end[index]})
        return expr

    def empty_when_negative(self, start: Expr, stop: Expr, extent: Expr) -> bool:
        """Return whether ``start:stop`` selects nothing whenever `stop` is negative.

        A negative bound counts from the end, so it does only where the array is as short.
        """
        symbols = free_symbols(start) | free_symbols(stop) | free_symbols(extent)
        if len(symbols) != 1 or symbols & self.greatest.keys():
            return False
        (name,) = symbols
        if name not in free_symbols(stop):
            return isinstance(stop, Num) and stop.value >= 0
        if not isinstance(stop - sym(name), Num) or name not in self.minima:
            return False
        for size in range(self.minima[name], -int(evaluate(stop - sym(name), {}))):
            first, last, length = (int(evaluate(e, {name: size})) for e in (start, stop, extent))
            if range(*slice(first, last).indices(max(0, length))):
                return False
        return True


def proofs(kernel: Kernel, running: Sequence[Loop]) -> Proofs:
    """Return what is known within some loops of a kernel, outermost first."""
    minima = {
        extent.name: 0 for array in kernel.arrays.values() for extent in only(Sym, array.extents)
    }
    minima.update(kernel.least)
    # as many iterations as fill a list may be fewer than none
    extents = {e for name in (*kernel.arrays, *kernel.locals) for e in kernel.extents(name)}
    extents -= {e for name in kernel.lists for e in kernel.extents(name)}
    extents |= {e for name in kernel.arrays for e in kernel.extents(name)}
    for one in walk(kernel.body) if kernel.lists else ():
        match one:
            case Bind(name, Fill(value)) if name not in kernel.lists and value != "arange":
                # an error where there are fewer than none
                extents |= {*kernel.extents(name)}
    known = Proofs(minima, frozenset(extents))
    for loop in running:
        if loop.stated:
            # a pragma says how often it runs, not how far its index goes
            continue
        low = loop.low
        if isinstance(low, Num):
            minima[loop.variable] = int(low.value)
        elif known.non_negative(low):
            minima[loop.variable] = 0
        known.least[loop.variable], known.greatest[loop.variable] = low, loop.high - 1
    return known


# --- products -----------------------------------------------------------------------------------


def factors(value: Value) -> tuple[Value, ...]:
    """Return what a product multiplies; nothing for any other value."""
    match value:
        case MatMul(left, right):
            return (left, right)
        case Reduction(Elementwise("multiply", (left, right)), axis, "add", fused=True):
            return (left, right) if axis is None else (_without(left), _without(right))
    return ()


def _without(side: Value) -> Value:
    return side.operand if isinstance(side, Expand) else side


# --- rule -----------------------------------------------------------------------------------------
# What a rule is: a code, a name, a page, and a function that yields proposals.
#
# The page is the docstring of the rule's module, in Markdown.


@dataclass(frozen=True, slots=True)
class PagedRule:
    """What rules have in common."""

    code: str
    name: str
    page: str | None

    @property
    def documentation(self) -> str:
        """The page; of Python without docstrings (``-OO``) its title."""
        return self.page or f"# {self.code} {self.name}\n"


@dataclass(frozen=True, slots=True)
class KernelRule(PagedRule):
    """A rule about kernels, as the entry-point group ``advise.transforms`` names it.

    Attributes
    ----------
    propose : callable
    moves : bool
        Whether its edits compute the same expressions elsewhere, whatever dimensions these have.
    """

    propose: Callable[[Kernel], Iterable[Proposal]]
    moves: bool = False
