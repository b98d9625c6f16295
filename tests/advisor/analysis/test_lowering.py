"""Whole kernels: what stays valid, what loops repeat, what operations cost, against runs."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from tests.advisor.analysis.simulate import Rank, Simulation
from tests.advisor.analysis.tally import Tally

ROWS = "f8[N, M] over (block(x), none) on mesh(x={ranks})"
SIZES = {"N": 12, "M": 9, "T": 3, "d": 2}
BLOCKS = "f8[N, M] over (block(x), block(y)) on mesh(x={ranks}, y={ranks})"


def kernel_of(body: Sequence[str], ranks: int = 3, layout: str = ROWS, names: str = "uv") -> Kernel:
    """Return a kernel over some arrays of one layout; `T` and `d` are sizes too."""
    place = layout.format(ranks=ranks)
    lines = ["import numpy as np", "# advise: kernel"]
    lines += [f"# advise: {name}: {place}" for name in names]
    lines.append(f"def program({', '.join(names)}, N: int, M: int, T: int, d: int):")
    lines += [f"    {line}" for line in body]
    (kernel,) = read_kernels("program.py", "\n".join(lines) + "\n")
    return kernel


def middle_of(simulation: Simulation, ranks: int, dimensions: int = 1) -> Rank:
    """Return the rank with neighbours on all sides."""
    at = ranks // 2
    return simulation.ranks[at if dimensions == 1 else at * ranks + at]


def check(
    body: Sequence[str],
    sizes: Mapping[str, int] | None = None,
    *,
    layout: str = ROWS,
    ranks: int = 3,
    names: str = "uv",
    origins: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
) -> Tally:
    """Compare a kernel with its run: equal on the rank in the middle, above all others."""
    bound = {**SIZES, **(sizes or {})}
    kernel = kernel_of(body, ranks, layout, names)
    simulation = Simulation(kernel, bound, origins).run()
    told = Tally(lower(kernel), bound)
    dimensions = 2 if layout is BLOCKS else 1
    middle = middle_of(simulation, ranks, dimensions)
    assert middle.sizes == told.sizes
    assert middle.totals() == told.totals
    for rank in simulation.ranks:
        for name, count in rank.totals().items():
            assert count <= told.totals[name], name
    return told


SHIFT = "v[1:, :] = u[:-1, :]"


def test_what_a_loop_may_leave_valid() -> None:
    known = ["for t in range(3):", f"    {SHIFT}", SHIFT]
    assert check(known).totals["messages"] == 1
    maybe = ["for t in range(T - 1):", f"    {SHIFT}", SHIFT]
    assert Tally(lower(kernel_of(maybe)), SIZES).totals["messages"] == 2
    assert check(maybe, {"T": 1}).totals["messages"] == 1


def test_nested_loops_fetch_once_what_neither_changes() -> None:
    body = ["for t in range(T):", "    for s in range(d):", f"        {SHIFT}"]
    assert check(body).totals["messages"] == 1
    assert not +check(body, {"d": 0}).totals
    changed = [*body, "    u[:, :] = v"]
    assert check(changed).totals["messages"] == 3


def test_branches() -> None:
    branch = ["# advise: prob T - 2", "if d > N:", f"    {SHIFT}", "else:", f"    {SHIFT}"]
    both = Tally(lower(kernel_of([*branch, SHIFT])), SIZES)
    assert both.totals["messages"] == 1
    one = ["# advise: prob T - 2", "if d > N:", f"    {SHIFT}"]
    assert Tally(lower(kernel_of([*one, SHIFT])), SIZES).totals["messages"] == 2
    held = Tally(lower(kernel_of([SHIFT, *one, SHIFT])), SIZES)
    assert held.totals["messages"] == 1
    undone = ["# advise: prob T - 2", "if d > N:", "    u[0, 0] = 1.0"]
    assert Tally(lower(kernel_of([SHIFT, *undone, SHIFT])), SIZES).totals["messages"] == 2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 5), st.integers(0, 2))
def test_distances_that_grow_with_a_loop(trips: int, first: int) -> None:
    """The sum over the loop of what each iteration sends."""
    body = [
        f"for k in range({first}, T):",
        "    v[k:, :] += u[: N - k, :]",
    ]
    bound = {"N": 12, "M": 4, "T": trips, "d": 1}
    kernel = kernel_of(body, 3)
    simulation = Simulation(kernel, bound).run()
    told = Tally(lower(kernel), bound)
    expected: Counter[str] = Counter()
    for k in range(first, trips):
        # each distance is another request, which the model sends anew
        alone = kernel_of([f"v[{k}:, :] += u[: N - {k}, :]"], 3)
        expected += max(
            (rank.totals() for rank in Simulation(alone, bound).run().ranks),
            key=lambda totals: (totals["elements"], totals["loads"]),
        )
    assert +told.totals == +expected
    for rank in simulation.ranks:
        assert rank.totals()["elements"] <= told.totals["elements"]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4))
def test_loops_with_steps(low: int, high: int, step: int) -> None:
    body = [f"for k in range({low}, {high}, {step}):", f"    {SHIFT}", "    u[:, :] = v"]
    told = check(body)
    assert told.totals["messages"] == len(range(low, high, step))


@settings(max_examples=30, deadline=None)
@given(st.integers(-3, 3), st.integers(0, 6), st.sampled_from("+-"))
def test_loops_are_cut_where_their_shift_turns_round(low: int, trips: int, way: str) -> None:
    """As if each iteration stood there by itself: each distance is another request."""
    assume(trips or low >= 0)  # else nothing runs, and nothing is said of it
    line = f"v[9 : N - 9, :] += u[9 {way} k : N - 9 {way} k, :]"
    sizes = {**SIZES, "N": 30}
    told = Tally(lower(kernel_of([f"for k in range({low}, {low + trips}):", "    " + line])), sizes)
    expected: Counter[str] = Counter()
    for k in range(low, low + trips):
        alone = kernel_of([line.replace("k", f"({k})")])
        expected += Tally(lower(alone), sizes).totals
    assert +told.totals == +expected


def test_windows_in_two_loops_are_cut_in_both() -> None:
    """A convolution, which reads on all sides and at the corners."""
    body = [
        "for a in range(3):",
        "    for b in range(3):",
        "        v[1:-1, 1:-1] += u[a : N - 2 + a, b : M - 2 + b]",
    ]
    line = body[2].strip()
    apart = [line.replace("a", str(a)).replace("b", str(b)) for a in range(3) for b in range(3)]
    sizes = {"N": 12, "M": 12, "T": 1, "d": 1}
    told = Tally(lower(kernel_of(body, 3, BLOCKS)), sizes).totals
    assert +told == +Tally(lower(kernel_of(apart, 3, BLOCKS)), sizes).totals
    done = middle_of(Simulation(kernel_of(body, 3, BLOCKS), sizes).run(), 3, 2).totals()
    assert told["messages"] == done["messages"]
    assert told["elements"] >= done["elements"]  # a face that reaches farther is sent again, whole


LEAPFROG = "w[1:-1, 1:-1] = 2 * u[1:-1, 1:-1] - v[1:-1, 1:-1] + u[2:, 1:-1] + u[:-2, 1:-1]"


@pytest.mark.parametrize(
    ("first", "steps"),
    [
        pytest.param("w = u.copy()", ["v = u", "u = w"], id="handed over"),
        pytest.param("w = u.copy()", ["v, u = u, w"], id="at once"),
        pytest.param("w = u.copy()", ["v = u", "u = w", "w = v.copy()"], id="bound anew"),
        pytest.param("pass", ["v, u, w = u, w, v"], id="all exchanged"),
    ],
)
def test_time_steps_that_end_with_names(first: str, steps: list[str]) -> None:
    body = ["w = u.copy()", "for t in range(T):", *(f"    {s}" for s in (first, LEAPFROG, *steps))]
    told = Tally(lower(kernel_of(body)), SIZES)
    assert told.totals["messages"] == 2 * SIZES["T"]
    simulation = Simulation(kernel_of(body), SIZES).run()
    assert middle_of(simulation, 3).totals()["messages"] == told.totals["messages"]


@pytest.mark.parametrize(
    ("first", "steps"),
    [
        pytest.param("s = np.sum(u * u)", ["r = np.sum(v * v)", "v *= r / s", "s = r"], id="sum"),
        pytest.param("s = 1.0", ["s = np.max(np.abs(u - v))", "v *= s"], id="a literal first"),
        pytest.param("s = 0.5", ["v *= s", "s = 0.9 * s"], id="a factor"),
        pytest.param("s = 0.5", ["r = s * 2", "v *= r", "s = 1 - r"], id="through another"),
    ],
)
def test_numbers_that_iterations_hand_on(first: str, steps: list[str]) -> None:
    looped = [first, "for t in range(T):", *(f"    {s}" for s in steps), "v *= s"]
    told = Tally(lower(kernel_of(looped)), SIZES)
    repeated = [first, *steps * SIZES["T"], "v *= s"]
    assert told.totals == Tally(lower(kernel_of(repeated)), SIZES).totals


def test_a_number_that_becomes_an_array_is_not_known() -> None:
    body = ["s = 1.0", "for t in range(T):", "    v *= s", "    s = u * 2"]
    with pytest.raises(Unpriced, match="`s`"):
        lower(kernel_of(body))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(["w = v * 2", "u = w", "v[:, :] = w"], "`w` is not known", id="handed over"),
        pytest.param(
            ["w = v * 2", "for t in range(T):", "    v[:, :] = w", "    u = w"],
            "`w` is not known",
            id="handed over in the iteration before",
        ),
        pytest.param(["w = u.sum(axis=0)", "u = w"], "changes its shape", id="another shape"),
        pytest.param(["w = u.T.copy()", "u = w.T.copy()", "w = u"], "differently", id="transposed"),
    ],
)
def test_names_that_do_not_denote_what_they_did(body: list[str], reason: str) -> None:
    with pytest.raises(Unpriced, match=reason):
        lower(kernel_of(body, layout=ROWS.replace("N, M", "N, N")))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_periodic_rim(ranks: int) -> None:
    """The ranks at both ends hold the rim, and one of them fetches its larger side."""
    body = ['w = np.pad(u, ((2, 1), (0, 0)), mode="wrap")', "v[:, :] = w[2:-1, :]"]
    sizes = {"N": 6 * ranks, "M": 5}
    kernel = kernel_of(body, ranks)
    simulation = Simulation(kernel, sizes, {"w": ("u", (-2, 0))}).run()
    told = Tally(lower(kernel), sizes)
    first = simulation.ranks[0]
    assert first.sizes == told.sizes
    assert first.totals() == told.totals
    assert told.totals["messages"] == (0 if ranks == 1 else 1)


def test_a_number_of_an_array_within_an_expression() -> None:
    told = Tally(lower(kernel_of(["v[:, :] = u / np.sum(u)"])), SIZES)
    assert told.collectives == {("allreduce", 3, 1): 1}
    assert told.totals["loads"] == 2 * 4 * 9
    assert told.totals["operations"] == 2 * 4 * 9


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (["v[:, :] = u[::-1, :]"], "reversal"),
        (["v[:, :] = mystery(u)"], "mystery"),
    ],
)
def test_what_is_not_priced_says_why_and_where(body: list[str], reason: str) -> None:
    with pytest.raises(Unpriced) as caught:
        lower(kernel_of(["v[:, :] = u", *body]))
    assert reason in caught.value.reason
    assert caught.value.span.start_line == 7


def test_ranks_that_own_nothing() -> None:
    """Four elements by blocks of ceil(4/3): the last rank is left without."""
    told = Tally(lower(kernel_of([SHIFT])), {"N": 4, "M": 3})
    simulation = Simulation(kernel_of([SHIFT]), {"N": 4, "M": 3}).run()
    assert simulation.ranks[2].totals()["stores"] == 0
    assert simulation.ranks[1].totals() == told.totals


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 40), st.integers(1, 12), st.integers(1, 6))
def test_more_ranks_never_do_more_local_work(extent: int, ranks: int, more: int) -> None:
    body = ["v[1:, :] = u[:-1, :] + u[1:, :]", "w = np.cumsum(v, axis=1)"]
    few = Tally(lower(kernel_of(body, ranks)), {"N": extent, "M": 3}).totals
    many = Tally(lower(kernel_of(body, ranks + more)), {"N": extent, "M": 3}).totals
    for name in ("loads", "stores", "operations", "scanned"):
        assert many[name] <= few[name]
