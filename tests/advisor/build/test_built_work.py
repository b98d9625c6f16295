"""The work that a built program is priced by is what it does: its messages, by rank and call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from advisor.build.text import Module
from advisor.build.work import calls_of
from advisor.build.writer import write
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.built import on_ranks, plan_of, proposed
from advisor.transform_registry import transforms
from costdb.expr import evaluate
from costdb.work import (
    ArrayCall,
    Branch,
    Collective,
    Leaf,
    Message,
    Parallel,
    ParLoop,
    Process,
    RemoteGroup,
    SeqLoop,
    Sequential,
    Statement,
    Work,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
N, STEPS = 12, 5


def done(process: Process, at: Mapping[str, Any]) -> Iterator[Work]:
    """Yield the work of a process as often as it is done; of ranks side by side, the first's."""
    match process:
        case Leaf(work):
            yield work
        case Sequential(parts):
            for part in parts:
                yield from done(part, at)
        case Parallel(parts):
            yield from done(parts[0], at)
        case SeqLoop(variable, low, high, body):
            for index in range(int(evaluate(low, at)), int(evaluate(high, at)) + 1):
                yield from done(body, {**at, variable: index})
        case ParLoop(variable, low, _, body):
            yield from done(body, {**at, variable: int(evaluate(low, at))})
        case Branch(condition, then, orelse):
            yield from done(then if evaluate(condition, at) else orelse, at)


def counted(kernel: Kernel, ranks: int, **sizes: int) -> Counter[str]:
    here = on_ranks(kernel, ranks)
    given = {"N": N, "P": ranks, **sizes}
    found = write(here, Module(given, set(), kernel.context.identifiers))
    names: Counter[str] = Counter()
    for work in done(found.work, given):
        names[work.kind.value if isinstance(work, Collective) else type(work).__name__] += 1
    return names


def calls(kernel: Kernel, ranks: int, operation: str) -> list[tuple[ArrayCall, dict[str, Any]]]:
    """Return the calls of a kind that one rank makes, each with the sizes where it makes it."""
    here = on_ranks(kernel, ranks)
    given: dict[str, Any] = {"N": N, "P": ranks}
    found = write(here, Module(given, set(), kernel.context.identifiers))
    return [
        (call, given)
        for work in done(found.work, given)
        if isinstance(work, Statement)
        for call in work.calls or ()
        if call.operation == operation
    ]


def example(name: str, rule: str = "", title: str = "") -> Kernel:
    path = EXAMPLES / f"{name}.py"
    kernel = read_kernels(str(path), path.read_text())[0]
    if not rule:
        return kernel
    plans = proposed(plan_of(kernel, None), None, transforms())
    return next(p.kernel for p in plans if p.steps[-1][0] == rule and title in p.steps[-1][1])


@pytest.mark.parametrize(("ranks", "sides"), [(1, 0), (2, 1), (3, 2), (4, 2)])
def test_rims_are_exchanged_once_a_sweep_with_each_neighbour(ranks: int, sides: int) -> None:
    assert counted(example("jacobi"), ranks, steps=STEPS)["Message"] == sides * STEPS


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_recurrence_is_handed_on_once_by_each_rank(ranks: int) -> None:
    assert counted(example("adi"), ranks)["Message"] == ranks - 1


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_transpositions_send_a_piece_to_each_other_rank(ranks: int) -> None:
    # there for both operands, and back for the result
    kernel = example("adi", "ADV202", "transpose")
    assert counted(kernel, ranks)["Message"] == 3 * (ranks - 1)
    assert counted(example("fft2d"), ranks)["Message"] == 2 * (ranks - 1)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("rule", ["", "ADV203"])
def test_transforms_are_of_whole_lines(ranks: int, rule: str) -> None:
    found = calls(example("fft2d", rule, "transpose"), ranks, "fft")
    assert len(found) == 2
    for call, at in found:
        assert call.length is not None and evaluate(call.length, at) == N
        assert evaluate(call.elements, at) == N * N / ranks
        counts = [evaluate(one, at) for one in call.operands[0].region.counts]
        assert call.axis_from_last is not None and counts[-1 - call.axis_from_last] == N


def test_only_what_is_fetched_lies_where_it_is_fetched_to() -> None:
    # the column comes from its owner; row and block are this rank's own
    binary = calls(example("gauss"), 2, "binary")
    outer, update = binary[:2]
    assert [one.array for one in outer[0].operands] == ["a_there", "a"]
    assert [one.array for one in update[0].operands] == ["a", ""]


def test_dealt_out_elements_are_fetched_in_every_iteration() -> None:
    kernel = example("adi", "ADV102", "cyclically")
    assert counted(kernel, 2)["Message"] == N - 1
    assert counted(kernel, 2)["Interpretation"] > N


@pytest.mark.parametrize("ranks", [2, 3])
def test_one_owners_elements_are_sent_to_all_at_once(ranks: int) -> None:
    found = counted(example("gauss"), ranks)
    assert found["broadcast"] == N - 1 and not found["Message"]


def test_places_go_to_their_owners_together_and_no_reference_is_single() -> None:
    found = counted(example("histogram"), 2, M=50)
    assert found["alltoallv"] == 2 and found["alltoall"] == 1
    assert RemoteGroup.__name__ not in found and Message.__name__ not in found


def test_counts_are_combined_once() -> None:
    assert counted(example("histogram", "ADV403"), 2, M=50)["allreduce"] == 1


def test_calls_of_definitions_are_counted_with_those_that_they_make() -> None:
    assert sum(calls_of("x = np.roll(y, 1)")) == 0
    assert sum(calls_of("here = columns.local(j)")) == 2
    one, two = (calls_of(f"x = fetch({', '.join(['a'] * n)})") for n in (3, 4))
    assert one == two and one[2] > one[0] > 0
    assert calls_of("x = fetch(a, A, lambda one: rows.own(0, 8, one))")[2] > one[2]
    assert sum(calls_of("if columns.holds(k):")) == 3
