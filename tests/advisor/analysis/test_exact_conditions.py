"""Conditions on whole numbers: priced as the iterations that they let through, not by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.analysis.processes import works
from advisor.distribution import BlockDim, CyclicDim, NotDistributed
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Store, Unknown, is_total, walk
from costdb.evaluate import Estimate, Priced, evaluate_price
from costdb.expr import evaluate
from costdb.machines import load_machine
from costdb.pricing import price_process
from costdb.quantity import Provenance
from costdb.work import Collective, CollectiveKind, Leaf, Process, SeqLoop, Sequential, Statement
from tests.advisor.analysis.tally import Tally
from tests.advisor.ownership import owners

SIZES = {"N": 12, "M": 9, "d": 2}
PASSES = "    u += v[:, ::-1]"
OTHERWISE = "    u *= v"


def kernel_of(body: Sequence[str]) -> Kernel:
    place = "f8[N, M] over (block(x), none) on mesh(x=3)"
    lines = ["import numpy as np", "# advise: kernel", f"# advise: u: {place}"]
    lines += [f"# advise: v: {place}", "def program(u, v, N: int, M: int, d: int, tol: float):"]
    (kernel,) = read_kernels("program.py", "\n".join([*lines, *("    " + b for b in body)]) + "\n")
    return kernel


def totals(body: Sequence[str]) -> Counter[str]:
    return Counter(Tally(lower(kernel_of(body)), SIZES).totals)


@dataclass(frozen=True)
class Condition:
    text: str
    holds: Callable[[Mapping[str, int]], bool]


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    number = st.integers(-3, 4)
    index = draw(st.sampled_from(["k", "j", "d"]))
    factor, offset = draw(st.integers(1, 3)), draw(number)
    first, second = draw(st.sampled_from([*RELATIONS])), draw(st.sampled_from([None, *RELATIONS]))
    middle, last = draw(number), draw(number)

    def holds(at: Mapping[str, int]) -> bool:
        one = RELATIONS[first](factor * at[index] + offset, middle)
        return one and (second is None or RELATIONS[second](middle, last))

    chained = "" if second is None else f" {second} {last}"
    return Condition(f"{factor} * {index} + {offset} {first} {middle}{chained}", holds)


def _inverse(inner: Condition) -> Condition:
    return Condition(f"not ({inner.text})", lambda at: not inner.holds(at))


def _joined(pair: tuple[Condition, Condition, str]) -> Condition:
    left, right, word = pair
    if word == "and":
        return Condition(
            f"({left.text}) and ({right.text})", lambda at: left.holds(at) and right.holds(at)
        )
    return Condition(
        f"({left.text}) or ({right.text})", lambda at: left.holds(at) or right.holds(at)
    )


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map(_inverse),
        st.tuples(inner, inner, st.sampled_from(["and", "or"])).map(_joined),
    ),
    max_leaves=4,
)
RANGES = st.sampled_from(
    [
        ("range(4)", range(4)),
        ("range(1, 6, 2)", range(1, 6, 2)),
        ("range(3, -1, -1)", range(3, -1, -1)),
        ("(-1, 0, 1)", range(-1, 2)),
        ("[2, 1, 0]", range(2, -1, -1)),
        ("(0, 3)", range(0, 6, 3)),
        ("(4,)", range(4, 5)),
    ]
)


@settings(max_examples=60, deadline=None)
@given(CONDITIONS, RANGES, RANGES, st.booleans())
def test_iterations_are_those_whose_condition_holds(
    condition: Condition, outer: tuple[str, range], inner: tuple[str, range], skips: bool
) -> None:
    """Like a sum over what each iteration does by itself, also where some are left out."""
    test = [f"if {condition.text}:"]
    if skips:
        inside = [*test, "    continue", OTHERWISE.strip()]
    else:
        inside = [*test, PASSES, "else:", OTHERWISE]
    body = [f"for k in {outer[0]}:", f"    for j in {inner[0]}:", *("        " + i for i in inside)]
    each = {True: Counter[str]() if skips else totals([PASSES.strip()])}
    each[False] = totals([OTHERWISE.strip()])
    expected = Counter[str]()
    for k in outer[1]:
        for j in inner[1]:
            expected.update(each[condition.holds({"k": k, "j": j, "d": SIZES["d"]})])
    assert +totals(body) == +expected


def test_neighbours_of_a_cell_are_fetched_once_from_either_side() -> None:
    """A loop over offsets on both axes, without the cell itself: nothing changes `v`."""
    body = [
        "for a in (-1, 0, 1):",
        "    for b in (-1, 0, 1):",
        "        if a == 0 and b == 0:",
        "            continue",
        "        u += np.roll(np.roll(v, a, axis=0), b, axis=1)",
    ]
    moved = Tally(lower(kernel_of(body)), SIZES)
    written_out = [
        f"u += np.roll(np.roll(v, {a}, axis=0), {b}, axis=1)"
        for a in (-1, 0, 1)
        for b in (-1, 0, 1)
        if (a, b) != (0, 0)
    ]
    assert moved.totals["messages"] == 2
    assert moved.totals == Tally(lower(kernel_of(written_out)), SIZES).totals


@pytest.mark.parametrize("values", [(0.5, 1.5), (0, 1, 3), (2, 0), ()])
def test_values_without_a_progression_cost_what_they_cost_one_by_one(
    values: tuple[float, ...],
) -> None:
    statement = PASSES.strip()
    each = totals([statement])
    looped = totals([f"for k in {values}:", f"    {statement}"])
    assert +looped == +Counter({what: len(values) * count for what, count in each.items()})


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("if tol < 0.5:", id="a number that is not whole"),
        pytest.param("if d < tol:", id="against one"),
        pytest.param("if d in (1, 2):", id="membership"),
        pytest.param("if d < 3 or tol < 1:", id="one side unknown"),
    ],
)
@pytest.mark.parametrize("otherwise", ["    u[:, 0] = 2.0", "    u += v"])
def test_others_hold_never_or_always_or_in_between(line: str, otherwise: str) -> None:
    def priced(test: str) -> Estimate:
        body = [test, OTHERWISE, "else:", otherwise]
        found = price_process(lower(kernel_of(body)), load_machine("t3e"))
        assert isinstance(found, Priced)
        return evaluate_price(found, SIZES)

    sometimes, always, never = priced(line), priced("if 1 < 2:"), priced("if 2 < 1:")
    assert sometimes.complete and sometimes.provenance is Provenance.ESTIMATED
    assert sometimes.low <= min(always.low, never.low)
    assert sometimes.high >= max(always.high, never.high)
    assert sometimes.mid == pytest.approx((always.mid + never.mid) / 2)


def test_values_that_are_not_written_out_remain_unknown() -> None:
    kernel = kernel_of(["for k in (*u, 1):", OTHERWISE])
    assert any(isinstance(statement, Unknown) for statement in walk(kernel.body))


def test_what_may_be_skipped_is_done_with_a_chance() -> None:
    kernel = kernel_of(["for k in range(4):", "    if tol < 0.5:", "        continue", OTHERWISE])
    assert not any(isinstance(statement, Unknown) for statement in walk(kernel.body))


@pytest.mark.parametrize(
    ("power", "known"),
    [
        ("tol**2", True),
        ("tol**d", True),
        ("tol**-1", True),
        ("d**2", True),
        ("2**0.5", True),
        ("10**-3", True),
        ("d**-1", False),
        ("d**tol", False),
        ("2**d", False),
    ],
)
def test_types_of_powers_of_numbers(power: str, known: bool) -> None:
    kernel = kernel_of([f"u *= {power}"])
    assert known is not any(isinstance(statement, Unknown) for statement in walk(kernel.body))


# What loops accumulate, and loops that count down: work against counting by hand.


DIMS = {
    "none": NotDistributed(),
    "block(p)": BlockDim(("p",)),
    "cyclic(p)": CyclicDim(("p",), 1),
}


def accumulating(body: list[str], dims: str = "none, block(p)", ranks: int = 4) -> Kernel:
    lines = ["import numpy as np", "from math import sqrt", "", "# advise: kernel"]
    lines += [f"# advise: {x}: f8[N, N] over ({dims}) on mesh(p={ranks})" for x in ("a", "b")]
    first = dims.partition(",")[0]
    lines.append(f"# advise: v: f8[N] over ({first}) on mesh(p={ranks})")
    lines.append("def f(a, b, v, N: int):")
    lines += [f"    {line}" for line in body]
    (kernel,) = read_kernels("f.py", "\n".join(lines) + "\n")
    return kernel


def elements(process: Process, at: dict[str, int]) -> int:
    """Return how many elements the traversals of a process load."""
    match process:
        case Leaf(Statement(accesses, _, _)):
            loads = [access.region.counts for access in accesses if not access.store]
            return sum(int(evaluate(counts[0], at)) for counts in loads)
        case Sequential(parts):
            return sum(elements(part, at) for part in parts)
        case SeqLoop(variable, low, high, body):
            indices = range(int(evaluate(low, at)), int(evaluate(high, at)) + 1)
            return sum(elements(body, {**at, variable: index}) for index in indices)
    return 0


TOTALS = {
    "+=": ["s += a[i, j]"],
    "= +": ["s = a[i, j] + s"],
    "max": ["s = max(s, a[i, j])"],
    "np.minimum": ["s = np.minimum(a[i, j], s)"],
    "if": ["if a[i, j] > s:", "    s = a[i, j]"],
    "count": ["if a[i, j] > 0.5:", "    s += 1"],
    "of a number": ["r = a[i, j] * a[i, j]", "s += sqrt(r)"],
}


@pytest.mark.parametrize("dims", ["none, block(p)", "block(p), none", "cyclic(p), none"])
@pytest.mark.parametrize("statements", TOTALS.values(), ids=TOTALS.keys())
@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_each_rank_sums_what_it_owns(statements: list[str], dims: str, size: int) -> None:
    body = ["s = 0.0", "for i in range(N):", "    for j in range(N):"]
    kernel = accumulating([*body, *(f"        {line}" for line in statements), "return s"], dims)
    process = lower(kernel)
    owned: Counter[int] = Counter()
    layout = tuple(DIMS[dim] for dim in dims.split(", "))
    for i in range(size):
        for j in range(size):
            for rank in owners((i, j), (size, size), layout, {"p": 4}):
                owned[rank] += 1
    loaded = elements(process, {"N": size})
    assert loaded == max(owned.values(), default=0)
    reductions = [work for work in works(process) if isinstance(work, Collective)]
    assert [work.kind for work in reductions] == [CollectiveKind.ALLREDUCE]
    assert evaluate(reductions[0].ranks, {"N": size}) == 4
    assert [evaluate(count, {}) for count in reductions[0].region.counts] == [1]


UNKNOWN = {
    "a sum that is looked at": ["s = 0.0", "for i in range(N):", "    s += v[i]", "    v[i] = s"],
    "an element before it changes": [
        "for i in range(N):",
        "    t = v[i]",
        "    v[i] = a[i, i]",
        "    a[i, i] = t",
    ],
}


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_order_matters_for_is_not_read_as_a_reduction(body: list[str]) -> None:
    kernel = accumulating(body)
    assert not any(is_total(statement) for statement in walk(kernel.body))


def test_extremes_of_elements_are_read_without_a_probability() -> None:
    body = ["for i in range(N):", "    for j in range(N):"]
    condition = ["        if b[i, j] < a[i, j]:", "            a[i, j] = b[i, j]"]
    call = ["        a[i, j] = min(a[i, j], b[i, j])"]
    one, other = (accumulating([*body, *rest]) for rest in (condition, call))
    values = [[s.value for s in walk(k.body) if isinstance(s, Store)] for k in (one, other)]
    assert values[0] == values[1]
    assert lower(one) == lower(other)
