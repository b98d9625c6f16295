"""ADV201: what it finds and writes, what it leaves alone, and that results stay the same."""

from __future__ import annotations

import ast
import itertools

import numpy as np
import pytest

from advisor.frontend.kernels import read_kernels
from tests.transforms.case_files import CASES, Changed, changed, read
from tests.transforms.checks import (
    arguments_of,
    check_idempotent,
    check_square,
    check_text,
    differences,
    first_rewrite,
    only_kernel,
)
from tests.transforms.generated.many_windows import EXTENTS, SLACK, WIDTHS
from transforms.sweeps.shifts_to_scan import TRANSFORM

NEAR_MISSES = changed("ADV201", "near_misses.txt")
VARIANTS = changed("ADV201", "variants.txt")
# the others are declared in comments, or convert to types of their own
OF_ONE_TYPE = ("running", "indexed", "rolled", "out")


def title(case: Changed) -> str:
    return case.title


def check_everything(source: str) -> None:
    """Check text, square, idempotence and results of the rewrite of a program."""
    found = first_rewrite(source, TRANSFORM)
    assert found is not None
    check_text(found)
    check_square(found)
    check_idempotent(found, TRANSFORM)
    rng = np.random.default_rng(7)
    names = [name for name in ("b", "c") if name in found.kernel.sizes]
    cases = []
    for widths in itertools.product(WIDTHS, repeat=len(names)):
        extents = rng.choice(EXTENTS, 3)
        sizes = dict(zip("NMK", map(int, extents), strict=True)) | dict(
            zip(names, widths, strict=True)
        )
        cases.append(arguments_of(found.kernel, sizes, rng))
    assert list(differences(found, cases, SLACK)) == []


@pytest.mark.parametrize("case", NEAR_MISSES, ids=title)
def test_near_misses_are_left_alone(case: Changed) -> None:
    ast.parse(case.source)
    kernel = only_kernel(case.source)
    proposals = list(TRANSFORM.propose(kernel))
    assert case.may_be_shown or not proposals, proposals[0].title
    assert not any(proposal.edits() for proposal in proposals)


@pytest.mark.parametrize("case", VARIANTS, ids=title)
def test_unusual_ways_of_writing_are_understood(case: Changed) -> None:
    check_everything(case.source)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("name", OF_ONE_TYPE)
def test_only_whole_numbers_are_safe(name: str, dtype: str) -> None:
    source = read(CASES / "ADV201" / f"{name}.py").replace(
        "NDArray[np.int32]", f"NDArray[np.{dtype}]"
    )
    (kernel,) = read_kernels("kernel.py", source)
    (proposal,) = TRANSFORM.propose(kernel)
    safe = "int" in dtype and name != "out"
    assert str(proposal.legality.applicability) == ("safe" if safe else "unsafe")
    check_everything(source)


def test_what_is_said_of_floating_point_windows_holds() -> None:
    source = """\
# advise: kernel N=9 b=3
# advise: image: f8[N, N]
def box_sum(image, b):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[:, 1:] = moved[:, :-1]
        moved[:, 0] = 0
        total += moved
    return total
"""
    source = f"import numpy as np\n{source}"
    found = first_rewrite(source, TRANSFORM)
    assert found is not None
    assert "a NaN or an infinity reaches every window behind it" in found.proposal.legality.argument
    image = np.ones((9, 9))
    image[:, 2] = np.nan
    spoilt = []
    for text in (source, found.rewritten):
        names: dict[str, object] = {}
        exec(compile(text, "sum.py", "exec"), names)
        function = names["box_sum"]
        assert callable(function)
        spoilt.append(np.isnan(function(image, 3))[0].nonzero()[0].tolist())
    assert spoilt == [[2, 3, 4], [2, 3, 4, 5, 6, 7, 8]]
