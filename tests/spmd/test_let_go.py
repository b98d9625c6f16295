"""What a reading made goes when it is done, without the collector of cycles."""

from __future__ import annotations

import gc
from collections.abc import Callable
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


COMPILED = (
    "import numba\nimport numpy as np\n\n@numba.njit\ndef f(a):\n"
    "    for i in range(9):\n        a[i] = i\n\nf(np.zeros(9))\n"
)


@pytest.mark.parametrize(
    ("name", "read"),
    [("program.py", read_program), ("beside.py", read_program), ("compiled.py", called)],
)
def test_reading_leaves_nothing_to_the_collector(
    name: str, read: Callable[[str, str], object], tmp_path: Path
) -> None:
    texts = {"program.py": PROGRAM, "beside.py": BESIDE, "compiled.py": COMPILED}
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    assert read(str(tmp_path / name), texts[name])
    # what other tests left is not looked through again
    gc.freeze()
    gc.disable()
    try:
        for _ in range(3):
            read(str(tmp_path / name), texts[name])
        assert gc.collect() == 0
    finally:
        gc.enable()
