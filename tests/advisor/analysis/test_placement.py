"""Where arrays live that a kernel makes itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.analysis.owners import place
from advisor.analysis.placement import Facts, Placement, local_extents
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from costdb.expr import evaluate, num
from tests.advisor.ownership import local_indices, owner


def kernel_of(*body: str, declared: str = "over (block(x), none) on mesh(x=3)") -> Kernel:
    lines = ["import numpy as np", "# advise: kernel", f"# advise: u: f8[N, M] {declared}"]
    lines += ["def program(u, N: int, M: int, d: int):", *(f"    {line}" for line in body)]
    (kernel,) = read_kernels("program.py", "\n".join(lines) + "\n")
    return kernel


def placed(*body: str) -> dict[str, Placement]:
    return place(kernel_of(*body))


def origin(placement: Placement) -> tuple[object, ...]:
    return tuple(evaluate(at, {"d": 7, "N": 40, "M": 30}) for at in placement.origin)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("u[1:-1, 1:-1] + 1.0", (1, 1)),
        ("u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]", (1, 1)),
        ("u[2:, :] + u[:-2, :]", (1, 0)),
        ("u[2:, :] - 2.0 * u[1:-1, :] + u[:-2, :]", (1, 0)),
        ("u[4:, :] + u[3:-1, :] + u[:-4, :]", (3, 0)),
        ("u[1:, :] + u[:-1, :]", (0, 0)),
        ("u[d:, :] + u[d:, :] + u[:-d, :]", (7, 0)),
        ("np.roll(u, 3, axis=0)", (0, 0)),
        ("np.cumsum(u[2:, :], axis=0)", (2, 0)),
        ('np.pad(u, ((2, 1), (0, 0)), mode="wrap")', (-2, 0)),
        ("u.copy()", (0, 0)),
    ],
)
def test_arrays_lie_in_the_middle_of_what_they_are_made_of(
    expression: str, expected: tuple[int, ...]
) -> None:
    found = placed(f"w = {expression}")["w"]
    assert origin(found) == expected
    assert found.matches(placed("w = u.copy()")["u"])


def test_constants_live_like_their_equals_in_shape_or_like_what_is_stored_in_them() -> None:
    assert origin(placed("w = np.zeros((N, M))")["w"]) == (0, 0)
    inner = placed("w = np.zeros((N - 2, M))", "w[:, :] = u[2:, :] + u[:-2, :]")["w"]
    assert origin(inner) == (1, 0)
    part = placed("w = np.zeros((N - 2, M))", "w[1:, :] = u[3:, :]")["w"]
    assert origin(part) == (2, 0)


def test_what_nothing_says_is_refused_where_it_is_used() -> None:
    kernel = kernel_of("w = np.ones(d)", "w[:] = w + 1.0")
    assert "w" not in place(kernel)
    with pytest.raises(Unpriced, match="nothing says how `w` is distributed") as caught:
        lower(kernel)
    assert caught.value.span.start_line == 5


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 9),
    st.sampled_from(("block(x)", "cyclic(x)", "cyclic(x, 3)")),
)
def test_the_largest_part_is_that_of_the_first_rank(extent: int, ranks: int, dim: str) -> None:
    declared = f"over ({dim}, none) on mesh(x={ranks})"
    kernel = kernel_of("w = u.copy()", declared=declared)
    placement = place(kernel)["u"]
    if not placement.is_spread(0):
        assert ranks == 1
        return
    told = local_extents(placement, kernel.extents("u"), Facts())
    spec = kernel.arrays["u"].spec.dims[0]
    expected = len(local_indices(0, extent, ranks, spec))
    assert evaluate(told[0], {"N": extent, "M": 1}) == expected
    assert expected == max(
        sum(owner(i, extent, ranks, spec) == rank for i in range(extent)) for rank in range(ranks)
    )


@pytest.mark.parametrize(
    "made",
    [
        ("w = np.zeros((M, M))", "w[:, 0] = 2.0"),
        ("w = np.ones(d)", "w[1:] = w[:-1]"),
        ("v = np.zeros((M, M))", "w = v + 1.0"),
        ("w = np.empty((d, 3))", "w[:, 0] = 1.0"),
    ],
)
def test_where_nothing_is_distributed_neither_is_what_the_kernel_makes(
    made: tuple[str, ...],
) -> None:
    """Every rank has all of it, whatever its shape; where something is, nothing says so."""
    alone = kernel_of(*made, declared="")
    placement = place(alone)["w"]
    assert placement.template == alone.extents("w")
    assert all(placement.ranks(dimension) == num(1) for dimension in range(len(placement.dims)))
    lower(alone)
    assert "w" not in place(kernel_of(*made))
