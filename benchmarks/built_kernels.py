"""Draws kernels, builds them, and holds what they compute on ranks against the plain kernels.

``python -m benchmarks.built_kernels [--count 1000] [--ranks 2 3] [--seed 1]``
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from advisor.build.program import NotBuiltError, build
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.verify.cases import inputs_of
from advisor.verify.running import BuiltCase, Ran, run_built
from benchmarks.drawn_distributed import Drawn, drawn
from costdb.launch.processes import JobFailedError

_AT_ONCE = 100


def built_case(
    path: str, kernel: Kernel, sizes: Mapping[str, int | float], variants: Iterable[Kernel] = ()
) -> BuiltCase:
    """Return a kernel with programs of it and of variants, which may be distributed otherwise.

    Raises
    ------
    NotBuiltError
        One of them has no form.
    """
    source = kernel.context.source
    programs = tuple(build(path, [one], sizes) for one in (kernel, *variants))
    name = kernel.name.rpartition(".")[2]
    return BuiltCase(source, name, programs, tuple(inputs_of(kernel, sizes)), sizes)


def cases(seed: int, count: int) -> Iterator[tuple[Drawn, BuiltCase | NotBuiltError]]:
    """Yield kernels with what is built of them, or why nothing is."""
    for number in range(count):
        one = drawn(seed, number)
        (kernel,) = read_kernels(f"{one.name}.py", one.source)
        try:
            yield one, built_case(f"{one.name}.py", kernel, one.sizes)
        except NotBuiltError as error:
            yield one, error


def outcomes(
    built: Sequence[tuple[Drawn, BuiltCase]], ranks: int
) -> Iterator[tuple[Drawn, BuiltCase, str]]:
    """Yield kernels with what is wrong with them on so many ranks, empty for nothing."""
    left = list(built)
    while left:
        some = left[:_AT_ONCE]
        found: list[tuple[Ran, ...]] = []
        failure = ""
        try:
            found.extend(run_built("drawn.py", [case for _, case in some], ranks))
        except JobFailedError as error:
            failure = str(error)
        for (kernel, case), (ran,) in zip(some, found, strict=False):
            yield kernel, case, ran.differs
        left = left[len(found) :]
        if failure and len(found) < len(some):
            kernel, case = some[len(found)]
            yield kernel, case, failure
            left = left[1:]


def main(arguments: Sequence[str]) -> int:
    """Print how many kernels were built and equal, and those that were not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3])
    given = parser.parse_args(arguments)
    every = list(cases(given.seed, given.count))
    built = [(one, case) for one, case in every if isinstance(case, BuiltCase)]
    refused = Counter(case.why for _, case in every if isinstance(case, NotBuiltError))
    print(f"{len(built)} of {len(every)} drawn kernels built")
    for why, count in refused.most_common():
        print(f"  refused {count}: {why}")
    wrong = 0
    for ranks in given.ranks:
        equal = 0
        for kernel, case, why in outcomes(built, ranks):
            equal += not why
            if why:
                wrong += 1
                print(f"--- on {ranks} ranks: {why}\n{kernel.source}{kernel.sizes}")
                print(case.programs[0].partition("# Sizes")[2])
        print(f"equal on {ranks} ranks: {equal} of {len(built)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
