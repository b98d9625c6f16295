"""Loops of array statements become statements over all iterations, and results stay the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel, Proposal
from advisor.numpy_table import ELEMENTWISE, REDUCTIONS, ROWS
from advisor.source import apply_edits
from tests.transforms.case_files import bodies as cases_of
from tests.transforms.checks import without_places
from transforms.loops.array_statements import IF_NOT_EMPTY
from transforms.loops.raised import TRANSFORM
from transforms.loops.vectorise import TRANSFORM as ELEMENTS

HEAD = """\
import warnings
from typing import Any

import numpy as np

# advise: kernel
# advise: a: {t}[M, N]
# advise: b: {t}[M, N]
# advise: c: {t}[M, M]
# advise: s: {t}[M]
# advise: w: {t}[N]
# advise: alpha: float
def f(a, b, c, s, w, alpha):
{body}
"""
RAISED, LEFT = (cases_of("loops/raised.txt", verdict) for verdict in ("raised", "left"))


def kernel_of(body: str, dtype: str = "f8") -> Kernel:
    text = HEAD.format(t=dtype, body="\n".join(f"    {line}" for line in body.splitlines()))
    (kernel,) = read_kernels("f.py", text)
    return kernel


def proposals(body: str, dtype: str = "f8") -> list[Proposal]:
    return list(TRANSFORM.propose(kernel_of(body, dtype)))


def rewritten(proposal: Proposal) -> str:
    return apply_edits(proposal.variant.context.source, proposal.edits())


@pytest.mark.parametrize("title", RAISED)
def test_loops_are_raised_as_a_person_would(title: str) -> None:
    body, lines = RAISED[title]
    first, *_ = proposals(body)
    found = [line.strip() for line in rewritten(first).splitlines()]
    assert {*lines.splitlines()} <= {*found}
    assert first.legality.applicability is Applicability.UNSAFE


@pytest.mark.parametrize("title", LEFT)
def test_what_waits_or_counts_is_left_alone(title: str) -> None:
    assert proposals(LEFT[title][0]) == []


def test_what_is_proposed_is_what_is_read_again() -> None:
    for body, _ in RAISED.values():
        for proposal in proposals(body):
            (again,) = read_kernels("f.py", rewritten(proposal))
            assert without_places(again.body) == without_places(proposal.variant.body)


def test_distances_of_pairs_are_offered_by_a_product_too() -> None:
    body = "for i in range(a.shape[0]):\n    s[i] = ((b - a[i]) ** 2).sum(axis=1).min()\n"
    plain, other = proposals(body)
    assert "(b - a[:, None, :]) ** 2" in rewritten(plain)
    assert "2 * (a @ b.T)" in rewritten(other)
    assert "squares are subtracted" in other.legality.argument
    drawn, made = np.random.default_rng(5), []
    given = [drawn.normal(size=(7, 3)) for _ in range(2)]
    for source in (rewritten(plain), rewritten(other), plain.variant.context.source):
        space: dict[str, Any] = {}
        exec(source, space)
        s = np.zeros(7)
        space["f"](*given, np.zeros((7, 7)), s, np.zeros(3), 1.0)
        made.append(s)
    for one in made[:2]:
        np.testing.assert_allclose(one, made[2], rtol=1e-12, atol=1e-12)
    assert not [one for one in proposals(body.replace("b - a", "a - a")) if "2 *" in rewritten(one)]


# --- executions


def run(source: str, arrays: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]] | None:
    space: dict[str, object] = {}
    exec(source, space)
    given = {name: array.copy() for name, array in arrays.items()}
    try:
        space["f"](**given, alpha=3)  # type: ignore[operator]
    except (AttributeError, IndexError, TypeError, ValueError):
        # no program, such as a product of numbers by `@`, or the sum of one
        return None
    return given


VECTORS = ["w", "a[{}, :]", "b[{}, :]", "a[:, {}]", "s", "c[{}, :]", "c[:, {}]"]
INDICES = ["k", "k + 1", "i", "0", "k - 1"]
NUMBERS = ["alpha", "s[{}]", "w[{}]", "a[i, {}]", "c[{}, i]", "2", "c[k, k]", "(k + 1)"]
CONDITIONS = ["i != k", "k < i", "s[{}] > 0", "w[{}] > alpha", "a[i, {}] > c[i, 0]", "c[k, k] != 1"]


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Draw a nest of one or two loops around one or two array statements."""

    def one(texts: list[str]) -> str:
        return draw(st.sampled_from(texts)).format(draw(st.sampled_from(INDICES)))

    def value() -> str:
        parts = [one(VECTORS + NUMBERS) for _ in range(draw(st.integers(1, 3)))]
        made = parts[0]
        for part in parts[1:]:
            made = f"{made} {draw(st.sampled_from(['+', '*', '*', '-', '@']))} {part}"
        return draw(st.sampled_from([made, f"({made})", f"np.abs({made})", f"({made}).sum()"]))

    lines = [
        f"{one(VECTORS + ['s[{}]', 'w[{}]', 'c', 'a'])}"
        f" {draw(st.sampled_from(['=', '+=', '+=', '-=', '*=']))} {value()}"
        for _ in range(draw(st.integers(1, 2)))
    ]
    if draw(st.booleans()):
        lines = [f"if {one(CONDITIONS)}:", *(f"    {line}" for line in lines)]
        if draw(st.booleans()):
            lines += [
                "else:",
                f"    {one(['s[{}]', 'w[{}]'])} {draw(st.sampled_from(['+=', '-=']))} 2",
            ]
    lines = [line.replace("w =", "w[:] =").replace("s =", "s[:] =") for line in lines]
    lines = [line.replace("c =", "c[:] =").replace("a =", "a[:] =") for line in lines]
    low = draw(st.sampled_from(["0", "1", "i"]))
    bound = draw(st.sampled_from(["a.shape[0]", "a.shape[1]", "c.shape[0] - 1", "s.shape[0] - 2"]))
    inner = [f"for k in range({low}, {bound}):", *(f"    {line}" for line in lines)]
    return "\n".join(["for i in range(a.shape[0]):", *(f"    {line}" for line in inner)])


@given(bodies(), st.sampled_from([(4, 4), (3, 5), (5, 3), (1, 1), (0, 3), (2, 0), (1, 6)]))
def test_results_stay_the_same(body: str, shape: tuple[int, int]) -> None:
    """Whole numbers, whose sums are the same in any order, and shapes that nobody declared."""
    made = proposals(body, "i8") + list(ELEMENTS.propose(kernel_of(body, "i8")))
    event("raised" if any(one.edits() for one in made) else "left alone")
    if not made:
        return
    (m, n), random = shape, np.random.default_rng(len(body))
    shapes = {"a": (m, n), "b": (m, n), "c": (m, m), "s": (m,), "w": (n,)}
    arrays = {name: random.integers(-4, 5, one) for name, one in shapes.items()}
    source = made[0].variant.context.source
    expected = run(source, arrays)
    if expected is None:
        return
    for proposal in made:
        # loops of these bodies have iterations where arrays have three elements each way
        empty = IF_NOT_EMPTY in proposal.legality.argument and min(shape) < 3
        if empty or not proposal.edits():
            continue
        found = run(rewritten(proposal), arrays)
        assert found is not None, rewritten(proposal)
        for name in arrays:
            np.testing.assert_array_equal(found[name], expected[name], rewritten(proposal))


ARRAYS_OF = {"f8": np.float64, "f4": np.float32, "i4": np.int32, "u1": np.uint8, "c8": np.complex64}
REDUCED = [
    *(f"np.{name}(a[i, :])" for name in REDUCTIONS),
    *(f"a[i, :].{name}()" for name in ("sum", "mean", "max", "min", "std", "var", "any")),
    *(f"a[i, :].{name}(keepdims=True)[0]" for name in ("sum", "mean")),
    *("np.var(a[i, :], ddof=1)", "a[i, :].std(ddof=1)", "np.sum(a[i, :], dtype=np.float32)"),
    *("np.mean(a[i, :], dtype=np.float64)", "np.max(a[i, :], initial=3)", "a[i, :] @ w"),
    *("np.vdot(a[i, :], w)", "np.dot(a[i, :], b[i, :])", "np.linalg.norm(a[i, :], 2)"),
    *("np.sum(a[i, :], where=w > 3)", "np.average(a[i, :], weights=w)", "np.inner(a[i, :], w)"),
]
BY_ELEMENT = [
    f"np.{name}({', '.join(['a[i, :]', 'b[i, :]', 'w'][: ROWS[known].operands])})"
    for name, known in ELEMENTWISE.items()
] + ["a[i, :].clip(2, 5)", "np.round(a[i, :], 1)", "a[i, :].astype(np.int16)", "a[i, :] ** 2"]


LINES = [
    *(f"s[i] {sign} {call}" for call in REDUCED for sign in ("=", "-=")),
    *(f"a[i, :] {sign} {call}" for call in REDUCED for sign in ("=", "-=")),
    *(f"b[i, :] {sign} {call}" for call in BY_ELEMENT for sign in ("=", "+=")),
]


def left_by(source: str, dtype: str) -> list[NDArray[Any]] | None:
    """Return what is in the arrays of a function after it ran; None: NumPy refuses it."""
    draw, names = np.random.default_rng(3), dict[str, Any]()
    given = [
        (9 * draw.random(shape)).astype(ARRAYS_OF[dtype])
        for shape in ((4, 3), (4, 3), (4, 4), (4,), (3,))
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(source, names)
        try:
            names["f"](*given, 0.5)
        except (AttributeError, TypeError, ValueError):
            return None
    return given


@pytest.mark.parametrize("dtype", ARRAYS_OF)
def test_every_function_of_numpy_comes_to_the_same(dtype: str) -> None:
    """All for double precision, and a sixth of them for each of the other types."""
    raised, turn = 0, [*ARRAYS_OF].index(dtype)
    for line in LINES if dtype == "f8" else LINES[turn - 1 :: 6]:
        for proposal in proposals(f"for i in range(a.shape[0]):\n    {line}", dtype):
            before = left_by(proposal.variant.context.source, dtype)
            if before is not None and proposal.edits():
                raised += 1
                after = left_by(rewritten(proposal), dtype)
                assert after is not None, line
                for one, other in zip(after, before, strict=True):
                    np.testing.assert_allclose(one, other, rtol=2e-5, err_msg=line)
    assert raised > (60 if dtype == "f8" else 10)


def test_elements_of_what_is_unpacked_go_by_their_names() -> None:
    body = (
        "for i in range(a.shape[0]):\n    p, q = w / w[0]\n    for k in range(a.shape[1]):\n"
        "        a[i, k] = p * b[i, k] + q\n    w += a[i, 0]"
    )
    texts = [rewritten(one) for one in ELEMENTS.propose(kernel_of(body)) if one.edits()]
    assert any("    a[i, :] = p * b[i, :] + q\n" in text for text in texts)
    assert not any("<" in text for text in texts)
