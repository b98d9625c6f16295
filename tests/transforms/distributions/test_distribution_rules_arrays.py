"""ADV104 and ADV203: what is proposed for whole arrays, and what it sends."""

from __future__ import annotations

import math

import pytest

from advisor.analysis.lower import lower
from advisor.ir.kernel import Kernel, Proposal
from costdb.expr import evaluate
from costdb.work import Collective, Leaf, Message, Process, SeqLoop, Sequential
from tests.transforms.checks import only_kernel
from transforms.distributions.replicated import TRANSFORM as REPLICATED
from transforms.sweeps.fourier import TRANSFORM as TRANSFORM_ACROSS


def annotated(entries: str, mesh: str = "r=4") -> str:
    return f"""\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

mesh = Mesh({mesh})


@kernel(N=4096, M=64)
def place(
    keys: Annotated[NDArray[np.int64], Dist("N", "M", Block("r"), None, on=mesh)],
    out: Annotated[NDArray[np.int64], Dist("N", "M", {entries}, on=mesh)],  # everywhere
):
    out[...] = keys // 7
"""


def proposals(source: str) -> list[Proposal]:
    return list(REPLICATED.propose(only_kernel(source)))


@pytest.mark.parametrize("entries", ['Block("r"), None', 'None, Block("r")'])
def test_partitioned_arrays_are_left_alone(entries: str) -> None:
    assert not proposals(annotated(entries))


def test_axes_that_are_left_can_be_used() -> None:
    found = proposals(annotated('Block("r"), None', mesh="r=4, s=2"))
    assert {p.title.split(" in ")[1] for p in found} == {"blocks over `s`"}
    assert all(p.edits() for p in found)


# ADV203

TRANSFORMS = {
    "one": ["y[...] = np.fft.fft(x, axis=0)"],
    "there and back": ["w = np.fft.fft(x, axis=0)", "w *= x", "x[...] = np.fft.ifft(w, axis=0)"],
    "nested": ["x[...] = np.fft.ifft(np.fft.fft(x, axis=0) * y, axis=0)"],
    "returned": ["w = np.fft.fft(x, axis=1)", "return np.fft.fft(w, axis=0)"],
}


def transforming(body: list[str], entries: str = "block(r), none") -> Kernel:
    text = "\n".join(f"    {line}" for line in body)
    return only_kernel(f"""\
import numpy as np

# advise: kernel N=64 P=8
# advise: x: c16[N, N] over ({entries}) on mesh(r=P)
# advise: y: c16[N, N] over ({entries}) on mesh(r=P)
def transform(x, y):
{text}
""")


def sent(process: Process, sizes: dict[str, int]) -> tuple[int, int]:
    """Return messages and elements that a rank receives."""
    match process:
        case Sequential(parts):
            each = [sent(part, sizes) for part in parts]
            return sum(m for m, _ in each), sum(e for _, e in each)
        case SeqLoop(_, low, high, body):
            trips = int(evaluate(high, sizes)) - int(evaluate(low, sizes)) + 1
            messages, elements = sent(body, sizes)
            return trips * messages, trips * elements
        case Leaf(Message(region)):
            return 1, math.prod(int(evaluate(c, sizes)) for c in region.counts)
        case Leaf(Collective(_, ranks, region)):
            others = int(evaluate(ranks, sizes)) - 1
            return others, others * math.prod(int(evaluate(c, sizes)) for c in region.counts)
    return 0, 0


@pytest.mark.parametrize(
    ("name", "across", "turned"), [("one", 1, 1), ("there and back", 2, 1), ("nested", 2, 2)]
)
@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_what_each_way_sends(name: str, across: int, turned: int, ranks: int) -> None:
    """Each transposition sends a part once to all, each butterfly step a part to one."""
    kernel = transforming(TRANSFORMS[name])
    sizes = {"N": 64, "P": ranks}
    part = 64 * 64 // ranks
    foreign = part - part // ranks
    assert sent(lower(kernel), sizes) == (2 * across * (ranks - 1), 2 * across * foreign)
    butterflies, once = TRANSFORM_ACROSS.propose(kernel)
    steps = ranks.bit_length() - 1
    assert sent(lower(butterflies.variant), sizes) == (across * steps, across * steps * part)
    assert sent(lower(once.variant), sizes) == (turned * (ranks - 1), turned * foreign)


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        (TRANSFORMS["one"], "none, block(r)"),
        (TRANSFORMS["one"], "none, none"),
        (["y[...] = np.fft.fft(x, axis=1)"], "block(r), none"),
        (["y[...] = 2.0 * x"], "block(r), none"),
    ],
)
def test_local_transforms_are_left_alone(body: list[str], entries: str) -> None:
    assert not list(TRANSFORM_ACROSS.propose(transforming(body, entries)))
