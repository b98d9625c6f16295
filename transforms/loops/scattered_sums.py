"""# ADV503 scattered-additions

**What it does.** Finds `np.add.at` on a vector that every rank has whole, or that one process has
alone, and loops that add to such elements one by one, and adds up the terms by `np.bincount`.

**Why it costs.** Where the terms are of another type than the sums, `np.add.at` converts and adds
them one by one, through the machinery that serves every ufunc, type and subscript. `np.bincount`
converts all of them at once, and adds them up in one loop. Where no type changes, both take about
as long, and the prediction says so.

**Example**

```python
np.add.at(total, keys, values)
```

**Use instead**

```python
total += np.bincount(keys, weights=values, minlength=total.shape[0])
```

**When it stays quiet.** Arrays of other than floating-point numbers, or of more than one dimension;
arrays that ranks share out, where each increment is remote (ADV403); complex terms.

**Fix safety.** Safe where places are unsigned, sums are of 64 bits, and the array was filled with
zeros just before: both add the same terms in the same order. Otherwise unsafe: `np.bincount`
refuses negative places, which `np.add.at` counts from the end, and it adds up the terms before it
adds them to what is there, so that sums agree to rounding.

**Models used.** Array operations (additions at places that only the data know).

**References.** NumPy's documentation of `ufunc.at` and of `bincount`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import is_whole, kind_of_or_none, whole
from advisor.ir.statements import Bind, Loop, Scatter, Statement, Store, mentioned
from advisor.ir.values import Elementwise, Fill, Read, Scalar, Tally
from advisor.source import Edit
from transforms.kit.kernels import compiled, is_spread, type_of, with_statement
from transforms.kit.rewrite import first_line, replace_statement, stands_alone, statement_at
from transforms.kit.rule import KernelRule
from transforms.loops.array_text import read_text

_UNSIGNED = frozenset({"uint8", "uint16", "uint32"})


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield a tally for every addition at places that only the data know."""
    for scatter, zeroed in _scatters(kernel.body):
        if _is_local_sum(scatter, kernel):
            yield _proposal(scatter, kernel, zeroed=zeroed)


def _scatters(body: tuple[Statement, ...]) -> Iterator[tuple[Scatter, bool]]:
    """Yield scatters, and whether their array was filled with zeros just before."""
    zeros: set[str] = set()
    for statement in body:
        match statement:
            case Scatter():
                yield statement, statement.array in zeros
            case Loop(body=inner):
                yield from _scatters(inner)
        zeros -= mentioned(statement)
        match statement:
            case Bind(name=name, value=Fill(value="0" | "0.0" | "0.")):
                zeros.add(name)


def _is_local_sum(scatter: Scatter, kernel: Kernel) -> bool:
    declared = kernel.arrays.get(scatter.array)
    if declared is not None and is_spread(declared.spec, 0):
        return False
    kinds = (Kind.BOOLEAN, Kind.INTEGER, Kind.FLOATING)
    places = scatter.places
    if not isinstance(places, Read) or scatter.operation != "add" or scatter.others:
        return False
    if not _are_places(type_of(places, kernel).dtype):
        return False
    if scatter.by_element and not is_whole(places.region, kernel.extents(places.array)):
        # a slice would be shorter where an element is an error
        return False
    if _counts(scatter, kernel):
        # private counts of what ranks have in common are another rule's
        return declared is None and scatter.array != places.array
    return (
        isinstance(scatter.value, Read)
        and scatter.array not in (places.array, scatter.value.array)
        and kernel.dtype(scatter.array) in ("float32", "float64")
        and kind_of_or_none(type_of(scatter.value, kernel).dtype) in kinds
        and type_of(scatter.value, kernel).extents == type_of(places, kernel).extents
    )


def _are_places(dtype: str) -> bool:
    """Return whether elements are places: of truth values a mask, and bincount takes no uint64."""
    return kind_of_or_none(dtype) is Kind.INTEGER and dtype != "uint64"


def _counts(scatter: Scatter, kernel: Kernel) -> bool:
    """Return whether a loop counts, in whole numbers that hold what NumPy counts."""
    match scatter:
        case Scatter(value=Scalar("1"), by_element=True):
            return kernel.dtype(scatter.array) == "int64"
    return False


def _proposal(scatter: Scatter, kernel: Kernel, *, zeroed: bool) -> Proposal:
    array, extents = scatter.array, kernel.extents(scatter.array)
    region = whole(extents)
    counts = _counts(scatter, kernel)
    tally = Tally(scatter.places, scatter.value, extents[0], "float64")
    if counts:
        tally = Tally(scatter.places, None, extents[0], "int64")
    by = "a loop" if scatter.by_element else "`add.at`"
    added = Elementwise("add", (Read(array, region), tally))
    store = Store(array, region, added, scatter.span, in_place=True)
    same = zeroed and kernel.dtype(array) == "float64"
    same = same and type_of(scatter.places, kernel).dtype in _UNSIGNED
    safe = "the same terms are added to zeros in the same order, so every sum is equal bit for bit"
    unsafe = (
        "the terms of a place are added up before they are added to what is there, so that sums"
        " agree to rounding; np.bincount refuses negative places"
    )
    if counts:
        unsafe = "results are equal where no place is negative, which np.bincount refuses"
    return Proposal(
        title=f"add up what comes to each place of `{array}` by `bincount`, not by {by}",
        reason=f"{by} converts and adds its elements one by one, `bincount` all in one loop",
        span=first_line(scatter.span, kernel.context),
        variant=kernel.with_body(with_statement(kernel.body, scatter, (store,))),
        legality=compiled(kernel)
        or Legality(*((Applicability.SAFE, safe) if same else (Applicability.UNSAFE, unsafe))),
        edits=lambda: _edits(scatter, kernel),
    )


def _edits(scatter: Scatter, kernel: Kernel) -> tuple[Edit, ...]:
    context, array = kernel.context, scatter.array
    if scatter.by_element:
        return _loop_edits(scatter, kernel)
    match statement_at(scatter.span, context):
        case ast.Expr(value=ast.Call(args=[_, places, values])):
            at, weights = (ast.get_source_segment(context.source, n) for n in (places, values))
            numpy = context.array_module
            if numpy is None or not stands_alone(context, scatter.span):
                return ()
            call = f"{numpy}.bincount({at}, weights={weights}, minlength={array}.shape[0])"
            if "\n" not in call:
                return (replace_statement(scatter.span, [f"{array} += {call}"], context),)
    return ()


def _loop_edits(scatter: Scatter, kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edit of loops whose one statement is an increment."""
    context, numpy = kernel.context, kernel.context.array_module
    node: ast.stmt | None = statement_at(scatter.span, context)
    while isinstance(node, ast.For) and len(node.body) == 1:
        node = node.body[0]
    if not isinstance(node, ast.AugAssign) or numpy is None or not isinstance(scatter.places, Read):
        return ()
    parts = [part for part in (scatter.places, scatter.value) if isinstance(part, Read)]
    texts = [read_text(part, (), kernel) for part in parts]
    known = [text for text in texts if text is not None]
    if len(known) < len(texts) or not stands_alone(context, scatter.span):
        return ()
    array = scatter.array
    if len(type_of(scatter.places, kernel).extents) > 1:
        # in the order of the loops
        known = [f"{text}.ravel()" for text in known]
    given = ", weights=".join(known)
    call = f"{numpy}.bincount({given}, minlength={array}.shape[0])"
    return (replace_statement(scatter.span, [f"{array} += {call}"], context),)


TRANSFORM = KernelRule("ADV503", "scattered-additions", __doc__, propose)
