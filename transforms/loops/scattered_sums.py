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

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import is_whole, kind_of_or_none
from advisor.ir.statements import Scatter
from advisor.ir.values import Read
from transforms.kit.kernels import compiled, is_spread, type_of
from transforms.kit.rule import KernelRule
from transforms.loops.scatters import is_count, scatters, tallied

_UNSIGNED = frozenset({"uint8", "uint16", "uint32"})


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield a tally for every addition at places that only the data know."""
    for scatter, zeroed in scatters(kernel.body):
        if not _is_local_sum(scatter, kernel):
            continue
        by = "a loop" if scatter.by_element else "`add.at`"
        yield tallied(
            scatter,
            f"add up what comes to each place of `{scatter.array}` by `bincount`, not by {by}",
            f"{by} converts and adds its elements one by one, `bincount` all in one loop",
            compiled(kernel) or _legality(scatter, kernel, zeroed=zeroed),
            kernel,
        )


def _is_local_sum(scatter: Scatter, kernel: Kernel) -> bool:
    declared = kernel.arrays.get(scatter.array)
    if declared is not None and is_spread(declared.spec, 0):
        return False
    places, value = scatter.places, scatter.value
    if not isinstance(places, Read) or scatter.operation != "add" or scatter.others:
        return False
    found = type_of(places, kernel)
    # of truth values places are a mask, and bincount takes no uint64
    if kind_of_or_none(found.dtype) is not Kind.INTEGER or found.dtype == "uint64":
        return False
    if scatter.by_element and not is_whole(places.region, kernel.extents(places.array)):
        # a slice would be shorter where an element is an error
        return False
    if is_count(scatter) and scatter.by_element and kernel.dtype(scatter.array) == "int64":
        # private counts of what ranks have in common are another rule's
        return declared is None and scatter.array != places.array
    kinds = (Kind.BOOLEAN, Kind.INTEGER, Kind.FLOATING)
    return (
        isinstance(value, Read)
        and scatter.array not in (places.array, value.array)
        and kernel.dtype(scatter.array) in ("float32", "float64")
        and kind_of_or_none(type_of(value, kernel).dtype) in kinds
        and type_of(value, kernel).extents == found.extents
    )


def _legality(scatter: Scatter, kernel: Kernel, *, zeroed: bool) -> Legality:
    if is_count(scatter):
        equal = "results are equal where no place is negative, which np.bincount refuses"
        return Legality(Applicability.UNSAFE, equal)
    wide = kernel.dtype(scatter.array) == "float64"
    if zeroed and wide and type_of(scatter.places, kernel).dtype in _UNSIGNED:
        return Legality(
            Applicability.SAFE,
            "the same terms are added to zeros in the same order, so every sum is equal bit for"
            " bit",
        )
    return Legality(
        Applicability.UNSAFE,
        "the terms of a place are added up before they are added to what is there, so that sums"
        " agree to rounding; np.bincount refuses negative places",
    )


TRANSFORM = KernelRule("ADV503", "scattered-additions", __doc__, propose)
