"""# ADV502 scan-across-rows

**What it does.** Finds prefix sums and products (`np.cumsum`, `np.cumprod`) along an axis that is
not the one along which neighbours lie in memory, and proposes to compute them row by row, each the
row before it plus its own.

**Why it costs.** NumPy walks down one column after the other. Every element of a column lies on
another cache line, so that a line is fetched once for each of the columns on it, where whole rows
take it once. Where the distance from row to row is a multiple of a power of two, as for 1024 or
2048 columns, the lines of a column also crowd into few sets of the cache. A statement for every row
costs some time of the interpreter, so that short rows are better left to NumPy.

**Example**

```python
total = np.cumsum(image, axis=0)
```

**Use instead**

```python
total = np.empty_like(image)
total[:1] = image[:1]
for i in range(1, image.shape[0]):
    np.add(total[i - 1], image[i], out=total[i])
```

**When it stays quiet.** Axes along which neighbours lie; axes that are distributed; scans of what
is not all of an array with a name; scans in a type that would round the elements first; scans
that are given a place for their result.

**Fix safety.** Each element is the one before it and its own, added in the order in which NumPy
adds them and in the same type, so results are equal bit for bit, also for arrays without elements.

**Models used.** Array operations (scans across lines, additions of rows, the interpreter's time
for a statement); lines where a machine has no rates of them.

**References.** NumPy's documentation of `ufunc.accumulate` and of the memory layout of arrays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.distribution import NotDistributed
from advisor.ir.kernel import Kernel, LocalArray, Proposal, with_part
from advisor.ir.nests import index_symbol
from advisor.ir.shapes import is_whole, whole
from advisor.ir.statements import Bind, Loop, Return, Statement, Store, walk
from advisor.ir.values import Elementwise, Fill, Point, Range, Read, Scan
from advisor.numpy_table import promote
from advisor.source import Edit, Span
from costdb.expr import num, sym
from costdb.records import dataclass, only, replace
from transforms.kit.kernels import KernelRule, along, inner_first, offered, replaced, safe
from transforms.kit.rewrite import (
    before,
    fresh_name,
    indent_at,
    replace_statement,
    span_of,
    stands_alone,
    statement_at,
)

EXACT = frozenset({"int64", "uint64", "float32", "float64", "complex64", "complex128"})
"""Types in which a row is added as a scan adds: what is narrower is rounded in between."""
FUNCTIONS = {"add": "cumsum", "multiply": "cumprod"}
ONE = num(1)
_FRESH = ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call


@dataclass(frozen=True, slots=True)
class _Found:
    """A scan across rows, and the statement it stands in.

    Attributes
    ----------
    statement : Bind or Store
    scan : Scan
    source : str
        The array whose elements are combined.
    call : Span
        Where the source says so.
    target : str or None
        The name that the result is given, if the statement does nothing else.
    """

    statement: Bind | Store
    scan: Scan
    source: str
    call: Span
    target: str | None


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield the scans of a kernel that run across the storage order, row by row."""
    for statement in only(Bind | Store, walk(kernel.body, rewritable=True)):
        found = _found(statement, kernel)
        if found is not None:
            yield _proposal(found, kernel)


def _found(statement: Bind | Store, kernel: Kernel) -> _Found | None:
    """Return the innermost scan of a statement, which its source writes out once.

    Those around it are found in what becomes of the statement.
    """
    parts = inner_first(statement.value)
    scans = [part for part in parts if isinstance(part, Scan) and _crosses(part, kernel)]
    node = statement_at(statement.span, kernel.context)
    if not scans or scans.count(scans[0]) != 1 or not isinstance(scans[0].operand, Read):
        return None
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Return) or node.value is None:
        return None
    scan, source, target = scans[0], scans[0].operand.array, None
    written = kernel.context.written
    calls = [at for at, part in written if part == scan and statement.span.contains(at)]
    if len(calls) != 1:
        return None
    if isinstance(node, ast.Assign) and span_of(node.value, kernel.context.lines) == calls[0]:
        (named, *others) = node.targets
        if isinstance(named, ast.Name):
            target = named.id
            if others or target == source or target in kernel.arrays:
                return None
    elif (
        isinstance(node, ast.Assign)
        and isinstance(statement, Bind)
        and not isinstance(node.value, _FRESH)
    ):
        return None  # a view of the rows would share their memory
    return _Found(statement, scan, source, calls[0], target)


def _crosses(scan: Scan, kernel: Kernel) -> bool:
    """Return whether a scan of an array's elements runs across the order in which they lie."""
    read = scan.operand
    if scan.reverse or scan.operation not in FUNCTIONS or not isinstance(read, Read):
        return False
    name = read.array
    if name not in kernel.arrays and name not in kernel.locals:
        return False
    extents, declared = kernel.extents(name), kernel.arrays.get(name)
    if len(extents) < 2 or not is_whole(read.region, extents):
        return False
    orders = {array.spec.order for array in kernel.arrays.values()}
    order = declared.spec.order if declared is not None else "C"
    if scan.axis == (len(extents) - 1 if order == "C" else 0):
        return False
    dims = [dim for array in kernel.arrays.values() for dim in array.spec.dims]
    if declared is None and orders != {"C"}:
        return False  # what the kernel makes lies as what it is made of
    if declared is not None:
        dims = [declared.spec.dims[scan.axis]]
    if not all(isinstance(dim, NotDistributed) for dim in dims):
        return False
    return scan.dtype in EXACT and promote(scan.dtype, kernel.dtype(name)) == scan.dtype


def _proposal(found: _Found, kernel: Kernel) -> Proposal:
    statement = found.statement
    taken = kernel.context.identifiers
    target = found.target or fresh_name("running", taken)
    index = fresh_name("i", taken)
    function = FUNCTIONS[found.scan.operation]
    argued = safe(
        f"each row is the row before it and its own, combined in the order in which `{function}`"
        " combines them and in the same type, so every result is equal bit for bit"
    )
    return offered(
        kernel,
        title=f"compute `{function}` of `{found.source}` along axis {found.scan.axis} row by row",
        reason="a scan across the storage order fetches a cache line for every element; rows use"
        " up each line once",
        span=statement.span,
        variant=_variant(found, target, index, kernel),
        argued=argued,
        edits=partial(_edits, found, target, index, kernel),
    )


def _variant(found: _Found, target: str, index: str, kernel: Kernel) -> Kernel:
    statement, extents = found.statement, kernel.extents(found.source)
    axis, dtype, span = found.scan.axis, found.scan.dtype, found.statement.span
    symbol = index_symbol(index, 1 + sum(isinstance(s, Loop) for s in walk(kernel.body)))
    first = along(axis, Range(num(0), ONE), extents)
    own, last = (along(axis, Point(at), extents) for at in (sym(symbol), sym(symbol) - ONE))
    row = Elementwise(found.scan.operation, (Read(target, last), Read(found.source, own)))
    made: list[Statement] = [
        Bind(target, Fill("", extents, dtype), span),
        Store(target, first, Read(found.source, first), span),
        Loop(symbol, ONE, extents[axis], 1, (Store(target, own, row, span, in_place=True),), span),
    ]
    rows = Read(target, whole(extents))
    changes: dict[int, tuple[Statement, ...]] = {id(statement): tuple(made)}
    if found.target is None:
        value = with_part(statement.value, found.scan, rows)
        if value == rows and isinstance(statement, Bind):
            # an expression that is returned as it is has no name of its own any more
            for other in walk(kernel.body):
                if isinstance(other, Return) and statement.name in other.names:
                    left = other.names - {statement.name} | {target}
                    changes[id(other)] = (replace(other, names=left),)
        else:
            changes[id(statement)] = (*made, replace(statement, value=value))
    variant = kernel.with_body(replaced(kernel.body, changes))
    return variant.with_locals({target: LocalArray(dtype, extents)})


def _edits(found: _Found, target: str, index: str, kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edits that compute a scan row by row.

    Empty where the statement does not stand alone on its lines, or where NumPy or ``range`` go by
    no name that is certain.
    """
    context, span = kernel.context, found.statement.span
    if context.array_module is None or "range" in context.not_builtins or context.decorators:
        return ()
    if not stands_alone(context, span):
        return ()
    lines = list(_rows(found.source, found.scan, target, index, kernel))
    if found.target is not None:
        return (replace_statement(span, lines, context),)
    above = "".join(f"{line}\n{indent_at(span, context)}" for line in lines)
    return (Edit(before(span), above), Edit(found.call, target))


def _rows(source: str, scan: Scan, target: str, index: str, kernel: Kernel) -> Iterator[str]:
    module, indent = kernel.context.array_module, kernel.context.indent
    before = ":, " * scan.axis
    dtype = "" if scan.dtype == kernel.dtype(source) else f", dtype={module}.{scan.dtype}"
    yield f"{target} = {module}.empty_like({source}{dtype})"
    yield f"{target}[{before}:1] = {source}[{before}:1]"
    yield f"for {index} in range(1, {source}.shape[{scan.axis}]):"
    last, own = f"{target}[{before}{index} - 1]", f"{source}[{before}{index}]"
    yield f"{indent}{module}.{scan.operation}({last}, {own}, out={target}[{before}{index}])"


TRANSFORM = KernelRule("ADV502", "scan-across-rows", __doc__, propose)
