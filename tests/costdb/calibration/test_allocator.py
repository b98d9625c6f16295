"""What the C library keeps of freed memory, by the page faults of real processes."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

RUN = """
import resource, sys
import numpy as np
from costdb.calibration.section import keep_as_with

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

size, largest = map(int, sys.argv[1:])
keep_as_with(largest)
for number in range(6):
    if number == 3:
        before = faults()
    held = [np.ones(size // 8) for _ in range(4)]
    del held
print((faults() - before) / 3 / (size / resource.getpagesize()))
"""


def arrays_given_anew(size: int, largest: int) -> float:
    """Return how many of four arrays that are made and freed together come from the system."""
    run = [sys.executable, "-c", RUN, str(size), str(largest)]
    return float(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="rules of the GNU C library")
def test_memory_comes_anew_as_in_a_program_whose_largest_array_is_so_large() -> None:
    # four together are more than twice the largest, unless there is a larger one, or all are small
    assert arrays_given_anew(800_000, 800_000) > 3
    assert arrays_given_anew(800_000, 8_000_000) < 0.5
    assert arrays_given_anew(40_000, 40_000) < 0.5
