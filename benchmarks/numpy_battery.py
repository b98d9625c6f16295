"""Whether any call of NumPy is silent: neither priced nor named as not priced.

``python -m benchmarks.numpy_battery`` writes every public function of NumPy, `numpy.linalg` and
`numpy.fft`, every method of arrays and their usual keywords as a statement of an MPI program and of
a kernel, and prints how many forms are priced, named and silent. With ``--doors`` it compares what
becomes of them in a program and in a kernel. What NumPy itself shows to be free (views, scalars
that it looks up) needs no price.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from advisor.analysis.lower import Unpriced
from advisor.finding import MODULE
from advisor.frontend.kernels import read_kernels
from advisor.frontend.spmd.reader import read_program
from advisor.ranking.compare import cost
from advisor.ranking.programs import cost_steps
from advisor.source import SourceProblem
from costdb.evaluate import Missing, middle
from costdb.machines import Machine, load_machine

N = 64
EXTENT = 600
NO_PRICE = 1000
"""More parts without a price than a form has."""

FREE_S = 5e-6
"""A call of large arrays that takes no longer touches none of their elements."""

KEYWORDS = ("", "axis=0", "axis=1", "keepdims=True", "dtype=np.float32", "out=o", "where=m")
OPERANDS = (
    "a", "a, b", "v", "v, w", "a, v", "a, 1", "v, 1", "a, m", "i", "i, j", "m", "m, m", "v, i",
    "a, i, 0", "a, (1, 0)", "a, (N, N)", "a, 2", "v, 3", "1, 9, 50", "N", "N, N", "(N, N)",
    "N, 1.5",
    "m, a, b", "a, 0, 1", "(a, b)", "(v, w)", "[a, b]", "a, 1, v", "v, v, v", "a, a[0], 0",
    "v, [0.2, 0.8]", "'ij,jk', a, b", "'ij->i', a", "a, 0.5", "a, i[:, None], 1", "v, i, w", "z",
    "z, z", "a, b, out=o", "v, v[:5]", "v, 10", "i, v", "i, 70",
)  # fmt: skip
_SKIPPED_NAMES = """
show_config show_runtime test info save savez savez_compressed savetxt load loadtxt
genfromtxt fromfile fromregex memmap setbufsize getbufsize seterr geterr seterrcall
geterrcall errstate set_printoptions get_printoptions printoptions get_include tofile dump
dumps setflags lookfor source nditer ndenumerate ndindex nested_iters getfield setfield
to_device resize frombuffer from_dlpack partition
"""
SKIPPED = frozenset(_SKIPPED_NAMES.split())
"""What writes to files or screens, or needs more than arrays."""
SIZES = """
a, b, o = np.zeros((N, N)), np.ones((N, N)), np.zeros((N, N))
v, w = np.zeros(N), np.ones(N)
i, j = np.zeros(N, dtype=np.int64), np.ones(N, dtype=np.int64)
m, z = np.zeros((N, N), dtype=bool), np.zeros((N, N), dtype=np.complex128)
"""
PROGRAM = f"""\
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
N = {EXTENT}
{SIZES.strip()}
for step in range(3):
    comm.Bcast(v, root=0)
    pass
"""
KERNEL = """\
import numpy as np

# advise: kernel N=600
# advise: a: f8[N, N]
# advise: b: f8[N, N]
# advise: o: f8[N, N]
# advise: v: f8[N]
# advise: w: f8[N]
# advise: i: i8[N]
# advise: j: i8[N]
# advise: m: bool[N, N]
# advise: z: c16[N, N]
def f(a, b, o, v, w, i, j, m, z, N: int):
    o[0, 0] = a[0, 0]
    pass
"""


@dataclass(frozen=True)
class Judged:
    """One form and what became of it through one door: priced, named, free or silent."""

    form: str
    door: str
    verdict: str
    predicted_s: float


def values() -> dict[str, Any]:
    """Return small arrays by the names that forms call them."""
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in _made().items()}


@cache
def _made() -> dict[str, Any]:
    space: dict[str, Any] = {"np": np, "N": N}
    exec(SIZES, space)
    random = np.random.default_rng(0)
    space["a"][:] = random.random((N, N)) + N * np.eye(N)
    space["v"][:] = random.random(N)
    space["i"][:] = random.integers(0, N, N)
    space["m"][:] = random.random((N, N)) < 0.5
    return space


@cache
def runs(statement: str) -> bool:
    """Return whether NumPy carries a statement out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(statement, values())
        except Exception:
            return False
    return True


def functions() -> Iterator[str]:
    """Yield the public functions of NumPy's modules of arrays."""
    for module, prefix in ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft")):
        for name in sorted(module.__all__):
            found = getattr(module, name)
            if callable(found) and not isinstance(found, type) and name not in SKIPPED:
                yield f"{prefix}.{name}"


def forms(most: int = 2, keywords: tuple[str, ...] = KEYWORDS) -> Iterator[str]:
    """Yield statements that NumPy runs, at least one of each function and method where one does.

    Parameters
    ----------
    most : int
        How many sets of operands each function is given.
    keywords : tuple of str
        What is added to each of them, where that runs.
    """
    for call in functions():
        yield from _forms(lambda given, call=call: f"r = {call}({given})", OPERANDS, most, keywords)
    for name in sorted(one for one in dir(np.ndarray) if not one.startswith("_")):
        if name in SKIPPED or not callable(getattr(np.ndarray, name)):
            continue
        for owner in ("a", "v", "i"):
            operands = ("", *OPERANDS)
            write = lambda given, o=owner, n=name: f"r = {o}.{n}({given})"  # noqa: E731
            yield from _forms(write, operands, most, keywords)
    for sign in ("+", "-", "*", "/", "//", "%", "**", "@", "<", "==", "&", "|", "^", "<<"):
        for left, right in (("a", "b"), ("i", "j"), ("m", "m"), ("a", "2"), ("i", "2")):
            yield from filter(runs, (f"r = {left} {sign} {right}",))
            if sign not in ("<", "=="):
                yield from filter(runs, (f"{left} {sign}= {right}",))
    extra = (
        "r = a[m]", "r = a[i]", "r = a[i, j]", "a[m] = 0", "a[i] = 0", "r = -a", "r = ~m",
        "r = (a + b) @ b", "r = 2.5 * a @ v", "r = (a + a) @ v", "np.cumsum(a, axis=0, out=o)",
        "r = np.add(v, w, where=m)", "np.add.at(v, i, w)", "r = np.add.reduceat(v, i)",
        "r = np.add.accumulate(a)", "r = np.add.outer(v, w)", "r = np.add.reduce(a)",
        "r = np.tri(N)", "r = np.mgrid[0:N, 0:N]",
        "r = np.ogrid[0:N, 0:N]", "r = np.r_[v, w]", "r = np.c_[v, w]", "a.sort()", "a.fill(2)",
        "r = a.T.copy()", "r = sorted(v)", "r = sum(v)", "r = list(v)", "a[:] = np.exp(b)",
        "a[1:] = np.cumsum(b, axis=0)[1:]", "r = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)",
    )  # fmt: skip
    yield from filter(runs, extra)


def _forms(
    write: Any, operands: tuple[str, ...], most: int, keywords: tuple[str, ...]
) -> Iterator[str]:
    found = 0
    for given in operands:
        if found == most:
            return
        if not runs(write(given)):
            continue
        found += 1
        for keyword in keywords:
            with_keyword = write(", ".join(filter(None, (given, keyword))))
            if not keyword or runs(with_keyword):
                yield with_keyword


def taken_s(statement: str, extent: int) -> float:
    """Return the least time of a statement with arrays of an extent; infinite where it fails."""
    space = values()
    space["N"] = extent
    exec(SIZES, space)
    space["i"][:] = np.random.default_rng(0).integers(0, extent, extent)
    space["m"][:] = np.random.default_rng(0).random((extent, extent)) < 0.5
    code, best = compile(statement, "form", "exec"), float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(9):
            start = time.perf_counter()
            try:
                exec(code, space)
            except Exception:
                return float("inf")
            best = min(best, time.perf_counter() - start)
    return best


@cache
def is_free(statement: str) -> bool:
    """Return whether NumPy touches no element.

    It gives views, or takes about as long for 900 times the elements: to look a number up, or for
    memory that it leaves as it is.
    """
    space = values()
    given = [one for one in space.values() if isinstance(one, np.ndarray)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(statement, space)
    result = space.get("r")
    parts = result if isinstance(result, list | tuple) else [result]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if arrays and all(any(np.shares_memory(a, one) for one in given) for a in arrays):
        return True
    small, large = (taken_s(statement, extent) for extent in (50, 1500))
    return large < max(30 * small, FREE_S)


def in_program(statement: str, machine: Machine) -> tuple[str, float]:
    """Return what becomes of a statement in an MPI program: priced, named or silent."""
    found = [_of_program(PROGRAM.replace("pass", one), machine) for one in ("pass", statement)]
    return _verdict(*found)


def _verdict(before: tuple[float, int], after: tuple[float, int]) -> tuple[str, float]:
    """Return what became of a statement, and the seconds by which it makes a program longer.

    Each comes with how many parts of it have no price.
    """
    more = after[0] - before[0]
    if after[1] > before[1]:
        return "named", more
    return "priced" if more > 1e-9 * before[0] else "silent", more


@cache
def _of_program(source: str, machine: Machine) -> tuple[float, int]:
    program = read_program("p.py", source)
    assert program is not None
    (body,) = (f.body for f in program.functions if f.name == MODULE)
    found = cost_steps(body, machine)
    if isinstance(found, Missing):
        return 0.0, NO_PRICE
    sizes = {"P": 2} | {n: f.value for n, f in program.sizes.items() if f.value is not None}
    if not found.costed.sizes <= sizes.keys():
        # a prediction asks for the size that nothing binds
        return 0.0, NO_PRICE
    return middle(found.costed.priced, sizes), len(found.costed.priced.omitted)


def in_kernel(statement: str, machine: Machine) -> tuple[str, float]:
    """Return what becomes of a statement in a kernel."""
    found = [_of_kernel(KERNEL.replace("pass", one), machine) for one in ("pass", statement)]
    return _verdict(*found)


@cache
def _of_kernel(source: str, machine: Machine) -> tuple[float, int]:
    try:
        (kernel,) = read_kernels("k.py", source)
        found = cost(kernel, machine)
        if isinstance(found, Missing):
            return 0.0, NO_PRICE
        return middle(found.priced, {"N": EXTENT}), len(found.priced.omitted)
    except (Unpriced, SourceProblem):
        return 0.0, NO_PRICE


def judged(machine: Machine, limit: int | None = None) -> Iterator[Judged]:
    """Yield what becomes of every form through both doors."""
    every = tuple(dict.fromkeys(forms()))
    for form in every[:: max(1, len(every) // limit)] if limit else every:
        for door, look, repeated in (("program", in_program, 3), ("kernel", in_kernel, 1)):
            verdict, more_s = look(form, machine)
            if verdict == "silent" and is_free(form):
                verdict = "free"
            yield Judged(form, door, verdict, more_s / repeated)


def _beside_times(found: list[Judged]) -> None:
    """Print what is priced beside what it takes here, farthest off first."""
    rows = []
    for one in found:
        if one.verdict == "priced":
            taken = taken_s(one.form, EXTENT)
            rows.append((one.predicted_s / taken, one, taken))
    for ratio, one, taken in sorted(rows, key=lambda row: -abs(np.log(max(row[0], 1e-9)))):
        times = f"{one.predicted_s * 1e6:10.1f} {taken * 1e6:10.1f} us"
        print(f"{ratio:8.2f} {times}  {one.door:<8}{one.form}")


def _both_doors(found: list[Judged]) -> None:
    """Print how many forms are alike to both doors, and those that are priced apart."""
    verdicts = {(one.form, one.door): one for one in found}
    pairs = [(one, verdicts[one.form, "kernel"]) for one in found if one.door == "program"]
    known = [(p, k) for p, k in pairs if (p.verdict == "named") == (k.verdict == "named")]
    priced = [(p, k) for p, k in known if p.verdict == k.verdict == "priced"]
    apart = [(p.predicted_s / max(k.predicted_s, 1e-12), p.form) for p, k in priced]
    close = sum(0.98 < ratio < 1.02 for ratio, _ in apart)
    for ratio, form in sorted(apart):
        if not 0.8 < ratio < 1.25:
            print(f"{ratio:8.2f} of the price in a kernel: {form}")
    for p, k in pairs:
        if (p.verdict == "named") != (k.verdict == "named"):
            print(f"program {p.verdict}, kernel {k.verdict}: {p.form}")
    print(f"both doors: {len(pairs)} forms, {len(known)} known or unknown to both,", end=" ")
    print(f"{len(priced)} priced by both, {close} of them within 2 %")


def main(arguments: list[str]) -> int:
    """Print the counts, and each silent form."""
    machine = load_machine(arguments[0])
    found = list(judged(machine))
    for one in found:
        if one.verdict == "silent" or "--all" in arguments:
            print(f"{one.verdict:<7} {one.door:<8} {one.form}")
    if "--measure" in arguments:
        _beside_times(found)
    if "--doors" in arguments:
        _both_doors(found)
    silent = 0
    for door in ("program", "kernel"):
        counts = {
            verdict: sum((one.door, one.verdict) == (door, verdict) for one in found)
            for verdict in ("priced", "named", "free", "silent")
        }
        silent += counts["silent"]
        print(f"{door}: " + ", ".join(f"{verdict} {n}" for verdict, n in counts.items()))
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
