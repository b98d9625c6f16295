"""# ADV507 grown-array

**What it does.** Finds loops that let an array grow by `np.append`, `np.concatenate`, `np.vstack`
or `np.hstack`, and collects the pieces in a list that is joined once.

**Why it costs.** Arrays do not grow: each iteration makes a longer one and copies all there is, so
that what is copied rises with the square of the number of iterations.

**Example**

```python
for k in range(n):
    found = np.append(found, f(k))
```

**Use instead**

```python
found_parts = [found.ravel()]
for k in range(n):
    found_parts.append(np.ravel(f(k)))
found = np.concatenate(found_parts)
```

**When it stays quiet.** The loop does something else with the array, a function within reads it, or
nobody knows how often it runs. Of pieces that are not read, one element counts. Loops that are not
understood are told of without a price and without an edit.

**Fix safety.** Safe where an array is made for it before the loop: the same pieces are joined, in
the same order, and NumPy finds the same element type for all of them. Unsafe otherwise: if the loop
ends before it joined anything, the result is a copy of what was there, and an array where that was
a list. Unsafe, too, for pieces that are not read: of several types, the common one may be another.

**Models used.** Array operations.

**References.** NumPy's documentation of `append`, which says that it copies.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.ir.kernel import Kernel, Legality, Proposal
from advisor.ir.shapes import ArrayType, whole
from advisor.ir.statements import Bind, Store, Unknown, walk
from advisor.ir.values import Called, Copy, Elementwise, MatMul, Range, Read, Reduction, Scan
from advisor.source import Edit, Span
from costdb.records import replace
from transforms.kit import kernels, rewrite

_MADE = frozenset({"array", "empty", "zeros", "ones", "full"})
_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.Global, ast.Nonlocal),
)
_COMPUTED = Elementwise | MatMul | Reduction | Scan


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield a list in the place of every array that a loop lets grow."""
    for store in walk(kernel.body):
        match store:
            case Store(array, (Range(),), Called("concatenate", (Read(other), _))) if (
                array == other and (found := _found(store, kernel)) is not None
            ):
                name, loop, assign = found
            case _:
                continue
        yield kernels.offered(
            kernel,
            store.span,
            f"collect what `{name}` grows by in a list, and join it once",
            "each iteration copies all that is there",
            _variant(store, kernel),
            _argued(name, loop, store, kernel),
            partial(_edits, name, loop, assign, store, kernel),
        )


def _found(store: Store, kernel: Kernel) -> tuple[str, ast.stmt, ast.Assign] | None:
    """Return an array, the outermost loop that does no more than let it grow, and where it does."""
    node = rewrite.statement_at(store.span, kernel.context)
    match node:
        case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute())):
            pass
        case _:
            return None
    nodes = rewrite.nodes_of(kernel.context.source)
    around = [one for one in nodes if isinstance(one, ast.stmt) and _holds(one, node)]
    functions = [one for one in around if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    seen_by = functions[-1] if functions else nodes[0]
    loops = [
        one
        for one in around[around.index(functions[-1]) if functions else 0 :]
        if isinstance(one, ast.For | ast.While) and _uses(one, name) == 2
    ]
    inner = [one for one in ast.walk(seen_by) if isinstance(one, _SCOPES)]
    hidden = any(
        name in one.names if isinstance(one, ast.Global | ast.Nonlocal) else _uses(one, name)
        for one in inner
        if one is not seen_by
    )
    # where something is caught, the array is seen half grown
    tried = any(isinstance(one, ast.Try | ast.TryStar) for one in around)
    return None if hidden or tried or not loops else (name, loops[0], node)


def _variant(store: Store, kernel: Kernel) -> Kernel:
    """Return a kernel that stores each piece in its place, and copies all of them once."""
    assert isinstance(store.value, Called)
    old, piece = store.value.operands
    (there,), (end,) = (kernels.type_of(one, kernel).extents for one in (old, store.value))
    put = replace(store, region=(Range(there, end),), value=piece)
    body = kernels.with_statement(kernel.body, store, (put,))
    joined = f"<joined {store.array}>"
    found = ArrayType(kernel.dtype(store.array), kernel.extents(store.array))
    made = kernel.with_locals({joined: found})
    copy = Bind(joined, Copy(Read(store.array, whole(found.extents)), found.dtype), store.span)
    return made.with_body((*body, copy))


def _is_read(store: Store, kernel: Kernel) -> bool:
    """Return whether it is known what is joined."""
    return not any(isinstance(o, Unknown) and o.span == store.span for o in walk(kernel.body))


def _argued(name: str, loop: ast.stmt, store: Store, kernel: Kernel) -> Legality:
    """Return why the array is the same, and of what that hangs."""
    alike = "" if _is_read(store, kernel) else ", if all that is joined has one element type"
    whole_loop = rewrite.span_of(loop, kernel.context.lines)
    block, at = rewrite.suite_at(whole_loop, kernel.context) or ([], 0)
    made_by = [one for one in block[:at] if _uses(one, name)]
    match made_by[-1] if made_by else None:
        case ast.Assign(value=ast.Subscript()):
            return kernels.displayed(
                f"`{name}` may be part of what the loop changes before it joins it"
            )
        case ast.Assign([ast.Name(made)], ast.Call(ast.Attribute(ast.Name(module), function))) if (
            made == name and module == kernel.context.array_module and function in _MADE
        ):
            same = f"the same pieces are joined, in the same order{alike}"
            return kernels.unsafe(same) if alike else kernels.safe(same)
    return kernels.unsafe(
        f"`{name}` is the same where the loop joins something to it; where it does not, it is a"
        f" copy of what it was, as an array{alike}"
    )


def _edits(
    name: str, loop: ast.stmt, assign: ast.Assign, store: Store, kernel: Kernel
) -> tuple[Edit, ...]:
    context, call, value = kernel.context, assign.value, store.value
    whole_loop = rewrite.span_of(loop, context.lines)
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    assert isinstance(value, Called)
    if not all(rewrite.stands_alone(context, one) for one in (whole_loop, store.span)):
        return ()

    def text(node: ast.expr) -> str:
        return context.text(rewrite.span_of(node, context.lines))

    module, function = text(call.func.value), call.func.attr
    match call.args:
        case [ast.List([_, piece]) | ast.Tuple([_, piece]), *options] | [
            ast.Name(),
            piece,
            *options,
        ]:
            axis = [*options, *(one.value for one in call.keywords)]
        case _:
            return ()
    given, made = value.operands[1], text(piece)
    listed = isinstance(piece, ast.List | ast.Tuple)
    rank = len(kernels.type_of(given, kernel).extents)
    flat = function == "append" and not axis
    if rank and (listed or not isinstance(given, _COMPUTED)):
        # it may change before all are joined
        made = f"{module}.array({made})"
    if flat and (rank != 1 or listed or not _is_read(store, kernel)):
        made = f"{module}.ravel({made})"
    parts = rewrite.fresh_name(f"{name}_parts", context.identifiers)
    first = f"{module}.ravel({name})" if flat else name
    join = "concatenate" if function == "append" else function
    along = f", axis={text(axis[0])}" if axis else ""
    indent = "\n" + " " * whole_loop.start_column
    last = Span(*2 * (whole_loop.end_line, whole_loop.end_column))
    return (
        Edit(rewrite.before(whole_loop), f"{parts} = [{first}]{indent}"),
        rewrite.replace_statement(store.span, [f"{parts}.append({made})"], context),
        Edit(last, f"{indent}{name} = {module}.{join}({parts}{along})"),
    )


def _holds(one: ast.stmt, node: ast.stmt) -> bool:
    """Return whether a statement stands in lines of another one: of loops, functions and `try`."""
    return one.lineno <= node.lineno and (node.end_lineno or 0) <= (one.end_lineno or 0)


def _uses(node: ast.AST, name: str) -> int:
    return sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


TRANSFORM = kernels.KernelRule("ADV507", "grown-array", __doc__, propose)
