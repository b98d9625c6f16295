"""# ADV403 shared-increments

**What it does.** Finds increments of elements at places that only the data know, of an array that
is distributed: a histogram. It proposes that every rank counts into an array of its own, and that
these are added up in one reduction.

**Why it costs.** An increment of an element that another rank owns is a remote read and a remote
write. With `P` ranks that is all but one in `P` of them. Counted privately, all increments are
local, and one reduction over the array combines them.

**Example**

```python
np.add.at(counts, keys, 1)
```

**Use instead**

```python
counts += np.bincount(keys, minlength=counts.shape[0])
```

**When it stays quiet.** Increments by anything but 1, arrays of other than whole numbers, tables of
more than one dimension: sums of weights would come in another order.

**Fix safety.** Unsafe: `np.bincount` refuses negative places, which `np.add.at` counts from the
end. For places from 0 on, results are equal bit for bit.

**Models used.** PGAS (remote references by pattern, where the profile has their rates; where it has
none, each is a message), lines (collectives).

**References.** Histogram by private counts: the performance model for Unified Parallel C.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.kernel import Kernel, Proposal
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.values import Read
from advisor.numpy_table import Kind
from transforms.kit.kernels import KernelRule, type_of, unsafe
from transforms.loops.placed import is_count, scatters, tallied


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield private counts for every scattered increment."""
    for scatter, _ in scatters(kernel.body):
        array, places = scatter.array, scatter.places
        declared = kernel.arrays.get(array)
        if not is_count(scatter) or declared is None or not declared.spec.mesh.axes:
            continue
        axes = len(type_of(places, kernel).extents)
        if not axes or scatter.others or (axes > 1 and not scatter.by_element):
            continue
        dtype = kernel.dtype(array)
        if kind_of_or_none(dtype) is not Kind.INTEGER or dtype == "uint64":
            continue
        if not isinstance(places, Read) or places.array == array:
            continue
        yield tallied(
            scatter,
            f"count into an array of each rank's own, and add these to `{array}` at once",
            "increments of what other ranks own are a remote read and a remote write each;"
            " private ones are local, and one reduction combines them",
            unsafe(
                "results are equal bit for bit where no place is negative, which np.bincount"
                " refuses"
            ),
            kernel,
        )


TRANSFORM = KernelRule("ADV403", "shared-increments", __doc__, propose)
