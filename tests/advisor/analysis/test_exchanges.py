"""Collectives for reads across distributed dimensions, against element-by-element ownership."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import pytest

from advisor.analysis.lower import lower
from advisor.distribution import BlockDim
from advisor.frontend.kernels import read_kernels
from costdb.expr import evaluate
from costdb.work import (
    Branch,
    Collective,
    CollectiveKind,
    Leaf,
    Parallel,
    Process,
    SeqLoop,
    Sequential,
)
from tests.advisor.ownership import owner

HEAD = """\
import numpy as np

{declarations}
# advise: kernel N={n} M={m} K={k} P={p}
def f({names}):
    {statement}
"""

Element = tuple[int, ...]
Needs = Callable[[Element], list[tuple[str, Element]]]


def collectives(process: Process) -> Iterator[Collective]:
    match process:
        case Leaf(Collective() as work):
            yield work
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from collectives(part)
        case SeqLoop():
            yield from collectives(process.body)
        case Branch(_, then, orelse):
            yield from collectives(then)
            yield from collectives(orelse)
        case _:
            return


def kernel_of(statement: str, arrays: dict[str, str], **sizes: int) -> Process:
    text = "\n".join(f"# advise: {name}: {layout}" for name, layout in arrays.items())
    source = HEAD.format(declarations=text, names=", ".join(arrays), statement=statement, **sizes)
    (kernel,) = read_kernels("f.py", source)
    return lower(kernel)


def layout(shape: str, spread: int | None) -> str:
    if spread is None:
        return f"f8[{shape}]"
    entries = ", ".join("block(r)" if d == spread else "none" for d in range(2))
    return f"f8[{shape}] over ({entries}) on mesh(r=P)"


def rank_of(element: Element, shape: tuple[int, int], spread: int, ranks: int) -> int:
    return owner(element[spread], shape[spread], ranks, BlockDim(("r",)))


def foreign(
    target: tuple[tuple[int, int], int],
    sources: dict[str, tuple[tuple[int, int], int]],
    needs: Needs,
    ranks: int,
) -> int:
    """Most distinct elements that one rank needs and does not own."""
    wanted: dict[int, set[tuple[str, Element]]] = {rank: set() for rank in range(ranks)}
    shape, spread = target
    for element in product(*map(range, shape)):
        rank = rank_of(element, shape, spread, ranks)
        for name, other in needs(element):
            its_shape, its_spread = sources[name]
            if rank_of(other, its_shape, its_spread, ranks) != rank:
                wanted[rank].add((name, other))
    return max(map(len, wanted.values()))


def received(process: Process, sizes: dict[str, int]) -> int:
    """Elements that the collectives bring to one rank."""
    total = 0
    for work in collectives(process):
        piece = 1
        for count in work.region.counts:
            piece *= int(evaluate(count, sizes))
        ranks = int(evaluate(work.ranks, sizes))
        total += piece * (1 if work.kind is CollectiveKind.BROADCAST else ranks - 1)
    return total


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize(("n", "m", "k"), [(12, 12, 12), (24, 12, 36), (7, 5, 9), (3, 2, 2)])
def test_a_product_gathers_the_operand_that_lies_across(ranks: int, n: int, m: int, k: int) -> None:
    process = kernel_of(
        "c[...] = a @ b",
        {"a": layout("N, K", 0), "b": layout("K, M", 1), "c": layout("N, M", 0)},
        n=n,
        m=m,
        k=k,
        p=ranks,
    )
    (work,) = collectives(process)
    assert work.kind is CollectiveKind.ALLGATHER
    sizes = {"N": n, "M": m, "K": k, "P": ranks}

    def needs(at: Element) -> list[tuple[str, Element]]:
        i, j = at
        return [("a", (i, x)) for x in range(k)] + [("b", (x, j)) for x in range(k)]

    sources = {"a": ((n, k), 0), "b": ((k, m), 1)}
    least = foreign(((n, m), 0), sources, needs, ranks)
    if m % ranks == 0 and n >= ranks:
        assert received(process, sizes) == least
    else:
        # pieces of the largest size from every rank
        assert received(process, sizes) >= least


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize(("n", "m"), [(12, 12), (24, 36), (7, 5)])
def test_a_transposition_exchanges_a_share_of_every_piece(ranks: int, n: int, m: int) -> None:
    process = kernel_of(
        "y[...] = x.T",
        {"x": layout("N, M", 0), "y": layout("M, N", 0)},
        n=n,
        m=m,
        k=1,
        p=ranks,
    )
    (work,) = collectives(process)
    assert work.kind is CollectiveKind.ALLTOALL
    sizes = {"N": n, "M": m, "K": 1, "P": ranks}
    least = foreign(((m, n), 0), {"x": ((n, m), 0)}, lambda at: [("x", (at[1], at[0]))], ranks)
    if n % ranks == 0 and m % ranks == 0:
        assert received(process, sizes) == least
    else:
        assert received(process, sizes) >= least


def test_unlike_layouts_are_said_and_not_guessed() -> None:
    from advisor.analysis.lower import Unpriced

    with pytest.raises(Unpriced, match="other ranks"):
        kernel_of(
            "y[...] = x",
            {
                "x": "f8[N, M] over (block(r), none) on mesh(r=2, s=2)",
                "y": "f8[N, M] over (block(s), none) on mesh(r=2, s=2)",
            },
            n=8,
            m=8,
            k=1,
            p=2,
        )
