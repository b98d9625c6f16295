"""What measures array calls has one BLAS thread: nothing loads NumPy before that is said."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os, sys
import costdb.calibration.worker, advisor.verify.worker
assert "numpy" not in sys.modules, "loaded too early"
from costdb.calibration.section import find_section
find_section("arrays")
np = sys.modules["numpy"]
a = np.ones((600, 600))
a @ a
print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("/proc/self/task"))
      if os.path.isdir("/proc/self/task") else 1)
"""


def test_matrix_products_are_on_one_thread_wherever_something_is_timed() -> None:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["1", "1"]
