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

from collections.abc import Iterator

from advisor.ir.kernel import Kernel, Legality, Proposal
from advisor.ir.shapes import is_whole, kind_of_or_none
from advisor.ir.statements import Scatter
from advisor.ir.values import Copy, Elementwise, Point, Read, Scalar, parts_of, reads
from advisor.numpy_table import Kind
from costdb.expr.nodes import Num
from transforms.kit.kernels import KernelRule, is_compiled_alone, is_spread, safe, type_of, unsafe
from transforms.loops.array_statements import IF_NOT_EMPTY
from transforms.loops.exactness import WHOLE, inexact, made_whole
from transforms.loops.placed import as_stores, is_count, scatters, tallied

_SEEN_WHOLE = (Copy, Elementwise, Read, Scalar)
_UNSIGNED = frozenset({"uint8", "uint16", "uint32"})


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield a tally for every addition at places that only the data know."""
    for scatter, zeroed in scatters(kernel.body):
        if not _is_local_sum(scatter, kernel):
            continue
        if scatter.by_element and is_compiled_alone(kernel):
            continue
        by = "a loop" if scatter.by_element else "`add.at`"
        yield tallied(
            scatter,
            f"add up what comes to each place of `{scatter.array}` by `bincount`, not by {by}",
            f"{by} converts and adds its elements one by one, `bincount` all in one loop",
            _argued(scatter, kernel, zeroed=zeroed),
            kernel,
        )


def _is_local_sum(scatter: Scatter, kernel: Kernel) -> bool:
    declared = kernel.arrays.get(scatter.array)
    if declared is not None and is_spread(declared.spec, 0):
        return False
    places, value = scatter.places, scatter.value
    if scatter.operation != "add" or scatter.others:
        return False
    found = type_of(places, kernel)
    # of truth values places are a mask, and bincount takes no uint64
    if kind_of_or_none(found.dtype) is not Kind.INTEGER or found.dtype == "uint64":
        return False
    parts = [part for one in (places, value) for part in parts_of(one)]
    if not found.extents or (len(found.extents) > 1 and not scatter.by_element):
        return False
    if not all(isinstance(one, _SEEN_WHOLE) for one in parts):
        return False
    given = [one for one in parts if isinstance(one, Read)]
    if scatter.by_element and not all(_goes_through_all(one, kernel) for one in given):
        # a slice would be shorter where an element is an error
        return False
    if scatter.array in {one.array for one in given}:
        return False
    if is_count(scatter) and scatter.by_element and kernel.dtype(scatter.array) == "int64":
        # private counts of what ranks have in common are another rule's
        alone = declared is None or not declared.spec.mesh.axes
        return alone or not isinstance(places, Read)
    if is_count(scatter) and kernel.dtype(scatter.array) == "float64":
        # a whole number of them, which is what adding ones comes to
        return True
    kinds = (Kind.BOOLEAN, Kind.INTEGER, Kind.FLOATING)
    return (
        kernel.dtype(scatter.array) in ("float32", "float64")
        and kind_of_or_none(type_of(value, kernel).dtype) in kinds
        and type_of(value, kernel).extents == found.extents
    )


def _goes_through_all(read: Read, kernel: Kernel) -> bool:
    """Return whether what a loop reads of an array is all of it, or of one column."""
    named = [isinstance(one, Point) and isinstance(one.at, Num) for one in read.region]
    extents = kernel.extents(read.array)
    rest = [part for part, one in zip(read.region, named, strict=True) if not one]
    own = [extent for extent, one in zip(extents, named, strict=True) if not one]
    return is_whole(tuple(rest), tuple(own))


def _argued(scatter: Scatter, kernel: Kernel, *, zeroed: bool) -> Legality:
    """Return why results stay what they are, and what numbers of arrays do otherwise."""
    argued = _legality(scatter, kernel, zeroed=zeroed)
    stores = as_stores(scatter, kernel)
    doubts = [words for one in stores for words in inexact(one, kernel)]
    if any(made_whole(part, kernel) for one in stores for part in parts_of(one.value)):
        doubts.append(WHOLE)
    if any(
        isinstance(part, Point) for one in stores for r in reads(one.value) for part in r.region
    ):
        # a column is there, or an error, also of no rows
        doubts.append(IF_NOT_EMPTY)
    for words in dict.fromkeys(doubts):
        argued = unsafe(f"{argued.argument}, and {words}")
    return argued


def _legality(scatter: Scatter, kernel: Kernel, *, zeroed: bool) -> Legality:
    wide = kernel.dtype(scatter.array) == "float64"
    if is_count(scatter) and (zeroed or not wide):
        equal = "results are equal where no place is negative, which np.bincount refuses"
        return unsafe(equal)
    if zeroed and wide and type_of(scatter.places, kernel).dtype in _UNSIGNED:
        return safe(
            "the same terms are added to zeros in the same order, so every sum is equal bit for bit"
        )
    return unsafe(
        "the terms of a place are added up before they are added to what is there, so that sums"
        " agree to rounding; np.bincount refuses negative places"
    )


TRANSFORM = KernelRule("ADV503", "scattered-additions", __doc__, propose)
