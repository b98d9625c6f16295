"""Reference partitioning: the published groups, its three rules, and counts by brute force."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.evaluate import Missing, evaluate_price
from costdb.expr import evaluate, num, sym
from costdb.machines import load_machine
from costdb.pgas.partition import (
    CLOSE_ELEMENTS,
    Affinity,
    Dependence,
    DependenceKind,
    Interval,
    Irregular,
    Loop,
    PartitionError,
    Reference,
    SharedArray,
    Spread,
    partition,
    remote_groups,
    served_pattern,
)
from costdb.pricing import price_process
from costdb.work import Leaf, Pattern, RemoteGroup, Sequential
from tests.papers.upc_programs import affine, histogram, matmul, sobel

PUBLISHED = json.loads((Path(__file__).parents[2] / "data" / "pgas_upc.json").read_text())
PLATFORMS = tuple(PUBLISHED["rates"])
N, T = sym("N"), sym("T")


def shown(interval: Interval) -> list[tuple[str, str, str, str]]:
    return [
        (
            group.array,
            "".join(("r" * group.reads, "w" * group.writes)),
            str(group.affinity),
            str(group.pattern),
        )
        for group in partition(interval)
    ]


def test_the_histogram_is_one_mixed_baseline_group_read_and_written() -> None:
    assert shown(histogram(N, T)) == [("table", "rw", "mixed", "baseline")]
    reads, writes = remote_groups(histogram(N, T))
    assert reads == RemoteGroup(N, T, Pattern.BASELINE, False, True, "table")
    assert writes == RemoteGroup(N, T, Pattern.BASELINE, True, True, "table")


@pytest.mark.parametrize("spread", [Spread.BLOCK, Spread.CYCLIC])
def test_the_matrix_product_has_the_four_published_groups(spread: Spread) -> None:
    interval = matmul(N, T, spread)
    assert shown(interval) == [
        ("C", "w", "local", "local"),
        ("C", "r", "local", "local"),
        ("A", "r", "local", "local"),
        ("B", "r", "mixed", "vector"),
    ]
    assert partition(interval)[0].members == (0, 4)
    # The two writes of one location count once: every group has rows * N * N references.
    counts = {evaluate(work.count, {"N": 240, "T": 7}) for work in remote_groups(interval)}
    assert counts == {35 * 240 * 240}


def test_sobel_has_the_published_groups_and_remote_patterns() -> None:
    interval = sobel(N, T)
    assert sorted(shown(interval)) == [
        ("E", "w", "local", "local"),
        ("O", "r", "edge", "vector"),
        ("O", "r", "edge", "vector"),
        ("O", "r", "local", "local"),
    ]
    assert sorted(group.offset for group in partition(interval)) == [-1, 0, 0, 1]
    for platform in PLATFORMS:
        machine = load_machine(platform)
        for group in partition(interval):
            if group.affinity is Affinity.EDGE:
                served = served_pattern(machine, group.pattern, group.writes)
                assert served == PUBLISHED["sobel_remote_pattern"][platform]


def sobel_by_brute_force(size: int, threads: int) -> Counter[tuple[str, bool]]:
    """Return distinct references an iteration, by locality and kind, of the slowest thread."""
    block = -(-size // threads)
    stencil = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    found: list[Counter[tuple[str, bool]]] = []
    for thread in range(threads):
        counts: Counter[tuple[str, bool]] = Counter()
        for i in range(max(1, thread * block), min(size - 1, (thread + 1) * block)):
            for _ in range(1, size - 1):
                counts["local", True] += 1
                for row, column in stencil:
                    if (row, column) in ((0, -1), (0, 1)) or row != 0:
                        own = (i + row) // block == thread
                        counts["local" if own else "remote", False] += 1
        found.append(counts)
    return max(found, key=lambda counts: (counts["remote", False], counts.total()))


@given(st.integers(4, 30), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_sobels_counts_equal_brute_force(size: int, threads: int) -> None:
    counted: Counter[tuple[str, bool]] = Counter()
    for work in remote_groups(sobel(num(size), num(threads))):
        where = "local" if work.pattern is Pattern.LOCAL else "remote"
        counted[where, work.store] += int(evaluate(work.count, {}))
    assert +counted == +sobel_by_brute_force(size, threads)


def one_loop(*references: Reference, arrays: tuple[SharedArray, ...], **more: str) -> Interval:
    return Interval(T, arrays, (Loop("i", N),), references, **more)


def at(array: str, offset: int, store: bool = False, statement: str = "s") -> Reference:
    return Reference(array, (affine(offset, i=1),), statement, store)


def test_rule_1_different_objects_are_apart() -> None:
    arrays = (SharedArray("A", Spread.REMOTE), SharedArray("B", Spread.REMOTE))
    interval = one_loop(at("A", 0), at("B", 0), at("A", 1), arrays=arrays)
    assert [group.members for group in partition(interval)] == [(0, 2), (1,)]


@pytest.mark.parametrize("kind", list(DependenceKind))
def test_rule_3_true_and_anti_dependences_are_apart(kind: DependenceKind) -> None:
    # p = A[i]; q = A[p]: the second read needs the first one's value.
    chase = Reference("A", (Irregular("p"),), "s")
    arrays = (SharedArray("A", Spread.REMOTE),)
    interval = Interval(T, arrays, (Loop("i", N),), (at("A", 0), chase), (Dependence(0, 1, kind),))
    together = kind is DependenceKind.OUTPUT
    assert len(partition(interval)) == (1 if together else 2)


@pytest.mark.parametrize(
    ("stride", "pattern"),
    [
        (1, Pattern.VECTOR),
        (-1, Pattern.VECTOR),
        (2, Pattern.COALESCE),
        (CLOSE_ELEMENTS, Pattern.COALESCE),
        (CLOSE_ELEMENTS + 1, Pattern.BASELINE),
        (0, Pattern.BASELINE),
    ],
)
def test_strides_decide_the_pattern(stride: int, pattern: Pattern) -> None:
    reference = Reference("A", (affine(3, i=stride),), "s")
    interval = one_loop(reference, arrays=(SharedArray("A", Spread.REMOTE),))
    assert [group.pattern for group in partition(interval)] == [pattern]


def test_close_offsets_that_the_loop_does_not_move_are_coalesced() -> None:
    arrays = (SharedArray("A", Spread.REMOTE),)
    fixed = [Reference("A", (affine(offset),), "s") for offset in (0, 3, 5)]
    assert [g.pattern for g in partition(one_loop(*fixed, arrays=arrays))] == [Pattern.COALESCE]
    far = Reference("A", (affine(500),), "s")
    interval = one_loop(*fixed, far, arrays=arrays)
    assert [group.pattern for group in partition(interval)] == [Pattern.BASELINE]


@given(st.integers(1, 40), st.integers(1, 8), st.integers(-3, 3))
@settings(max_examples=60, deadline=None)
def test_edges_of_a_block_equal_brute_force(block: int, threads: int, offset: int) -> None:
    # for the own i: read A[i + offset], seen from a thread with neighbours on both sides.
    interval = Interval(
        num(threads),
        (SharedArray("A", Spread.BLOCK),),
        (Loop("i", num(block)),),
        (at("A", offset),),
        affinity="i",
    )
    remote = sum(1 for i in range(block) if threads > 1 and not 0 <= i + offset < block)
    works = remote_groups(interval)
    counts = {work.pattern is Pattern.LOCAL: evaluate(work.count, {}) for work in works}
    assert counts.get(True) == block - remote
    assert counts.get(False, 0) == remote


@given(st.integers(1, 9), st.integers(-9, 9).filter(bool), st.integers(0, 30))
def test_a_cyclic_shift_is_remote_unless_it_comes_round(
    threads: int, offset: int, trips: int
) -> None:
    interval = Interval(
        num(threads),
        (SharedArray("A", Spread.CYCLIC),),
        (Loop("i", num(trips)),),
        (at("A", offset),),
        affinity="i",
    )
    local, remote = (evaluate(work.count, {}) for work in remote_groups(interval))
    own = sum((i * threads + offset) % threads == 0 for i in range(trips))
    assert (local, remote) == (own, trips - own)


def test_one_fixed_element_is_remote_for_the_slowest_thread() -> None:
    flag = Reference("A", (affine(0),), "s")
    (group,) = partition(one_loop(flag, arrays=(SharedArray("A", Spread.BLOCK),), affinity="i"))
    assert (group.affinity, group.pattern) == (Affinity.REMOTE, Pattern.BASELINE)


@pytest.mark.parametrize(
    ("reference", "dependences", "said"),
    [
        (at("Z", 0), (), "no shared array is named 'Z'"),
        (Reference("A", (), "s"), (), "more axes than the 0 subscripts"),
        (Reference("A", (affine(),), "s", depth=2), (), "depth of loops"),
        (Reference("A", (affine(),), "s", depth=-1), (), "depth of loops"),
        (at("A", 0), (Dependence(0, 1, DependenceKind.TRUE),), "reference that is not there"),
    ],
)
def test_contradictory_references_are_refused(
    reference: Reference, dependences: tuple[Dependence, ...], said: str
) -> None:
    interval = Interval(
        T, (SharedArray("A", Spread.BLOCK),), (Loop("i", N),), (reference,), dependences
    )
    with pytest.raises(PartitionError, match=said) as caught:
        partition(interval)
    assert "\n" not in str(caught.value)


APPLICATIONS = {
    "histogram": (histogram(N, T), 100_000),
    "matmul cyclic": (matmul(N, T, Spread.CYCLIC), 240),
    "matmul block": (matmul(N, T, Spread.BLOCK), 240),
    "sobel": (sobel(N, T), 2000),
}


def seconds(application: str, platform: str, threads: int) -> float:
    interval, size = APPLICATIONS[application]
    groups = tuple(map(Leaf, remote_groups(interval)))
    priced = price_process(Sequential(groups), load_machine(platform))
    assert not isinstance(priced, Missing)
    estimate = evaluate_price(priced, {"N": size, "T": threads})
    assert estimate.in_range
    assert 0 < estimate.low < estimate.mid < estimate.high
    return estimate.mid


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("application", APPLICATIONS)
def test_more_threads_help_the_shared_loops_and_slow_the_random_updates(
    application: str, platform: str
) -> None:
    times = [seconds(application, platform, threads) for threads in (2, 3, 4, 5, 6, 8, 10, 12)]
    # Each thread of the histogram makes all its updates, ever fewer of them local.
    assert times == sorted(times, reverse=application != "histogram")


def test_the_cache_wins_where_it_can_and_loses_on_random_updates() -> None:
    for threads in (2, 6, 12):
        assert seconds("sobel", "mupc-cache", threads) < seconds("sobel", "mupc", threads)
        assert (
            seconds("matmul cyclic", "mupc-cache", threads)
            < seconds("matmul cyclic", "mupc", threads) / 10
        )
        assert seconds("histogram", "mupc-cache", threads) > seconds("histogram", "mupc", threads)
