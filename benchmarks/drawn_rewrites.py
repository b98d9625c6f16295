"""Kernels that rewrites apply to, with sizes from within caches to beyond the last one: drawn.

Programs are those that the rules' own generators draw (`tests.transforms.generated.families`),
which were written to try legality and know nothing of times; element loops also as functions that
numba compiles. To them come pairs that no rule makes (:mod:`benchmarks.drawn_twins`). The largest
array has 10 KB to 35 MB, or less where a call is predicted to take longer than is worth waiting
for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, log
from random import Random
from typing import Any

from advisor.analysis.lower import Unpriced
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.numpy_table import itemsize_of
from advisor.ranking.compare import bind_sizes
from advisor.transform_registry import transforms
from advisor.verify.cases import Case, Variant, case_of
from benchmarks.drawn_twins import drawn_twins
from benchmarks.many_programs import drawn
from costdb.expr import ExprError, evaluate, free_symbols
from costdb.machines import Machine
from tests.transforms.generated.families import FAMILIES

_BYTES = 10e3, 35e6
_LONGEST_S, _MOST_S = 0.06, 0.3
"""What the program as written is predicted to take at most, and what a rewrite is."""
_MOST_VARIANTS = 3
_COMPILED = "compiled nests"
_TWINS = "twins"
_NESTS = "nests of floats"
_LOCAL = ("distributions", "elements dealt out to threads")
"""Families whose rewrites leave alone what one process does, or that are no kernels."""
_COUNT = 2, 12
"""What numbers that are no extents are drawn from: widths of windows, steps."""


@dataclass(frozen=True, slots=True)
class Rewritable:
    """A program, and perhaps another that comes to the same.

    Attributes
    ----------
    family : str
        Which generator drew it.
    source : str
    twin, choice : str
        The other program and what the choice is about; empty where rules make the others.
    sizes : mapping of str to int
    """

    family: str
    source: str
    twin: str
    choice: str
    sizes: Mapping[str, int]


def families() -> tuple[str, ...]:
    """Return the names of what is drawn from."""
    names = [one.name for one in FAMILIES if one.name not in _LOCAL]
    return (*names, _COMPILED, _TWINS)


def rewritables(family: str, seed: int, count: int, machine: Machine) -> Iterator[Rewritable]:
    """Yield so many programs of a family, each with sizes."""
    if family == _TWINS:
        for number in range(count):
            made = drawn_twins(seed, number)
            yield Rewritable(family, made.one, made.other, made.name, made.sizes)
        return
    for number, source in enumerate(_sources(family, seed, count)):
        sizes = _sizes(source, Random(f"{family} {seed} {number}"), machine)
        if sizes is not None:
            yield Rewritable(family, source, "", "", sizes)


def _sources(family: str, seed: int, count: int) -> list[str]:
    name = _NESTS if family == _COMPILED else family
    strategy = next(one.programs for one in FAMILIES if one.name == name)
    made: list[Any] = []
    # the first that a generator draws are its smallest
    drawn(strategy, 4 * count, seed, lambda one, _: made.append(one))
    sources = dict.fromkeys(one if isinstance(one, str) else one.source for one in made)
    if family == _COMPILED:
        sources = dict.fromkeys(map(_compiled, sources))
    return [source for source in sources if _is_rewritten(source)][-count:]


def _compiled(source: str) -> str:
    return source.replace("# advise: kernel", "from numba import njit\n\n# advise: kernel").replace(
        "def program", "@njit\ndef program"
    )


def _is_rewritten(source: str) -> bool:
    (kernel,) = read_kernels("drawn.py", source)
    return any(
        proposal.variant.body != kernel.body and proposal.edits()
        for rule in transforms()
        for proposal in rule.propose(kernel)
    )


def _sizes(source: str, random: Random, machine: Machine) -> dict[str, int] | None:
    """Return sizes for a program, None where it has no price."""
    (kernel,) = read_kernels("drawn.py", source)
    extents = [extent for array in kernel.arrays.values() for extent in array.extents]
    names = sorted({symbol for extent in extents for symbol in free_symbols(extent)})
    sizes: dict[str, int] = {
        name: random.randint(*_COUNT)
        for name in (*kernel.sizes, *kernel.context.scalar_texts.values())
        if name.isidentifier() and name not in names
    }
    shape = {name: 2 ** random.uniform(-1, 1) for name in names}
    wanted = exp(random.uniform(*map(log, _BYTES)))
    scale = 1e6
    while True:
        sizes |= {name: max(8, round(factor * scale)) for name, factor in shape.items()}
        if _largest_bytes(kernel, sizes) <= wanted:
            break
        scale /= 1.1
    while (predicted := _predicted_s(source, kernel, sizes, machine)) is not None:
        if predicted <= _LONGEST_S or scale < 8:
            return sizes
        scale /= 1.3
        sizes |= {name: max(8, round(factor * scale)) for name, factor in shape.items()}
    return None


def _largest_bytes(kernel: Kernel, sizes: Mapping[str, int]) -> float:
    found = 0.0
    for array in kernel.arrays.values():
        elements = 1.0
        for extent in array.extents:
            elements *= evaluate(extent, sizes)
        found = max(found, elements * itemsize_of(array.dtype))
    return found


def _predicted_s(
    source: str, kernel: Kernel, sizes: Mapping[str, int], machine: Machine
) -> float | None:
    try:
        case = case_of("drawn.py", source, kernel, bind_sizes(kernel, sizes).values, machine, ())
    except (ExprError, Unpriced):
        return None
    predicted = case.variants[0].predicted
    return None if predicted is None else float(predicted.mid)


def case_for(one: Rewritable, machine: Machine, *, every: bool = False) -> Case:
    """Return a program with some of its rewrites, or every one, or with its twin."""
    (kernel,) = read_kernels("drawn.py", one.source)
    bound = bind_sizes(kernel, one.sizes).values
    if one.twin:
        (other,) = read_kernels("drawn.py", one.twin)
        first = case_of("drawn.py", one.source, kernel, bound, machine, ())
        then = case_of("drawn.py", one.twin, other, bound, machine, ())
        twin = replace(then.variants[0], title=one.choice, exact=False)
        return replace(first, variants=(*first.variants, twin))
    case = case_of("drawn.py", one.source, kernel, bound, machine, transforms())
    if every:
        return case
    quick = [v for v in case.variants[1:] if v.predicted and v.predicted.mid <= _MOST_S]
    return replace(case, variants=(case.variants[0], *_some(quick, one.source)))


def _some(variants: list[Variant], source: str) -> list[Variant]:
    """Return a few rewrites, chosen by the program alone, of as many rules as there are."""
    random = Random(source)
    random.shuffle(variants)
    seen: dict[str, int] = {}
    order = []
    for variant in variants:
        order.append((seen.setdefault(variant.code, 0), variant))
        seen[variant.code] += 1
    order.sort(key=lambda pair: pair[0])
    return [variant for _, variant in order[: _MOST_VARIANTS - 1]]
