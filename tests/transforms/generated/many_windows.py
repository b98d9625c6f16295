"""What must hold of the rewrite of window sums."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np

from advisor.finding import Applicability
from tests.transforms.checks import (
    arguments_of,
    check_idempotent,
    check_square,
    check_text,
    differences,
    first_rewrite,
)
from tests.transforms.generated.window_programs import Program
from transforms.sweeps.shifts_to_scan import TRANSFORM
from transforms.sweeps.windows import windows

EXTENTS = (0, 1, 2, 3, 5, 8)
WIDTHS = (-2, 0, 1, 2, 3, 4, 6, 9, 13)
SLACK = 4.0


def check_program(program: Program, seed: int) -> Counter[str]:
    """Check everything that must hold of the rewrite of a program; return what it was."""
    found = first_rewrite(program.source, TRANSFORM)
    assert found is not None, program.source
    # where the shape of a sum is read, it counts as observed, and its window is left alone
    seen = len(windows(found.kernel))
    assert 0 < seen <= program.windows, program.source
    legality = found.proposal.legality.applicability
    safe = legality is Applicability.SAFE
    overlap = "overlap" in found.proposal.legality.argument
    assert safe == (program.exact and not overlap), found.proposal.legality
    check_text(found)
    check_square(found)
    check_idempotent(found, TRANSFORM)
    rng = np.random.default_rng(seed)
    dimensions = len(next(iter(found.kernel.arrays.values())).extents)
    cases = []
    for width in WIDTHS:
        shape = rng.choice(EXTENTS, dimensions)
        sizes = dict(zip("NMK", map(int, shape), strict=False))
        order = "F" if seed % 4 == 0 else "C"
        cases.append(arguments_of(found.kernel, {**sizes, "b": width}, rng, order))
    for difference in itertools.islice(differences(found, cases, SLACK), 1):
        raise AssertionError(f"{difference}\n{found.source}\n{found.rewritten}")
    left = {"windows left alone": program.windows - seen} if seen < program.windows else {}
    kind = {f"{legality}": 1, f"{dimensions}-d": 1, f"{program.windows} windows": 1}
    return Counter({**kind, **left})
