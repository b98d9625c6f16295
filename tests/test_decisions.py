"""The decisions that studies of data-parallel programs report, by the prices of this project.

The examples are read as a user's file is; the machines are the built-in ones. Where coefficients
are estimates, only what holds over sizes and ranks is asserted, never a certain time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.analysis.lower import lower
from advisor.analysis.processes import works
from advisor.finding import REPORTED_FROM, Finding
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel, Transform, at_sizes
from advisor.ranking.compare import bind_sizes, cost, time_s
from advisor.ranking.rank import rank
from costdb.evaluate import Missing, evaluate_price
from costdb.expr import evaluate, num
from costdb.machines import load_machine
from costdb.pgas.partition import Affinity, partition, remote_groups
from costdb.pricing import price_process
from costdb.work import Leaf, Message, Pattern, RemoteGroup, Sequential
from tests.papers.upc_programs import histogram
from tests.papers.upc_programs import sobel as sobel_groups
from transforms.distributions.block_or_cyclic import TRANSFORM as BLOCK_OR_CYCLIC
from transforms.distributions.replicated import TRANSFORM as REPLICATED
from transforms.distributions.row_or_column import TRANSFORM as ROW_OR_COLUMN
from transforms.loops.private_counts import TRANSFORM as PRIVATE_COUNTS
from transforms.sweeps.fourier import TRANSFORM as TRANSFORM_ACROSS
from transforms.sweeps.recurrence import TRANSFORM as RECURRENCE

EXAMPLES = Path(__file__).parents[1] / "examples"
LINES = ("t3e", "sp2")
PGAS = ("mupc", "mupc-cache", "bupc", "gupc-t3e")


def example(name: str, kernel: str | None = None) -> Kernel:
    text = (EXAMPLES / f"{name}.py").read_text()
    found = [k for k in read_kernels(name, text) if kernel in (None, k.name)]
    assert len(found) == 1
    return found[0]


def seconds(kernel: Kernel, machine: str, **sizes: int) -> float:
    bound = bind_sizes(kernel, sizes).values
    found = cost(at_sizes(kernel, bound), load_machine(machine))
    assert not isinstance(found, Missing), found
    return time_s(found, bound)


def times(kernel: Kernel, rule: Transform, machine: str, **sizes: int) -> dict[str, float]:
    """Return the time of a kernel as written, and of every variant of a rule."""
    made = {"as written": seconds(kernel, machine, **sizes)}
    for proposal in rule.propose(kernel):
        made[proposal.title] = seconds(proposal.variant, machine, **sizes)
    return made


def finding(kernel: Kernel, rule: Transform, machine: str, **sizes: int) -> Finding | None:
    ranked = rank("f.py", kernel, load_machine(machine), bind_sizes(kernel, sizes), [rule])
    return ranked.findings[0] if ranked.findings else None


def reported(before: float, after: float) -> bool:
    """Whether a gain is large enough to be reported, which is where it is said to pay."""
    return before > REPORTED_FROM * after


# alternating directions


@pytest.mark.parametrize("machine", LINES)
def test_a_pipeline_is_between_waiting_and_the_other_axis(machine: str) -> None:
    sweep = example("adi", "sweep_rows")
    chunks = times(sweep, RECURRENCE, machine)
    other = min(times(sweep, ROW_OR_COLUMN, machine).values())
    best = min(chunks.values())
    assert other < best < chunks["as written"] / 4
    # neither the smallest nor the largest chunks are the best
    widths = [t for name, t in chunks.items() if "chunks" in name]
    assert min(widths) < widths[-1] / 4


def test_start_up_makes_chunks_larger() -> None:
    """The machine with the dearer message wants fewer of them."""
    sweep = example("adi", "sweep_rows")

    def best(machine: str) -> int:
        found = times(sweep, RECURRENCE, machine)
        widths = {t: n for n, t in found.items() if "chunks" in n}
        return int(widths[min(widths)].split("chunks of ")[1].split()[0])

    assert best("t3e") <= best("sp2")


# Gaussian elimination


def gauss(machine: str, ranks: int, size: int = 1000) -> dict[str, float]:
    kernel = example("gauss")
    cyclic = next(p for p in BLOCK_OR_CYCLIC.propose(kernel) if p.title.endswith("cyclically"))
    return {
        "block": seconds(kernel, machine, N=size, P=ranks),
        "cyclic": seconds(cyclic.variant, machine, N=size, P=ranks),
    }


@pytest.mark.parametrize("machine", LINES)
def test_few_ranks_want_the_load_balanced(machine: str) -> None:
    for ranks in (2, 4, 8, 16):
        found = gauss(machine, ranks)
        assert found["cyclic"] < 0.95 * found["block"]


@pytest.mark.parametrize(("machine", "most"), [("t3e", 400), ("sp2", 200)])
def test_many_ranks_want_fewer_of_them_in_each_broadcast(machine: str, most: int) -> None:
    """The gain of cyclic columns shrinks with P until blocks are better."""
    gains = []
    for ranks in (4, 16, 64, most):
        found = gauss(machine, ranks)
        gains.append(found["block"] / found["cyclic"])
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 1.3
    assert gains[-1] < 1


def test_the_crossover_moves_out_with_the_size() -> None:
    """More work in each step keeps the balance important for longer."""

    def first_block(size: int) -> int:
        return next(
            p
            for p in range(4, size, 4)
            if gauss("sp2", p, size)["block"] < gauss("sp2", p, size)["cyclic"]
        )

    assert first_block(100) < first_block(200) < first_block(400)


@pytest.mark.parametrize("machine", LINES)
def test_the_stated_numbers_of_ranks_are_those_where_the_balance_pays(machine: str) -> None:
    found = finding(example("gauss"), BLOCK_OR_CYCLIC, machine)
    assert found is not None
    (by_ranks,) = [crossover for crossover in found.crossovers if crossover.variable == "P"]
    assert by_ranks.values[0] == 2
    for turn in by_ranks.values[1:]:
        below, above = (gauss(machine, ranks) for ranks in (turn - 1, turn))
        assert reported(below["block"], below["cyclic"]) != reported(
            above["block"], above["cyclic"]
        )


# matrix product


@pytest.mark.parametrize("machine", LINES)
def test_a_product_gathers_the_operand_once(machine: str) -> None:
    """All of b goes to every rank: as much as if it were broadcast, and held it costs nothing."""
    kernel = example("matmul")
    text = repr(lower(kernel))
    assert text.count("CollectiveKind.ALLGATHER") == 1
    source = kernel.context.source
    held = source.replace(
        'b: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank")',
        'b: Annotated[NDArray[np.float64], Dist("N", "N", None, None',
    )
    assert held != source
    (replicated,) = read_kernels("matmul.py", held)
    gathered, at_hand = seconds(kernel, machine), seconds(replicated, machine)
    assert at_hand < gathered
    assert "Collective" not in repr(lower(replicated))


# sample sort


def test_what_replicated_indices_cost_grows_with_all_keys() -> None:
    """Each rank computes N*P of them: twice the ranks take twice as long for equal shares."""
    kernel = example("sample_sort")
    (partitioned, *_) = [p.variant for p in REPLICATED.propose(kernel)]
    grown = [seconds(kernel, "t3e", P=p) for p in (16, 32, 64)]
    shared = [seconds(partitioned, "t3e", P=p) for p in (16, 32, 64)]
    assert grown[1] > 1.7 * grown[0] and grown[2] > 1.7 * grown[1]
    assert shared[0] == shared[1] == shared[2]


# stencils


@pytest.mark.parametrize("machine", LINES)
def test_faces_want_to_be_contiguous_and_matter_less_in_larger_plates(machine: str) -> None:
    found = [finding(example("jacobi"), ROW_OR_COLUMN, machine, N=n) for n in (256, 1024, 4096)]
    gains = [one.prediction.speedup for one in found if one and "by rows" in one.message]
    assert len(gains) == 3
    assert gains == sorted(gains, reverse=True) and gains[-1] > 1


@pytest.mark.parametrize("machine", LINES)
def test_edges_are_found_in_blocks_of_contiguous_rows(machine: str) -> None:
    kernel = example("sobel")
    assert finding(kernel, ROW_OR_COLUMN, machine) is None
    turned = kernel.context.source.replace('Block("rank"), None', 'None, Block("rank")')
    (by_columns,) = read_kernels("sobel.py", turned)
    found = finding(by_columns, ROW_OR_COLUMN, machine)
    assert found is not None and "by rows" in found.message


def test_edges_need_the_rows_that_the_references_reach() -> None:
    """Halos and groups of references, two models, agree on what is remote: a row on each side."""
    edges = [g for g in partition(sobel_groups(num(24), num(12))) if g.affinity is Affinity.EDGE]
    assert sorted(group.offset for group in edges) == [-1, 1]
    messages = [w for w in works(lower(example("sobel"))) if isinstance(w, Message)]
    assert len(messages) == len(edges)
    for message in messages:
        assert [evaluate(count, {"N": 24}) for count in message.region.counts] == [1, 24]
        assert (
            evaluate(message.region.pitches_bytes[-1], {"N": 24}) == message.region.itemsize_bytes
        )


# histogram


@pytest.mark.parametrize("machine", PGAS)
def test_increments_anywhere_are_the_published_groups(machine: str) -> None:
    """The array program costs what the references of the UPC program do."""
    groups = remote_groups(histogram(num(100_000), num(12)))
    priced = price_process(Sequential(tuple(map(Leaf, groups))), load_machine(machine))
    assert not isinstance(priced, Missing)
    program = seconds(example("histogram"), machine, N=1_000_000, M=12 * 100_000)
    assert program == pytest.approx(evaluate_price(priced, {}).mid, rel=1e-12)


@pytest.mark.parametrize("machine", LINES)
def test_a_histogram_wants_private_counts(machine: str) -> None:
    """One reduction of the table instead of a message for each increment of another's element."""
    kernel = example("histogram")
    found = finding(kernel, PRIVATE_COUNTS, machine)
    assert found is not None and found.prediction.speedup > 1
    few = finding(kernel, PRIVATE_COUNTS, machine, N=4096)
    # the smaller the table, the cheaper its reduction, whatever the start-up of a message
    assert few is not None and few.prediction.low > 1
    assert few.prediction.speedup > found.prediction.speedup


@pytest.mark.parametrize("machine", LINES)
def test_few_increments_of_a_large_table_stay_where_they_are(machine: str) -> None:
    kernel = example("histogram")
    few = {"N": 10_000_000, "M": 120}
    assert finding(kernel, PRIVATE_COUNTS, machine, **few) is None


def test_increments_are_grouped_as_in_the_model_of_references() -> None:
    """Reads and writes of one place that any thread may own are one mixed group of each kind."""
    (group,) = partition(histogram(num(100), num(12)))
    assert group.affinity is Affinity.MIXED and group.pattern is Pattern.BASELINE
    assert group.reads and group.writes
    references = [w for w in works(lower(example("histogram"))) if isinstance(w, RemoteGroup)]
    assert sorted(one.store for one in references) == [False, True]
    for one in references:
        assert one.mixed and one.pattern is group.pattern
        assert evaluate(one.count, {"N": 50, "M": 1200}) == 100


# transforms


@pytest.mark.parametrize("machine", LINES)
def test_a_second_transform_by_size(machine: str) -> None:
    """Little data goes by butterflies, much is transposed."""
    small = finding(example("fft2d"), TRANSFORM_ACROSS, machine, N=32)
    large = finding(example("fft2d"), TRANSFORM_ACROSS, machine, N=2048)
    assert small is not None and "butterflies" in small.message
    assert large is None or "butterflies" not in large.message
    (turn,) = small.crossovers
    for size, better in ((turn.values[0] - 1, True), (turn.values[-1], False)):
        found = times(example("fft2d"), TRANSFORM_ACROSS, machine, N=size)
        by_butterflies = next(t for title, t in found.items() if "butterflies" in title)
        assert reported(found["as written"], by_butterflies) is better


@pytest.mark.parametrize("machine", LINES)
def test_transforms_by_ranks(machine: str) -> None:
    """Few ranks with much data transpose, many with little exchange by butterflies."""
    kernel = example("spectral")

    def best(size: int, ranks: int) -> str:
        found = times(kernel, TRANSFORM_ACROSS, machine, N=size, P=ranks)
        return min(found, key=found.__getitem__)

    assert "butterflies" not in best(1024, 8)
    assert "butterflies" in best(64, 64)
    wins = ["butterflies" in best(256, ranks) for ranks in (4, 8, 16, 32, 64, 128, 256)]
    assert wins == sorted(wins) and wins[-1] and not wins[0]
