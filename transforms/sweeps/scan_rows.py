"""ADV502: prefix sums across the storage order, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.distribution import NotDistributed
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel, LocalArray
from advisor.ir.nests import index_symbol
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.rebuilt import with_part
from advisor.ir.shapes import is_whole, whole
from advisor.ir.statements import Bind, Choice, Loop, Return, Statement, Store, walk
from advisor.ir.values import Elementwise, Fill, Point, Range, Read, Scan, Value, operands
from advisor.numpy_table import promote
from costdb.expr import Expr, num, sym
from transforms.loops.element_loops import compiled
from transforms.source.writing import fresh_name
from transforms.sweeps.scan_source import ScanCall, scan_call, scan_edits

DOCUMENTATION = """\
# ADV502 scan-across-rows

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

EXACT = frozenset({"int64", "uint64", "float32", "float64", "complex64", "complex128"})
"""Types in which a row is added as a scan adds: what is narrower is rounded in between."""
FUNCTIONS = {"add": "cumsum", "multiply": "cumprod"}
ONE = num(1)


@dataclass(frozen=True, slots=True)
class _Found:
    """A scan across rows, and the statement it stands in.

    Attributes
    ----------
    statement : Bind or Store
    scan : Scan
    source : str
        The array whose elements are combined.
    call : ScanCall
        Where the source says so.
    """

    statement: Bind | Store
    scan: Scan
    source: str
    call: ScanCall


@dataclass(frozen=True, slots=True)
class ScanAcrossRows:
    """The rule ADV502; see its page in `documentation`."""

    code: str = "ADV502"
    name: str = "scan-across-rows"
    documentation: str = DOCUMENTATION

    def propose(self, kernel: Kernel) -> Iterator[Proposal]:
        """Yield the scans of a kernel that run across the storage order, row by row."""
        for statement in walk(kernel.body, rewritable=True):
            if isinstance(statement, Bind | Store):
                found = _found(statement, kernel)
                if found is not None:
                    yield _proposal(found, kernel)


def _found(statement: Bind | Store, kernel: Kernel) -> _Found | None:
    scans = [scan for scan in _scans(statement.value) if _crosses(scan, kernel)]
    # the innermost one: those around it are found in what becomes of the statement
    for scan in scans[:1]:
        assert isinstance(scan.operand, Read)
        source = scan.operand.array
        call = scan_call(statement, source, scan.axis, FUNCTIONS[scan.operation], kernel)
        if call is not None and scans.count(scan) == 1:
            return _Found(statement, scan, source, call)
    return None


def _scans(value: Value) -> Iterator[Scan]:
    for part in operands(value):
        yield from _scans(part)
    if isinstance(value, Scan):
        yield value


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
    if declared is None and (orders != {"C"} or _is_spread(kernel)):
        return False  # what the kernel makes lies as what it is made of
    if declared is not None and not isinstance(declared.spec.dims[scan.axis], NotDistributed):
        return False
    return scan.dtype in EXACT and promote(scan.dtype, kernel.dtype(name)) == scan.dtype


def _is_spread(kernel: Kernel) -> bool:
    dims = (dim for array in kernel.arrays.values() for dim in array.spec.dims)
    return not all(isinstance(dim, NotDistributed) for dim in dims)


def _proposal(found: _Found, kernel: Kernel) -> Proposal:
    statement = found.statement
    taken = kernel.context.identifiers
    target = found.call.target or fresh_name("running", taken)
    index = fresh_name("i", taken)
    function = FUNCTIONS[found.scan.operation]
    legality = compiled(kernel) or Legality(
        Applicability.SAFE,
        f"each row is the row before it and its own, combined in the order in which `{function}`"
        " combines them and in the same type, so every result is equal bit for bit",
    )
    return Proposal(
        title=f"compute `{function}` of `{found.source}` along axis {found.scan.axis} row by row",
        reason="a scan across the storage order fetches a cache line for every element; rows use"
        " up each line once",
        span=statement.span,
        variant=_variant(found, target, index, kernel),
        legality=legality,
        edits=partial(
            scan_edits, found.call, found.source, found.scan, target, index, statement.span, kernel
        ),
    )


def _variant(found: _Found, target: str, index: str, kernel: Kernel) -> Kernel:
    statement, extents = found.statement, kernel.extents(found.source)
    axis, dtype, span = found.scan.axis, found.scan.dtype, found.statement.span
    symbol = index_symbol(index, 1 + sum(isinstance(s, Loop) for s in walk(kernel.body)))
    first = _at(Range(num(0), ONE), axis, extents)
    own, before = (_at(Point(at), axis, extents) for at in (sym(symbol), sym(symbol) - ONE))
    row = Elementwise(found.scan.operation, (Read(target, before), Read(found.source, own)))
    made: list[Statement] = [
        Bind(target, Fill("", extents, dtype), span),
        Store(target, first, Read(found.source, first), span),
        Loop(symbol, ONE, extents[axis], 1, (Store(target, own, row, span, in_place=True),), span),
    ]
    rows = Read(target, whole(extents))
    names: dict[str, str] = {}
    if found.call.target is None:
        value = with_part(statement.value, found.scan, rows)
        if value == rows and isinstance(statement, Bind):
            # an expression that is returned as it is has no name of its own any more
            names[statement.name] = target
        else:
            made.append(replace(statement, value=value))
    variant = kernel.with_body(_replaced(kernel.body, statement, tuple(made), names))
    return variant.with_locals({target: LocalArray(dtype, extents)})


def _at(part: Range | Point, axis: int, extents: tuple[Expr, ...]) -> tuple[Range | Point, ...]:
    return tuple(part if d == axis else Range(num(0), extent) for d, extent in enumerate(extents))


def _replaced(
    body: tuple[Statement, ...],
    old: Statement,
    new: tuple[Statement, ...],
    names: dict[str, str],
) -> tuple[Statement, ...]:
    """Return a block with statements in the place of one, found by identity."""

    def inside(block: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return _replaced(block, old, new, names)

    made: list[Statement] = []
    for statement in body:
        match statement:
            case _ if statement is old:
                made.extend(new)
            case Loop():
                made.append(replace(statement, body=inside(statement.body)))
            case Choice():
                then, orelse = inside(statement.then), inside(statement.orelse)
                made.append(replace(statement, then=then, orelse=orelse))
            case Return() if names:
                left = frozenset(names.get(name, name) for name in statement.names)
                made.append(replace(statement, names=left))
            case _:
                made.append(statement)
    return tuple(made)


TRANSFORM = ScanAcrossRows()
