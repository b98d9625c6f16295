"""Distributions of the examples as built programs: predicted and measured times in one table.

``python -m benchmarks.built_plans [--ranks 2] [--size 600] [--machine here]`` builds the kernels of
six examples as written and as the rules would have them (rows or columns, blocks or dealt out,
shifts or scans, a pipeline or other data), runs them on ranks, and holds predictions against them.
``--twins`` compares Jacobi and box sums with the programs of ``examples/mpi`` instead, alternating.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from advisor.build.program import NotBuiltError, build
from advisor.frontend.kernels import read_kernels
from advisor.report.style import Style
from advisor.transform_registry import transforms
from advisor.verify.running import Effort, distributed_case, measure
from advisor.verify.verdict import Verdict, as_table, in_words
from costdb.launch.processes import ONE_THREAD, answers
from costdb.machines import Machine, load_machine

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("box_sum", "adi", "gauss", "jacobi", "fft2d", "histogram")
_STEPS, _BOX = 20, 5


def groups(machine: Machine, ranks: int, size: int, effort: Effort) -> Iterator[list[Verdict]]:
    """Yield for each kernel what its programs were predicted to take, and took."""
    for name in NAMES:
        path = EXAMPLES / f"{name}.py"
        source = path.read_text()
        for kernel in read_kernels(str(path), source):
            sizes = {key: one.value for key, one in kernel.sizes.items()}
            sizes |= {"N": size, "steps": _STEPS} if "M" not in sizes else {}
            try:
                case = distributed_case(
                    path.name, source, kernel, sizes, machine, transforms(), ranks
                )
            except NotBuiltError as error:
                print(f"{path.name}: {kernel.name}: not built: {error.why}")
                continue
            measured = measure(case, effort)
            yield [Verdict(case, *pair) for pair in zip(case.variants, measured, strict=True)]


def twins(ranks: int, size: int) -> Iterator[tuple[str, float]]:
    """Yield a built program's time over that of its twin, the median of many turns of both."""
    rows = 'Block("row"), None, on=mesh'
    for name, numbers in (("jacobi", {"steps": _STEPS}), ("box_sum", {"b": _BOX})):
        path = EXAMPLES / f"{name}.py"
        source = path.read_text().replace('Block("row"), Block("col"), on=mesh', rows)
        source = source.replace("np.int32", "np.int64").replace("row=4, col=4", "row=4")
        (kernel,) = read_kernels(str(path), source)
        with TemporaryDirectory() as folder:
            built = Path(folder, f"{name}_mpi.py")
            built.write_text(build(str(path), [kernel], {"N": size, **numbers}))
            job = {
                "twin": str(EXAMPLES / "mpi" / f"{name}.py"),
                "built": str(built),
                "size": size,
                **numbers,
            }
            ((pairs),) = answers("benchmarks.built_twins", job, 120.0, ranks, ONE_THREAD)
        yield name, median(mine / other for mine, other in pairs)


def main(arguments: Sequence[str]) -> int:
    """Print the table, or how built programs compare with their twins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--size", type=int, default=600)
    parser.add_argument("--machine", default="here")
    parser.add_argument("--twins", action="store_true")
    given = parser.parse_args(arguments)
    if given.twins:
        for name, ratio in twins(given.ranks, given.size):
            print(f"{name}, N = {given.size}, {given.ranks} ranks: {ratio:.3f} times its twin")
        return 0
    machine = load_machine(given.machine)
    found = list(groups(machine, given.ranks, given.size, Effort(3, 9, 1.0)))
    print(as_table(found, Style()), *in_words(found), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
