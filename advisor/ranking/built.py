"""A kernel on so many ranks, as written and as rules would have it: what can be built and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf, prod
from operator import itemgetter
from types import MappingProxyType

from advisor.analysis.arrays import Arrays
from advisor.analysis.halos import Halos
from advisor.analysis.lower import Unpriced
from advisor.analysis.placement import Facts, NotPriced
from advisor.analysis.processes import ranks_together, together, with_distances, works
from advisor.build.text import Module, NotBuiltError, placements
from advisor.build.work import FETCHED
from advisor.build.writer import write
from advisor.distribution import MeshSpec
from advisor.ir.kernel import Kernel, Transform, at_sizes, rebuilt
from advisor.ir.shapes import ShapeConflict
from advisor.ir.statements import written
from advisor.ranking.compare import WORTH, Costed, cost_of, time_s
from costdb.arrays.amounts import GIVEN_BACK
from costdb.arrays.model import SECTION, bytes_of
from costdb.evaluate import Missing, Priced
from costdb.expr import ZERO, Expr, ExprError, free_symbols, num, substitute
from costdb.machines import Machine
from costdb.records import dataclass, replace
from costdb.work import Process, Statement

AS_WRITTEN, BEST = "as-written", "best"
_MOST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to distribute and write a kernel.

    Attributes
    ----------
    steps : tuple of (str, str)
        Rules that were followed, and what they say; none of the kernel as written.
    kernel : Kernel
    costed : Costed or None
        Its price; None where it has none, for the reason in `unknown`.
    """

    steps: tuple[tuple[str, str], ...]
    kernel: Kernel
    costed: Costed | None
    unknown: str = ""

    @property
    def told(self) -> str:
        """Its steps, one after the other."""
        return ", then ".join(f"{title} ({code})" for code, title in self.steps)


def on_ranks(kernel: Kernel, ranks: int) -> Kernel:
    """Return a kernel on so many ranks: meshes of another number become grids of all of them."""
    arrays = {}
    for name, array in kernel.arrays.items():
        axes = array.spec.mesh.axes
        mesh = MeshSpec(tuple(zip((a for a, _ in axes), _grid(axes, ranks), strict=True)))
        arrays[name] = replace(array, spec=replace(array.spec, mesh=mesh))
    return kernel.with_arrays(arrays)


def _grid(axes: Sequence[tuple[str, int | str]], ranks: int) -> tuple[int, ...]:
    """Return the extents that a built program gives its mesh: as stated if they fit."""
    given = tuple(n for _, n in axes if isinstance(n, int))
    fits = len(given) == len(axes) and prod(given) == ranks
    return given if fits else _balanced(ranks, len(axes))


def _balanced(ranks: int, count: int) -> tuple[int, ...]:
    """Return so many factors of a number, near to each other, as ``MPI.Compute_dims`` does."""
    if count <= 1:
        return (ranks,) * count
    first = next(n for n in range(1, ranks + 1) if ranks % n == 0 and n**count >= ranks)
    return (first, *_balanced(ranks // first, count - 1))


Price = Callable[[Kernel], Costed | Missing]


def plan_of(kernel: Kernel, price: Price | None, steps: tuple[tuple[str, str], ...] = ()) -> Plan:
    """Return a plan with its price."""
    if price is None:
        return Plan(steps, kernel, None, "no machine is chosen")
    try:
        costed = price(kernel)
    except NotBuiltError as error:
        return Plan(steps, kernel, None, f"not built: {error.why}")
    except (Unpriced, NotPriced, ShapeConflict, ExprError) as unknown:
        return Plan(steps, kernel, None, str(unknown))
    if isinstance(costed, Missing):
        return Plan(steps, kernel, None, costed.what)
    return Plan(steps, kernel, costed)


def built_cost(
    kernel: Kernel, machine: Machine, sizes: Mapping[str, int | float] = MappingProxyType({})
) -> Costed | Missing:
    """Return the price of the program that a kernel is built as, a formula of sizes not given.

    Raises
    ------
    NotBuiltError
        It is not built.
    ExprError, Unpriced
        It has no price.
    """
    # of sizes without a value any will do: what is written has their names
    any_size = dict.fromkeys((*kernel.sizes, *_symbols(kernel)), 1)
    written = write(kernel, Module({**any_size, **sizes}, set(), kernel.context.identifiers))
    bound = {name: num(value) for name, value in sizes.items()}
    process = rebuilt(written.work, lambda part: substitute(part, bound))
    if machine.section("arrays"):
        here = at_sizes(kernel, sizes)
        placed = placements(here)
        arrays = Arrays(here, placed, Facts(), Halos())
        process = together(process, ranks_together(placed.values()))
        # what is made in a loop, of a length of its own each time, takes little beside
        fetched = (one for one in _fetched_bytes(process) if free_symbols(one) <= any_size.keys())
        process = with_distances(process, sum((*arrays.sizes_bytes(placed), *fetched), ZERO))
    found = cost_of(process, machine, kernel.span)
    if isinstance(found, Missing):
        return found
    return Costed(process, _kept(found.priced))


def _fetched_bytes(process: Process) -> Iterable[Expr]:
    """Return the bytes of arrays that the program makes of what it fetches."""
    made = {
        call.result.array: bytes_of(call.result.region)
        for work in works(process)
        if isinstance(work, Statement) and work.label == FETCHED
        for call in work.calls or ()
        if call.fresh and call.result is not None and call.result.array
    }
    return made.values()


def _symbols(kernel: Kernel) -> Iterator[str]:
    for array in kernel.arrays.values():
        for extent in array.extents:
            yield from free_symbols(extent)
        yield from (n for _, n in array.spec.mesh.axes if isinstance(n, str))


def _kept(priced: Priced) -> Priced:
    """Return a price in a process that has freed a large array, as one has that scattered it.

    What the C library then does with freed memory is known: it keeps all but large arrays.
    """
    name, known = f"{SECTION}.{GIVEN_BACK}", dict(priced.coefficients)
    if name in known:
        known[name] = known[name].over((0.0, 0.0, 0.0))
    return replace(priced, coefficients=known)


def proposed(plan: Plan, price: Price | None, transforms: Sequence[Transform]) -> Iterator[Plan]:
    """Yield a plan with one step more of each rule that it has not followed, each way once.

    A step that leaves what the kernel changes in arrays of its own is no plan for a program.
    """
    used = {code for code, _ in plan.steps}
    seen = [plan.kernel]
    for rule in transforms:
        if rule.code in used:
            continue
        for one in rule.propose(plan.kernel):
            if one.variant not in seen and _stored(plan.kernel) <= _stored(one.variant):
                seen.append(one.variant)
                yield plan_of(one.variant, price, (*plan.steps, (rule.code, one.title)))


def _stored(kernel: Kernel) -> frozenset[str]:
    """Return the arrays that a kernel changes; a rule may leave results in others of its own."""
    return frozenset[str]().union(*map(written, kernel.body)) & kernel.arrays.keys()


def best_plan(
    best: Plan,
    price: Price,
    sizes: Mapping[str, int | float],
    transforms: Sequence[Transform],
) -> Plan:
    """Return the fastest plan that goes on from one: rule after rule, while each is faster."""
    while len(best.steps) < _MOST_STEPS and best.costed is not None:
        timed = []
        for one in proposed(best, price, transforms):
            # what takes too long to add up takes longer to run
            with suppress(ExprError):
                if one.costed is not None:
                    timed.append((time_s(one.costed, sizes), one))
        least_s, faster = min(timed, key=itemgetter(0), default=(inf, best))
        if least_s * WORTH > time_s(best.costed, sizes):
            break
        best = faster
    return best
