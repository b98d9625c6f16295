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
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
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
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.rewrite import before, fresh_name, indent_at, span_of


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


# --- whether iterations give the same in any order, by the source ---------------------------------


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
    """Return why iterations may run in any order; None where one may see what another one made.

    Arrays of different names are taken to be different memory, which is told where it matters.
    """
    match outer, inner:
        case (
            ast.For(target=ast.Name(id=thread), iter=ast.Call(args=[threads], keywords=[])),
            ast.For(
                target=ast.Name(id=index),
                iter=ast.Call(func=ast.Name(id="range"), args=[ast.Name(id=first), end, step]),
                orelse=[],
            ),
        ) if first == thread and ast.dump(threads) == ast.dump(step):
            pass
        case _:
            return None
    nodes = [node for statement in inner.body for node in ast.walk(statement)]
    assigned = _bound(*inner.body)
    places = [node for node in nodes if isinstance(node, ast.Subscript)]
    written = {_owner(place) for place in places if not isinstance(place.ctx, ast.Load)}
    if not isinstance(threads, ast.Name | ast.Constant) or _rebinds_builtins(tree):
        return None
    if not written or written & {*assigned, ""} or {index, thread} & assigned:
        return None
    if not all(_is_understood(node, _modules(tree)) for node in nodes):
        return None
    if not all(_is_of_iteration(name, inner.body) for name in assigned):
        return None
    # what is written has elements of its own in each iteration
    if not all(_has_own_elements(name, index, nodes) for name in written):
        return None
    if thread in _loaded(*inner.body) or _loaded(end) & assigned:
        return None
    if (_loaded(threads) | {thread}) & _bound(*outer.body):
        return None
    if _is_used_behind(function, inner, {*assigned, index}):
        return None
    arrays = {_owner(place) for place in places}
    made, bound = _made(function), _bound(function)
    if len(arrays) == 1 or (written <= made and not ((arrays - written) & bound) - made):
        return Legality(
            Applicability.SAFE,
            "each iteration has elements of its own and reads nothing that another one makes",
        )
    names = ", ".join(f"`{name}`" for name in sorted(arrays))
    return Legality(
        Applicability.UNSAFE,
        f"each iteration has elements of its own, unless some of {names} share memory",
    )


def _owner(place: ast.Subscript) -> str:
    """Return the name of the array whose elements a subscript takes; an empty one for others."""
    return place.value.id if isinstance(place.value, ast.Name) else ""


def _has_own_elements(name: str, index: str, nodes: Sequence[ast.AST]) -> bool:
    """Return whether all uses of an array have the index in one and the same place."""
    own = [n for n in nodes if isinstance(n, ast.Subscript) and _owner(n) == name]
    parts = [n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice] for n in own]
    alike = (
        all(isinstance(part, ast.Name) and part.id == index for part in at)
        for at in zip(*parts, strict=False)
    )
    return any(alike) and len(own) == sum(
        isinstance(node, ast.Name) and node.id == name for node in nodes
    )


def _is_of_iteration(name: str, block: Sequence[ast.stmt]) -> bool:
    """Return whether a block gives a name a value before anything else uses it."""
    for one in block:
        if name not in _loaded(one) | _bound(one):
            continue
        match one:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                return name not in _loaded(value)
            case ast.For(target=ast.Name(id=target), iter=over, body=body):
                own = name not in _loaded(over)
                own = own and (target == name or _is_of_iteration(name, body))
            case ast.If(test=test, body=body, orelse=orelse):
                own = name not in _loaded(test)
                own = own and all(_is_of_iteration(name, arm) for arm in (body, orelse))
            case _:
                return False
        if not own:
            return False
    return True


def _made(function: ast.FunctionDef) -> set[str]:
    """Return names that the function binds once, to an array that it makes."""
    made: set[str] = set()
    stores = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    bound = [n.id for n in stores if not isinstance(n.ctx, ast.Load)]
    for node in ast.walk(function):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=maker))
            ) if maker.removesuffix("_like") in _MAKERS and bound.count(name) == 1:
                made.add(name)
    return made


def _bound(*nodes: ast.AST) -> set[str]:
    """Return the names that some code binds."""
    found = (inner for node in nodes for inner in ast.walk(node))
    return {n.id for n in found if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def _loaded(*nodes: ast.AST) -> set[str]:
    found = (inner for node in nodes for inner in ast.walk(node))
    return {n.id for n in found if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _is_used_behind(function: ast.FunctionDef, loop: ast.For, names: set[str]) -> bool:
    """Return whether something else of a function reads what a loop leaves in names."""
    inside = {id(node) for node in ast.walk(loop)}
    for other in ast.walk(function):
        if not isinstance(other, ast.For) or loop in ast.walk(other):
            continue
        # in its body, the index of another loop is that loop's
        nodes = (node for statement in other.body for node in ast.walk(statement))
        own = _bound(other.target)
        inside |= {id(n) for n in nodes if isinstance(n, ast.Name) and n.id in own}
    others = (node for node in ast.walk(function) if id(node) not in inside)
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        for node in others
    )


# --- what surely does the same whenever it runs ---------------------------------------------------


_MAKERS = frozenset({"empty", "zeros", "ones", "full"})
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
_PLAIN = (
    *(ast.If, ast.Pass, ast.Name, ast.Constant, ast.Subscript, ast.Slice, ast.Tuple),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


def _is_understood(node: ast.AST, modules: set[str]) -> bool:
    """Return whether a part of the code computes from what it names, and does nothing else."""
    match node:
        case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
            return isinstance(target, ast.Name | ast.Subscript)
        case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range")), orelse=[]):
            return True
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return name in _PURE_BUILTINS
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), keywords=[]):
            return module in modules and name in _PURE_FUNCTIONS
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return name in _CONSTANTS or (owner in modules and name in _PURE_FUNCTIONS)
    return isinstance(node, _PLAIN)


def _modules(tree: ast.Module) -> set[str]:
    """Return what NumPy and ``math`` are imported as."""
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ("numpy", "math")
    }


def _rebinds_builtins(tree: ast.Module) -> bool:
    """Return whether a file may give a builtin function another meaning."""
    others = _bound(tree)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                others.add(name)
            case ast.alias(name=name, asname=other):
                others.add(other or name)
    return bool(others & (_PURE_BUILTINS | {"*"}))


TRANSFORM = ProgramRule("ADV301", "interleaved-writes", __doc__, propose)
