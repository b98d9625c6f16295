"""What a reading made goes when it is done, without the collector of cycles."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from reading import HEAD

from advisor.frontend.spmd.called import called
from advisor.frontend.spmd.reader import read_program

PROGRAM = (
    HEAD
    + """\
from beside import swap

class Halo:
    def __init__(self, parts):
        self.parts = parts

    def exchange(self, to):
        for part in self.parts:
            comm.Send(part, dest=to)
            swap(comm, part)

def main(n=100):
    a = np.zeros(n)
    both = {"a": a, "b": [np.zeros(n // size) for _ in range(2)]}
    Halo([both["a"], a[1:]]).exchange((rank + 1) % size)
    comm.Allreduce(MPI.IN_PLACE, a)

if __name__ == "__main__":
    main()
"""
)
BESIDE = "def swap(comm, part):\n    comm.send(part, dest=0)\n    return part\n"


def garbage(path: Path) -> int:
    """Return how many objects a reading of a file leaves to the collector."""
    text = path.read_text()
    assert read_program(str(path), text) is not None
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            read_program(str(path), text)
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["program.py", "beside.py"])
def test_reading_leaves_nothing_to_the_collector(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text(BESIDE)
    assert garbage(tmp_path / name) == 0


def test_nor_does_the_search_for_calls_of_compiled_functions() -> None:
    text = (
        "import numba\nimport numpy as np\n\n@numba.njit\ndef f(a):\n"
        "    for i in range(9):\n        a[i] = i\n\nf(np.zeros(9))\n"
    )
    (seen,) = called("f.py", text)
    assert seen.function == "f"
    gc.collect()
    gc.disable()
    try:
        called("f.py", text)
        assert gc.collect() == 0
    finally:
        gc.enable()
