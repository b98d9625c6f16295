"""The ranks that run a user's program: ``advisor.verify.rank_worker JOB``, P times.

Two ways to write it take turns. A file that asks whether it is ``__main__`` is run as a script;
of another one, its function ``main`` is called with all ranks. What it prints, returns and leaves
in its names is compared, except what the program as written does not give twice alike: times,
say. A rank's time goes from a barrier to its own end; the slowest one counts.
"""

from __future__ import annotations

import inspect
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from costdb.launch.processes import begin
from costdb.launch.space import give_way

_TOLERANCE = 1e-6
Results = dict[str, Any]
Run = Callable[[], Results]


def main(arguments: list[str]) -> int:
    """Run the job in the file that the only argument names."""
    import numpy  # noqa: F401  # before the program's own files can stand for parts of it
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    job, answer = begin(arguments)
    give_way(job["folder"])
    try:
        found = _in_turn(comm, [_run_of(Path(file), comm) for file in job["files"]], job)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        comm.Abort(1)  # the other ranks may wait for this one
        raise
    if comm.Get_rank() == 0:
        answer(found)
    return 0


def _in_turn(comm: Any, runs: list[Run], job: Mapping[str, Any]) -> dict[str, Any]:
    from mpi4py import MPI

    samples: list[list[float]] = [[], []]
    first = runs[0]()
    again = runs[0]()
    stable = [name for name in first if _same(first[name], again.get(name), exact=True)]
    then = runs[1]()
    exact = bool(job["exact"])
    # a name that a rewrite does away with is no result
    common = [name for name in stable if name in then]
    equal = all(_same(first[name], then[name], exact=exact) for name in common)
    told = sum(1 for name in common if not (name == "printed" and not first[name]))
    deadline = time.perf_counter() + float(job["seconds"]) * len(runs)
    for turn in range(int(job["repetitions"])):
        for side in (0, 1) if turn % 2 else (1, 0):
            comm.Barrier()
            begin = time.perf_counter()
            runs[side]()
            spent = time.perf_counter() - begin
            samples[side].append(comm.allreduce(spent, op=MPI.MAX))
        if turn and comm.bcast(time.perf_counter() > deadline):
            break
    return {
        "equal": bool(comm.allreduce(equal, op=MPI.LAND)),
        "compared": comm.allreduce(told) > 0,
        "samples_s": samples,
    }


def _run_of(file: Path, comm: Any) -> Run:
    """Return what runs a file once and gives its results."""
    if "__main__" in file.read_text("utf-8"):
        return lambda: _script(file)
    names = runpy.run_path(str(file))
    function = names.get("main")
    if not callable(function):
        return lambda: _script(file)
    required = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]
    given = [comm][: len(required)]
    if len(given) < len(required):
        raise ValueError("its function main wants more than a communicator")

    def called() -> Results:
        text = StringIO()
        with redirect_stdout(text):
            returned = function(*given)
        return {"printed": text.getvalue().split(), "returned": returned}

    return called


def _script(file: Path) -> Results:
    text = StringIO()
    with redirect_stdout(text):
        try:
            names = runpy.run_path(str(file), run_name="__main__")
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise
            names = {}
    kept = {name: value for name, value in names.items() if name[0] != "_" and _is_result(value)}
    return {"printed": text.getvalue().split(), **{f"name {k}": v for k, v in kept.items()}}


def _is_result(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray | np.generic | int | float | complex)


def _same(one: Any, other: Any, *, exact: bool) -> bool:
    import numpy as np

    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _same(one[key], other[key], exact=exact) for key in one
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            _same(a, b, exact=exact) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, str) and isinstance(other, str):
        return one == other or (not exact and _close_words(one, other))
    if not (_is_result(one) and _is_result(other)):
        return type(one) is type(other)
    left, right = np.asarray(one), np.asarray(other)
    if left.shape != right.shape:
        return False
    if exact or left.dtype.kind not in "fc":
        return bool(np.array_equal(left, right, equal_nan=left.dtype.kind in "fc"))
    return bool(np.allclose(left, right, _TOLERANCE, _TOLERANCE, equal_nan=True))


def _close_words(one: str, other: str) -> bool:
    """Return whether two printed words are numbers that are nearly equal."""
    try:
        left, right = (float(word.strip("[](),")) for word in (one, other))
    except ValueError:
        return False
    return abs(left - right) <= _TOLERANCE * max(abs(left), abs(right), 1.0)
