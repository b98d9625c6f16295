"""Original and rewritten SPMD programs side by side on real ranks.

    python benchmarks/bench_spmd.py [--ranks 2] [--rounds 7]

Every rule is applied to a program that has its idiom; both are run in one launch, taking turns,
and the median of each round's slowest rank is shown, with whether the rewritten one is faster, as
the rule says. Predicted times for a calibrated machine are told by ``advise`` itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import textwrap
from importlib import import_module
from pathlib import Path

from advisor.edits import apply_edits
from advisor.frontend.spmd.reader import read_program
from advisor.source import Edit

PROGRAMS = {
    "ADV601 allreduce": ("pickled_array", """
        x = np.arange(100000)
        for step in range(20):
            total = comm.allreduce(x, op=MPI.SUM)
        return total
        """),
    "ADV601 shift of a column": ("pickled_array", """
        rank, size = comm.Get_rank(), comm.Get_size()
        u = np.zeros((100000, 4))
        left, right = (rank - 1) % size, (rank + 1) % size
        for step in range(20):
            got = comm.sendrecv(u[:, 1], dest=left, source=right)
            u[:, -1] = got
        return u
        """),
    "ADV602 faces": ("halo_faces", """
        rank, size = comm.Get_rank(), comm.Get_size()
        left, right = (rank - 1) % size, (rank + 1) % size
        u = np.zeros((4, 400000)) + rank
        r = np.empty(400000)
        for step in range(20):
            comm.Sendrecv(u[1, :].copy(), dest=left, recvbuf=r, source=right)
            u[-1, :] = r
        return u
        """),
    "ADV603 rows": ("message_loops", """
        rank = comm.Get_rank()
        a = np.zeros((3000, 4))
        for step in range(20):
            if rank == 0:
                for i in range(3000):
                    comm.Send(a[i, :], dest=1)
            elif rank == 1:
                for i in range(3000):
                    comm.Recv(a[i, :], source=0)
        return a
        """),
    "ADV608 numbers": ("fused_reductions", """
        x = np.ones(100)
        for step in range(200):
            one = comm.allreduce(np.sum(x), op=MPI.SUM)
            two = comm.allreduce(np.max(x), op=MPI.SUM)
        return one, two
        """),
}  # fmt: skip

DRIVER = """\
import sys, time
from importlib import import_module
from statistics import median
from mpi4py import MPI

comm = MPI.COMM_WORLD
for number in range(int(sys.argv[1])):
    mains = [import_module(f"{side}_{number}").main for side in ("before", "after")]
    spent = [[], []]
    for turn in range(int(sys.argv[2]) + 1):
        for side in (0, 1) if turn % 2 else (1, 0):
            comm.Barrier()
            start = time.perf_counter()
            mains[side](comm)
            taken = comm.allreduce(time.perf_counter() - start, op=MPI.MAX)
            if turn:  # the first warms up
                spent[side].append(taken)
    if comm.Get_rank() == 0:
        print(number, *map(median, spent), flush=True)
"""


def both(rule: str, body: str) -> tuple[str, str]:
    """Return a program with an idiom, and what its rule makes of it."""
    lines = textwrap.indent(textwrap.dedent(body), "    ")
    source = (
        "import numpy as np\nfrom mpi4py import MPI\n\n\ndef main(comm):\n"
        f"    comm.Barrier()\n{lines}"
    )
    program = read_program("program.py", source)
    if program is None:
        raise SystemExit(f"{rule}: nothing in the program communicates")
    edits: dict[Edit, None] = {}
    for proposal in import_module(f"transforms.{rule}").TRANSFORM.propose_program(program):
        edits.update(dict.fromkeys(proposal.edits()))
    if not edits:
        raise SystemExit(f"{rule}: proposes nothing")
    return source, apply_edits(source, edits)


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (rule, body) in enumerate(PROGRAMS.values()):
            before, after = both(rule, body)
            (folder / f"before_{number}.py").write_text(before)
            (folder / f"after_{number}.py").write_text(after)
        (folder / "driver.py").write_text(DRIVER)
        mpiexec = Path(sys.executable).with_name("mpiexec")
        arguments = ["driver.py", str(len(PROGRAMS)), str(given.rounds)]
        ended = subprocess.run(
            [mpiexec, "-n", str(given.ranks), sys.executable, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    titles = list(PROGRAMS)
    print(f"{'':<26} {'original':>12} {'rewritten':>12}")
    for line in ended.stdout.splitlines():
        number, old, new = line.split()
        ratio = float(old) / float(new)
        print(
            f"{titles[int(number)]:<26} {1e3 * float(old):9.2f} ms {1e3 * float(new):9.2f} ms"
            f"   {ratio:6.2f}x {'faster' if ratio > 1 else 'SLOWER'}"
        )


if __name__ == "__main__":
    main()
