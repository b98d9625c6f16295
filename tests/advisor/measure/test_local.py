"""What one rank does, written as a function: its results are its part of the kernel's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.measure.local import ENTRY, LocalPart, NotLocalError, local_parts

STENCIL = """
    for t in range(1):
        b[1:-1, 1:-1] = a[:-2, 1:-1] + 2.0 * a[2:, 1:-1] - a[1:-1, :-2] * a[1:-1, 2:]
    return b
"""
BY_ELEMENT = """
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = a[i - 1, j] + 2.0 * a[i + 1, j] - a[i, j - 1]
    return b
"""
TEMPORARY = """
    c = a[1:, :] - a[:-1, :]
    b[1:-1, :] = np.abs(c[1:, :]) + np.sqrt(a[2:, :])
    return b
"""
BODIES = {"stencil": STENCIL, "elements": BY_ELEMENT, "temporary": TEMPORARY}
ROWS, COLUMNS, TILES, PIECES = (
    "(block(p), none) on mesh(p=P)",
    "(none, block(p)) on mesh(p=P)",
    "(block(p), block(q)) on mesh(p=P, q=P)",
    "(cyclic(p, 2), none) on mesh(p=P)",
)


def kernel_of(body: str, over: str, *, arrays: str = "ab") -> Kernel:
    declared = "".join(f"# advise: {name}: f8[N, N] over {over}\n" for name in arrays)
    text = f"import numpy as np\n# advise: kernel\n{declared}def f({', '.join(arrays)}):{body}"
    (kernel,) = read_kernels("f.py", text)
    return kernel


def called(part: LocalPart, **given: object) -> NDArray[np.float64]:
    space: dict[str, object] = {}
    exec(part.source, space)
    return np.asarray(space[ENTRY](**given))  # type: ignore[operator]


def cut(
    a: NDArray[np.float64],
    shape: tuple[int, ...],
    ranks: tuple[int, ...],
    at: int,
    before: tuple[int, ...] = (0, 0),
) -> object:
    """Return what a rank has of an array, with as many neighbours around as its shape has room."""
    own = [n // p for n, p in zip(a.shape, ranks, strict=True)]
    padded = np.pad(a, [(low, n) for low, n in zip(before, shape, strict=True)])
    starts = [at * mine if p > 1 else 0 for mine, p in zip(own, ranks, strict=True)]
    return padded[tuple(slice(s, s + n) for s, n in zip(starts, shape, strict=True))].copy()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("over", [ROWS, COLUMNS, TILES])
@pytest.mark.parametrize("body", BODIES)
def test_parts_of_ranks_make_the_whole(body: str, over: str, ranks: int) -> None:
    kernel, n = kernel_of(BODIES[body], over), 12
    sizes = {"N": n, "P": ranks}
    random = np.random.default_rng(ranks)
    a, b = random.random((n, n)), random.random((n, n))
    whole: dict[str, object] = {"np": np}
    exec(f"def f(a, b):{BODIES[body]}", whole)
    expected = whole["f"](a.copy(), b.copy())  # type: ignore[operator]
    grid = (ranks if "(block" in over else 1, ranks if "block(p))" in over or "q" in over else 1)
    for at in range(ranks):
        share = at / max(ranks - 1, 1)
        (part,) = local_parts(kernel, sizes, (share,))
        given = {
            name: cut(array, part.arrays[name]["shape"], grid, at, part.before[name])
            for name, array in (("a", a), ("b", b))
        }
        found = called(part, **given)
        np.testing.assert_array_equal(found, cut(expected, found.shape, grid, at))


@pytest.mark.parametrize("over", ["(block(p), none)", "(cyclic(p), none)"])
@pytest.mark.parametrize(("ranks", "n"), [(1, 9), (3, 9), (4, 9), (64, 1000), (7, 5)])
def test_ranks_share_out_iterations(over: str, ranks: int, n: int) -> None:
    body = "\n    for i in range(1, a.shape[0]):\n        a[i, :] = 2.0 * a[i, :]\n    return a\n"
    kernel = kernel_of(body, f"{over} on mesh(p=P)", arrays="a")
    for part in local_parts(kernel, {"N": n, "P": ranks}):
        found = called(part, a=np.ones(part.arrays["a"]["shape"]))
        own = part.arrays["a"]["shape"][0]
        assert own == min(-(-n // ranks), n)
        assert own - 1 <= np.count_nonzero(found[:, 0] == 2.0) <= own


@pytest.mark.parametrize(
    ("body", "over", "why"),
    [
        ("\n    a[::2, :] = 1.0\n    return a\n", ROWS, "step"),
        ("\n    for i in range(8):\n        a[i, :] += 1.0\n    return a\n", PIECES, "pieces"),
    ],
)
def test_what_has_no_such_form_is_refused(body: str, over: str, why: str) -> None:
    kernel = kernel_of(body, over, arrays="a")
    with pytest.raises(NotLocalError, match=why):
        local_parts(kernel, {"N": 16, "P": 4})


def test_ranks_in_a_pipeline_are_refused() -> None:
    body = """
    for j in range(a.shape[1]):
        for i in range(1, a.shape[0]):
            a[i, j] = a[i - 1, j] + 1.0
    return a
"""
    with pytest.raises(NotLocalError, match="pipeline"):
        local_parts(kernel_of(body, TILES, arrays="a"), {"N": 16, "P": 4})


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_others_have_is_an_argument(ranks: int) -> None:
    a = np.random.default_rng(ranks).random((8, 8))
    for at in range(ranks):
        share = at / max(ranks - 1, 1)
        kernel = kernel_of("\n    return a @ a\n", ROWS, arrays="a")
        (part,) = local_parts(kernel, {"N": 8, "P": ranks}, (share,))
        own = cut(a, (8 // ranks, 8), (ranks, 1), at)
        given = dict.fromkeys(part.whose, a) | {"a": own}
        np.testing.assert_allclose(called(part, **given), np.asarray(own) @ a)


@pytest.mark.parametrize(
    ("body", "over"), [("np.fft.fft(a, axis=0)", ROWS), ("np.sort(a, 1)", COLUMNS)]
)
def test_a_rank_does_its_share_of_what_ranks_do_together(body: str, over: str) -> None:
    (part,) = local_parts(
        kernel_of(f"\n    return {body}\n", over, arrays="a"), {"N": 8, "P": 4}, (0,)
    )
    given = {name: np.ones(one["shape"]) for name, one in part.arrays.items()}
    assert called(part, **given).size == 16
    assert ":2" in part.source  # columns of a block, or rows
