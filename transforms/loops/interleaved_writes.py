"""# ADV301 interleaved-writes

**What it does.** Finds parallel loops over threads, each of which takes every so many elements of
an array that it writes, and gives each thread a block of neighbours.

**Why it costs.** Elements that lie on one cache line are then written by several threads. A line
can be in one processor's cache only while that processor writes to it, so it goes back and forth
between them, at up to every access. In blocks, only the lines at the blocks' ends are shared, and
a thread uses all of the lines that it reads.

**Example**

```python
for t in prange(threads):
    for i in range(t, n, threads):
        y[i] = 2.0 * x[i]
```

**Use instead**

```python
for t in prange(threads):
    chunk = (n + threads - 1) // threads
    for i in range(t * chunk, min((t + 1) * chunk, n)):
        y[i] = 2.0 * x[i]
```

**When it stays quiet.** Where what is dealt out are rows of an array stored by rows, which are on
lines of their own, or where only the arrays that are read have neighbours. Profiles without
functions for supersteps have no prediction. Blocks of work that grows with the index are not
even; the price counts that.

**Fix safety.** Safe where every iteration has elements of its own, reads nothing that another one
makes, and all arrays are made in the function. Arrays that are given might share memory: then the
edit is unsafe, and says which. Loops whose iterations depend on each other, on the thread's
number or on anything that is not understood are shown only.

**Models used.** Supersteps of shared memory: with at least a cache line between a thread's
accesses they are those of the Bad functions, with nothing between them those of the Good ones;
what is between the two is told by the interval.

**References.** Good and Bad cost functions: a study of communication cost functions on the SGI
Power Challenge.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import (
    Compute,
    Copy,
    Loop,
    LoopKind,
    Visit,
    follows,
    is_dealt_in_turn,
    walk,
)
from advisor.source import Edit
from costdb.expr import ceil_div, maximum, minimum, sym
from transforms.kit.rewrite import before, fresh_name, indent_at, span_of
from transforms.kit.rule import ProgramRule, offer

_MAKERS = frozenset({"empty", "zeros", "ones", "full"})


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield blocks for each loop that deals elements out to threads in turn."""
    for function in program.functions:
        for visit in function.visits():
            outer = visit.step
            if isinstance(outer, Loop) and outer.kind is LoopKind.THREADS:
                for inner in outer.body:
                    if isinstance(inner, Loop) and is_dealt_in_turn(outer, inner):
                        yield from _in_blocks(program, function, visit, outer, inner)


def _in_blocks(
    program: Program, function: SpmdFunction, visit: Visit, outer: Loop, inner: Loop
) -> Iterator[ProgramProposal]:
    names = _written(inner)
    if not names:
        return
    thread, chunk = sym(outer.variable), ceil_div(inner.high, outer.high)
    low, high = thread * chunk, minimum((thread + 1) * chunk, inner.high)
    block = replace(inner, low=low, high=high, step=1, stride=None, trips=maximum(high - low, 0))
    body = tuple(block if step is inner else step for step in outer.body)
    source = _source_of(program, outer, inner)
    shown = ", ".join(f"`{name}`" for name in names)
    legality = None if source is None else source[2]
    yield offer(
        function,
        visit,
        inner.span,
        f"give each thread neighbouring elements of {shown}, not every so many",
        "several threads write to each cache line, which goes back and forth between them",
        (outer,),
        (replace(outer, body=body),),
        "not shown by the source that iterations give the same whichever thread has them"
        if legality is None
        else legality.argument,
        None if source is None else partial(_edits, program, *source[:2]),
        safe=legality is not None and legality.applicability is Applicability.SAFE,
    )


def _written(inner: Loop) -> list[str]:
    """Return the arrays of which the loop writes one element after the other."""
    names: dict[str, None] = {}
    for visit in walk(inner.body):
        if isinstance(visit.step, Compute | Copy) and visit.step.target is not None:
            target = visit.step.target
            if not visit.loops and follows(target, inner.variable):
                names[target.buffer.name] = None
    return list(names)


def _source_of(
    program: Program, outer: Loop, inner: Loop
) -> tuple[ast.For, ast.For, Legality] | None:
    """Return the loops where the source shows that blocks give the same results, and how far."""
    tree = ast.parse(program.context.source)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for first in ast.walk(function):
            if isinstance(first, ast.For) and first.lineno == outer.span.start_line:
                for second in first.body:
                    if isinstance(second, ast.For) and second.lineno == inner.span.start_line:
                        legality = _legality(tree, function, first, second)
                        return None if legality is None else (first, second, legality)
    return None


def _legality(
    tree: ast.Module, function: ast.FunctionDef, outer: ast.For, inner: ast.For
) -> Legality | None:
    match outer, inner:
        case (
            ast.For(target=ast.Name(id=thread), iter=ast.Call(args=[threads], keywords=[])),
            ast.For(
                target=ast.Name(),
                iter=ast.Call(func=ast.Name(id="range"), args=[ast.Name(id=first), _, step]),
            ),
        ) if first == thread and ast.dump(threads) == ast.dump(step):
            pass
        case _:
            return None
    if not isinstance(threads, ast.Name | ast.Constant) or _rebinds_builtins(tree):
        return None
    body = _order_free(inner, _modules(tree))
    if body is None or thread in _loaded(*inner.body) or thread in body.assigned:
        return None
    fixed = _loaded(*inner.iter.args) if isinstance(inner.iter, ast.Call) else set()
    changed = set(_bound(*outer.body))
    if (fixed - {thread}) & body.assigned or (_loaded(threads) | {thread}) & changed:
        return None
    if _used_behind(function, inner, body.assigned):
        return None
    return _by_memory(function, body)


def _by_memory(function: ast.FunctionDef, body: _Body) -> Legality:
    made = _made(function)
    bound = set(_bound(function))
    others = body.arrays - body.written
    apart = body.written <= made and not (others & bound) - made
    if len(body.arrays) == 1 or apart:
        return Legality(
            Applicability.SAFE,
            "each iteration has elements of its own and reads nothing that another one makes",
        )
    names = ", ".join(f"`{name}`" for name in sorted(body.arrays))
    return Legality(
        Applicability.UNSAFE,
        f"each iteration has elements of its own, unless some of {names} share memory",
    )


def _made(function: ast.FunctionDef) -> frozenset[str]:
    """Return names that the function binds once, to an array that it makes."""
    made: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=maker))
            ) if maker.removesuffix("_like") in _MAKERS:
                made.add(name)
    bound = _bound(function)
    return frozenset(name for name in made if bound.count(name) == 1)


def _bound(*nodes: ast.AST) -> list[str]:
    """Return the names that some code binds, each as often as it does."""
    found = (inner for node in nodes for inner in ast.walk(node))
    return [n.id for n in found if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]


def _loaded(*nodes: ast.AST) -> set[str]:
    found = (n for node in nodes for n in ast.walk(node))
    return {n.id for n in found if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _used_behind(function: ast.FunctionDef, loop: ast.For, names: frozenset[str]) -> bool:
    """Return whether something else of a function reads what a loop leaves in names."""
    inside = {id(node) for node in ast.walk(loop)}
    for other in ast.walk(function):
        if not isinstance(other, ast.For) or not isinstance(other.target, ast.Name):
            continue
        if loop not in ast.walk(other):
            # in its body, the index of another loop is that loop's
            nodes = (node for statement in other.body for node in ast.walk(statement))
            index = other.target.id
            inside |= {id(n) for n in nodes if isinstance(n, ast.Name) and n.id == index}
    return any(
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id in names
        and id(node) not in inside
        for node in ast.walk(function)
    )


def _modules(tree: ast.Module) -> frozenset[str]:
    """Return what NumPy and ``math`` are imported as."""
    return frozenset(
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ("numpy", "math")
    )


def _rebinds_builtins(tree: ast.Module) -> bool:
    """Return whether a file may give a builtin function another meaning."""
    if _PURE_BUILTINS & set(_bound(tree)):
        return True
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                other = name
            case ast.alias(name=name, asname=alias):
                other = alias or name
            case _:
                continue
        if name == "*" or other in _PURE_BUILTINS:
            return True
    return False


def _edits(program: Program, outer: ast.For, inner: ast.For) -> tuple[Edit, ...]:
    over, header = inner.iter, span_of(inner, program.context.lines)
    assert isinstance(over, ast.Call) and isinstance(outer.target, ast.Name)
    _, count, threads = over.args
    name, chunk = outer.target.id, fresh_name("chunk", program.context.identifiers)
    end, width = ast.unparse(count), ast.unparse(threads)
    summed = end if isinstance(count, ast.Name | ast.Constant | ast.Attribute) else f"({end})"
    indent = indent_at(header, program.context)
    if indent.strip():
        return ()
    dealt = f"range({name} * {chunk}, min(({name} + 1) * {chunk}, {end}))"
    return (
        Edit(before(header), f"{chunk} = ({summed} + {width} - 1) // {width}\n{indent}"),
        Edit(span_of(over, program.context.lines), dealt),
    )


# --- bodies whose iterations give the same in any order -------------------------------------------


_PURE_BUILTINS = frozenset({"abs", "min", "max", "int", "float", "len", "range"})
# fmt: off
_PURE_FUNCTIONS = frozenset(
    {
        "abs", "absolute", "arctan", "arctan2", "ceil", "cos", "cosh", "degrees", "dot", "exp",
        "expm1", "fabs", "floor", "fmax", "fmin", "hypot", "log", "log10", "log1p", "log2",
        "max", "maximum", "mean", "min", "minimum", "pow", "power", "prod", "radians", "sign",
        "sin", "sinh", "sqrt", "square", "sum", "tan", "tanh", "trunc",
    }
)
# fmt: on
_CONSTANTS = frozenset({"pi", "e", "inf", "nan", "shape", "size", "ndim"})


@dataclass(frozen=True, slots=True)
class _Body:
    """What a loop's body writes and uses.

    Attributes
    ----------
    arrays : frozenset of str
        Every name that has a subscript.
    written : frozenset of str
        Those whose elements are assigned to; each iteration has elements of its own.
    assigned : frozenset of str
        Plain names that it binds, the index of the loop included.
    """

    arrays: frozenset[str]
    written: frozenset[str]
    assigned: frozenset[str]


def _order_free(loop: ast.For, modules: frozenset[str]) -> _Body | None:
    """Return what a loop's body does if its iterations give the same in any order.

    Parameters
    ----------
    loop : ast.For
        Its target is a name.
    modules : frozenset of str
        What ``numpy`` and ``math`` are imported as.

    Returns
    -------
    _Body or None
        None where an iteration may see what another one made, or anything else happens that is
        not understood. Arrays of different names are taken to be different memory.
    """
    assert isinstance(loop.target, ast.Name)
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and _is_bound(node)}
    places = [node for node in nodes if isinstance(node, ast.Subscript)]
    if not all(isinstance(place.value, ast.Name) for place in places):
        return None
    arrays = frozenset(_owner(place) for place in places)
    written = frozenset(_owner(place) for place in places if _is_bound(place))
    if not written or written & bound or loop.target.id in bound or loop.orelse:
        return None
    if not _has_elements_of_its_own(loop.target.id, written, nodes, places):
        return None
    if not _Reading(frozenset(bound), modules).block(loop.body, frozenset()):
        return None
    return _Body(arrays, written, frozenset(bound) | {loop.target.id})


def _owner(place: ast.Subscript) -> str:
    assert isinstance(place.value, ast.Name)
    return place.value.id


def _is_bound(node: ast.Name | ast.Subscript) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _has_elements_of_its_own(
    index: str, written: frozenset[str], nodes: Sequence[ast.AST], places: Sequence[ast.Subscript]
) -> bool:
    """Return whether all uses of each written array have the index in one and the same place."""
    for name in written:
        own = [_parts(place) for place in places if _owner(place) == name]
        mentions = sum(1 for node in nodes if isinstance(node, ast.Name) and node.id == name)
        at = {
            position
            for position in range(min(len(parts) for parts in own))
            if all(_is_name(parts[position], index) for parts in own)
        }
        if mentions != len(own) or not at:
            return False
    return True


def _parts(place: ast.Subscript) -> list[ast.expr]:
    return place.slice.elts if isinstance(place.slice, ast.Tuple) else [place.slice]


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@dataclass(frozen=True, slots=True)
class _Reading:
    """Follows statements in order: names that the body binds are read only after that.

    Attributes
    ----------
    bound : frozenset of str
        Every name that the body binds somewhere.
    modules : frozenset of str
    """

    bound: frozenset[str]
    modules: frozenset[str]

    def block(self, statements: Sequence[ast.stmt], known: frozenset[str]) -> bool:
        for statement in statements:
            after = self._statement(statement, known)
            if after is None:
                return False
            known = after
        return True

    def _statement(self, node: ast.stmt, known: frozenset[str]) -> frozenset[str] | None:
        """Return the names that are bound after a statement; None where it is not understood."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return known | {name} if self._expression(value, known) else None
            case ast.Assign(targets=[ast.Subscript(slice=place)], value=value):
                fine = self._expression(value, known) and self._expression(place, known)
                return known if fine else None
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                return known if name in known and self._expression(value, known) else None
            case ast.AugAssign(target=ast.Subscript(slice=place), value=value):
                fine = self._expression(value, known) and self._expression(place, known)
                return known if fine else None
            case ast.For(target=ast.Name(id=name), iter=over, body=body, orelse=[]):
                fine = _is_range(over) and self._expression(over, known)
                return known if fine and self.block(body, known | {name}) else None
            case ast.If(test=test, body=body, orelse=orelse):
                fine = self._expression(test, known)
                fine = fine and self.block(body, known) and self.block(orelse, known)
                return known if fine else None
            case ast.Pass():
                return known
        return None

    def _expression(self, node: ast.expr, known: frozenset[str]) -> bool:
        match node:
            case ast.Name(id=name):
                return name in known or name not in self.bound
            case ast.Call(func=function, args=args, keywords=[]):
                return self._is_pure(function) and all(self._expression(a, known) for a in args)
            case ast.Attribute(value=ast.Name() as owner, attr=attribute):
                return attribute in _CONSTANTS and self._expression(owner, known)
            case ast.Constant():
                return True
            case (
                ast.BinOp()
                | ast.UnaryOp()
                | ast.BoolOp()
                | ast.Compare()
                | ast.IfExp()
                | ast.Subscript()
                | ast.Tuple()
                | ast.Slice()
            ):
                return all(self._expression(part, known) for part in _operands(node))
        return False

    def _is_pure(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(id=name):
                return name in _PURE_BUILTINS and name not in self.bound
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                return module in self.modules and name in _PURE_FUNCTIONS
        return False


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _is_name(node.func, "range")


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child


TRANSFORM = ProgramRule("ADV301", "interleaved-writes", __doc__, propose)
