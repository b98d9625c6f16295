"""The MPI programs of the examples give what their kernels give, on several ranks."""

from __future__ import annotations

import pytest

from tests.ranks import ROOT, needs_mpi, on_ranks

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [1, 3])
def test_programs_give_what_their_kernels_give(ranks: int) -> None:
    assert f"the same on {ranks}" in on_ranks(ranks, "tests/mpi_twins.py")


EACH = """\
import runpy, sys
from mpi4py import MPI
for path in sys.argv[1:]:
    MPI.COMM_WORLD.Barrier()
    runpy.run_path(path, run_name="__main__")
    sys.stdout.flush()
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.Get_rank() == 0:
        print("ended", path, flush=True)
"""


def test_programs_run_as_their_texts_say() -> None:
    """In one launch for all of them."""
    paths = sorted(f"examples/mpi/{p.name}" for p in (ROOT / "examples" / "mpi").glob("*.py"))
    for path in paths:
        assert f"mpiexec -n 2 python {path}" in (ROOT / path).read_text()
    said, after = on_ranks(2, "-c", EACH, *paths), 0
    for path in paths:
        end = said.index(f"ended {path}\n", after)
        assert said[after:end].strip(), path
        after = end + len(f"ended {path}\n")
