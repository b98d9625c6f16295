"""The process that runs a sampled program: ``advisor.measure.worker JOB``.

It runs only text that was written anew (:mod:`advisor.measure.language`), with the names that this
text may use, on arrays made here, within limits of memory and time. Of a program of ranks, each of
them is such a process.
"""

from __future__ import annotations

import importlib
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from advisor.made_up import array, copied, is_array, number
from advisor.measure.clock import Clock, NotSampledError, Times, Unfinished
from costdb.launch.processes import begin

_SEED = 20_261_123
_MOST_RUNS = 9


class OutOfTimeError(BaseException):
    """The budget is spent; no handler of the program catches it."""


def main(arguments: list[str]) -> int:
    """Run the job in the file that the only argument names."""
    job, answer = begin(arguments)
    if not job["ranks"]:
        answer([_limited(job)])
        return 0
    from mpi4py import MPI

    found = _limited(job)
    world = MPI.COMM_WORLD
    if "failure" in found or "unfinished" in found:
        answer([found])
        world.Abort(1)  # the other ranks may wait for this one
    every = world.gather(found)
    if every is not None:
        answer(every)
    return 0


def _limited(job: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    if job["memory_bytes"]:
        with suppress(OSError, ValueError):
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + int(job["memory_bytes"])
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, _ended)
    signal.setitimer(signal.ITIMER_REAL, job["budget_s"])
    # what else runs here holds up a thread, and is none of the program's; threads of numba, for
    # which this one waits, are, and so are other ranks
    waits = job["ranks"] or "numba" in job["modules"]
    timer = time.perf_counter if waits else time.thread_time
    clock = Clock(job["budget_s"] / 2, whole=job["whole"], timer=timer)
    runs: list[dict[str, Any]] = []
    place = None
    try:
        try:
            _run(job, clock, runs)
        except (ArithmeticError, LookupError, ValueError):
            if not clock.skipped or job["ranks"]:
                raise
            # iterations that were left out would have made data that what follows needs
            clock, runs = Clock(job["budget_s"] / 2, whole=True, timer=timer), []
            _run(job, clock, runs)
    except Unfinished as told:
        went_on = {"place": told.place, "trips": told.trips, "seconds": told.seconds}
        return {"runs": runs, "unfinished": went_on}
    except NotSampledError as told:
        place, failure = told.place, told.why
    except OutOfTimeError:
        failure = f"took more than {job['budget_s']:g} s"
    except MemoryError as error:
        failure = f"takes more memory than there is: {error}"
    except RecursionError:
        failure = "calls itself without end"
    except Exception as error:  # of the program: made-up arrays may not do
        failure = f"{type(error).__name__}: {error}"
    else:
        failure = ""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if not failure or (runs and not job["ranks"]):
        return {"runs": runs}
    if place is None:
        place = clock.marks[-1][0] if clock.marks else 0
    where = {"place": place, "why": failure, "skipped": bool(clock.skipped)}
    return {"runs": runs, "failure": where}


def _ended(*_: object) -> None:
    raise OutOfTimeError


def _run(job: Mapping[str, Any], clock: Clock, runs: list[dict[str, Any]]) -> None:
    names = names_of(job["modules"])
    clock.learn()
    code = compile(job["text"], "<sampled>", "exec")
    if job["entry"] is None:
        _kept(clock, runs, lambda: exec(code, {**names, "clock": clock}))
        return
    whole = {**names, "clock": clock}
    exec(code, whole)
    function = whole[job["entry"]]
    given = {name: _made(one) for name, one in job["arguments"].items()}
    fresh = {name: copied(value) for name, value in given.items()}
    began = time.perf_counter()
    while len(runs) < _MOST_RUNS:
        for name, value in fresh.items():
            if is_array(value):
                value[...] = given[name]
        _kept(clock, runs, lambda: function(**fresh))
        runs[-1]["warm"] = len(runs) > 1
        spent = time.perf_counter() - began
        if spent > job["seconds"] or (spent > job["seconds"] / 4 and len(runs) > 2):
            break


def _kept(clock: Clock, runs: list[dict[str, Any]], run: Any) -> None:
    clock.marks.clear()
    clock.skipped.clear()
    if "mpi4py" in sys.modules:
        sys.modules["mpi4py.MPI"].COMM_WORLD.Barrier()
    began, real = clock.now(), time.perf_counter()
    try:
        returned = run()
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"ends itself with {left.code}") from left
        returned = None
    ended = clock.now()
    del returned
    marks = [*clock.marks, (-1, ended)]
    parts: dict[int, list[float]] = {}
    for (place, at), (_, then) in pairwise(marks):
        spent = _since(at, then)
        known = parts.get(place, [0.0, 0.0, 0.0])
        parts[place] = [one + other for one, other in zip(known, spent, strict=True)]
    runs.append(
        {
            "times_s": _since(began, ended),
            "real_s": time.perf_counter() - real,
            "parts_s": parts,
            "skipped": clock.skipped.copy(),
        }
    )


def names_of(modules: Iterable[str]) -> dict[str, Any]:
    """Import modules; return what the names of a text stand for that uses them."""
    names: dict[str, Any] = {"type": type_of}
    for module in modules:
        importlib.import_module(module)
        root = module.partition(".")[0]
        names[root] = sys.modules[root]
    # what has any attribute that it is given would have NumPy read any memory
    pending: list[type] = [dict]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if "__getattr__" in vars(kind) and kind.__module__.startswith("scipy."):
            kind.__getattr__ = _named  # type: ignore[attr-defined]
    return names


def _named(of: dict[str, Any], name: str) -> Any:
    if name.startswith("__") or name not in of:
        raise AttributeError(name)
    return of[name]


def type_of(value: Any) -> type:
    """Return the type of a value that is no type itself."""
    if isinstance(value, type):
        raise TypeError("the type of a class is not sampled")
    return type(value)


def _since(began: Times, ended: Times) -> list[float]:
    return [now - then for then, now in zip(began, ended, strict=True)]


def _made(one: Mapping[str, Any]) -> Any:
    import numpy as np

    if "value" in one:
        return one["value"]
    if "kind" in one:
        return number(one["kind"])
    return array(np.random.default_rng(_SEED), one)
