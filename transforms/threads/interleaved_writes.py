"""ADV301: give each thread neighbouring elements, not every so many."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.dealing import follows, is_dealt_in_turn
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Compute, Copy, Loop, LoopKind, Visit, walk
from advisor.source import Edit, Span
from costdb.expr import ceil_div, maximum, minimum, sym
from transforms.source.nest_source import span_of
from transforms.source.writing import fresh_name
from transforms.threads.dealt_bodies import PURE_BUILTINS, Body, order_free

DOCUMENTATION = """\
# ADV301 interleaved-writes

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

_MAKERS = frozenset({"empty", "zeros", "ones", "full"})
_SHOWN = Legality(
    Applicability.DISPLAY,
    "not shown by the source that iterations give the same whichever thread has them",
)


@dataclass(frozen=True, slots=True)
class InterleavedWrites:
    """The rule ADV301; see its page in `documentation`."""

    code: str = "ADV301"
    name: str = "interleaved-writes"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
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
    yield ProgramProposal(
        title=f"give each thread neighbouring elements of {shown}, not every so many",
        reason="several threads write to each cache line, which goes back and forth between them",
        span=inner.span,
        function=function,
        before=(outer,),
        after=(replace(outer, body=body),),
        legality=_SHOWN if source is None else source.legality,
        loops=visit.loops,
        edits=tuple if source is None else partial(_edits, program, source),
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


@dataclass(frozen=True, slots=True)
class _Source:
    """Both loops as written.

    Attributes
    ----------
    outer, inner : ast.For
    legality : Legality
    """

    outer: ast.For
    inner: ast.For
    legality: Legality


def _source_of(program: Program, outer: Loop, inner: Loop) -> _Source | None:
    """Return the loops where the source shows that blocks give the same results."""
    tree = ast.parse(program.context.source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for first in ast.walk(node):
            if isinstance(first, ast.For) and first.lineno == outer.span.start_line:
                for second in first.body:
                    if isinstance(second, ast.For) and second.lineno == inner.span.start_line:
                        legality = _legality(tree, node, first, second)
                        return None if legality is None else _Source(first, second, legality)
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
    body = order_free(inner, _modules(tree))
    if body is None or thread in _loaded(*inner.body) or thread in body.assigned:
        return None
    fixed = _loaded(*inner.iter.args) if isinstance(inner.iter, ast.Call) else set()
    changed = set(_bound(*outer.body))
    if (fixed - {thread}) & body.assigned or (_loaded(threads) | {thread}) & changed:
        return None
    if _used_behind(function, inner, body.assigned):
        return None
    return _by_memory(function, body)


def _by_memory(function: ast.FunctionDef, body: Body) -> Legality:
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
    bound = _bound(function)
    made = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_making(node.value)
        for target in node.targets
        if isinstance(target, ast.Name) and len(node.targets) == 1
    }
    return frozenset(name for name in made if bound.count(name) == 1)


def _is_making(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    return name in _MAKERS or (name.endswith("_like") and name.removesuffix("_like") in _MAKERS)


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
    if PURE_BUILTINS & set(_bound(tree)):
        return True
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                if name in PURE_BUILTINS:
                    return True
            case ast.alias(name=name, asname=other):
                if name == "*" or (other or name) in PURE_BUILTINS:
                    return True
    return False


def _edits(program: Program, source: _Source) -> tuple[Edit, ...]:
    lines = program.context.lines
    over, thread = source.inner.iter, source.outer.target
    assert isinstance(over, ast.Call) and isinstance(thread, ast.Name)
    _, count, threads = over.args
    chunk = fresh_name("chunk", program.context.identifiers)
    end, width = ast.unparse(count), ast.unparse(threads)
    summed = end if isinstance(count, ast.Name | ast.Constant | ast.Attribute) else f"({end})"
    header = span_of(source.inner, lines)
    start = Span(header.start_line, header.start_column, header.start_line, header.start_column)
    indent = lines[header.start_line - 1][: header.start_column]
    if indent.strip():
        return ()
    name = thread.id
    return (
        Edit(start, f"{chunk} = ({summed} + {width} - 1) // {width}\n{indent}"),
        Edit(
            span_of(over, lines),
            f"range({name} * {chunk}, min(({name} + 1) * {chunk}, {end}))",
        ),
    )


TRANSFORM = InterleavedWrites()
