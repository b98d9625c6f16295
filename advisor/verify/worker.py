"""The processes that run what is verified: ``advisor.verify.worker JOB``, alone or as ranks.

A job with a `kernel` imports the file that it names, makes arguments of the stated shapes, calls
the kernel, and answers with what it took; what came of it is in a file.

A job with `cases` runs built programs under MPI beside the kernels they come from, see below.

In any other job two ways to write a program of ranks take turns. A file that asks whether it is
``__main__`` is run as a script; of another one, its function ``main`` is called with all ranks.
What it prints, returns and leaves in its names is compared, except what the program as written
does not give twice alike: times, say. A rank's time goes from a barrier to its own end; the
slowest one counts.
"""

from __future__ import annotations

import importlib.util
import inspect
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor import made_up
from advisor.made_up import copied, is_array
from costdb.arrays.amounts import FRESH_BYTES
from costdb.calibration.section import keep_as_with
from costdb.launch.processes import begin, failed
from costdb.launch.space import give_way, ours

_SEED = 20_261_121
_PIECE_BYTES = 2**14
_TOLERANCE = 1e-6
Results = dict[str, Any]
Run = Callable[[], Results]


def main(arguments: list[str]) -> int:
    """Run the job in the file that the only argument names."""
    import numpy as np  # before a program's own files can stand for parts of it

    job, answer = begin(arguments)
    if "kernel" not in job:
        return _on_ranks(job, answer)
    give_way(job["folder"])
    function = getattr(_load(Path(job["file"])), job["kernel"])

    def keep(results: list[Any]) -> None:
        with ours():
            np.savez(job["results"], *results)

    answer(run(function, job, keep))
    return 0


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("verified", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["verified"] = module
    spec.loader.exec_module(module)
    return module


def run(
    function: Callable[..., Any],
    job: Mapping[str, Any],
    keep: Callable[[list[Any]], object],
) -> list[float]:
    """Return the seconds of each repetition.

    `keep` gets what a last one, which is not timed, returns and leaves.

    Seconds are those that the process ran, on one thread: what else a shared machine does in the
    meantime is not the kernel's.

    Every call gets the same arrays, as they were at first: what it changes is put back before
    the clock starts.
    """
    import numpy as np

    given = _arguments(function, job)
    fresh = {name: copied(value) for name, value in given.items()}
    changes = [name for name, value in given.items() if is_array(value)]
    samples: list[float] = []
    deadline = time.perf_counter() + float(job["seconds"])
    for number in range(int(job["repetitions"]) + 1):
        for name in changes:
            np.copyto(fresh[name], given[name])
        begin = time.process_time()
        returned = function(**fresh)
        spent = time.process_time() - begin
        if number == 0:
            # what the kernel only reads stays as near as it left it
            changes = [name for name in changes if not _same(given[name], fresh[name])]
        else:
            samples.append(spent)
        del returned
        if samples and time.perf_counter() > deadline:
            break
    for name in changes:
        np.copyto(fresh[name], given[name])
    returned = function(**fresh)
    returned = returned if isinstance(returned, tuple) else (returned,)
    # last, as writing takes memory, and what it frees and keeps lies in the kernel's own heap
    keep([value for value in (*returned, *fresh.values()) if is_array(value)])
    return samples


def _arguments(function: Callable[..., Any], job: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    random = np.random.default_rng(_SEED)
    arrays = {one["name"]: one for one in job["arrays"]}
    sizes = [prod(one["shape"]) * np.dtype(one["dtype"]).itemsize for one in job["arrays"]]
    for size in sorted(sizes):
        # arrays of such sizes have been freed at some time, as predictions take it
        np.empty(size, np.uint8)
    made: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in arrays:
            made[name] = made_up.array(random, arrays[name])
        elif name in job["sizes"]:
            made[name] = job["sizes"][name]
        elif parameter.default is inspect.Parameter.empty:
            made[name] = _number(name, parameter.annotation)
    return made


def _number(name: str, annotation: object) -> int | float:
    """Return some number for an argument that no size names."""
    kind = str(getattr(annotation, "__name__", annotation))
    if kind not in ("int", "float"):
        raise ValueError(f"the argument {name} has no value: pass -D {name}=...")
    return made_up.number(kind)


def _same(one: Any, other: Any) -> bool:
    """Compare bytes, piece by piece: the heap is to stay as the kernel left it."""
    import numpy as np

    pairs = (value.reshape(-1, order="A").view(np.uint8) for value in (one, other))
    left, right = pairs
    return all(
        np.array_equal(left[at : at + _PIECE_BYTES], right[at : at + _PIECE_BYTES])
        for at in range(0, left.size, _PIECE_BYTES)
    )


# Programs on ranks.


def _on_ranks(job: Mapping[str, Any], answer: Callable[[object], None]) -> int:
    """Answer once for each case of built programs, or for the files of one."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    give_way(job["folder"])
    for case in job.get("cases", (None,)):
        with _ending_all(comm):
            found = _in_turn(comm, job) if case is None else _case(case, job, comm)
        if comm.Get_rank() == 0:
            answer(found)
    return 0


@contextmanager
def _ending_all(comm: Any) -> Iterator[None]:
    """End all ranks where this one fails: the others may wait for it."""
    try:
        yield
    except BaseException as error:
        failed(error)
        comm.Abort(1)
        raise


def _in_turn(comm: Any, job: Mapping[str, Any]) -> dict[str, Any]:
    from mpi4py import MPI

    runs = [_run_of(Path(file), comm) for file in job["files"]]
    samples: list[list[float]] = [[], []]
    first = runs[0]()
    again = runs[0]()
    stable = [name for name in first if alike(first[name], again.get(name), exact=True)]
    then = runs[1]()
    exact = bool(job["exact"])
    # a name that a rewrite does away with is no result
    common = [name for name in stable if name in then]
    equal = all(alike(first[name], then[name], exact=exact) for name in common)
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


def alike(one: Any, other: Any, *, exact: bool) -> bool:
    """Return whether results are the same: to the bit, or but for rounding."""
    import numpy as np

    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            alike(one[key], other[key], exact=exact) for key in one
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            alike(a, b, exact=exact) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, str) and isinstance(other, str):
        return one == other or (not exact and _close_words(one, other))
    if not (_is_result(one) and _is_result(other)):
        return type(one) is type(other)
    left, right = np.asarray(one), np.asarray(other)
    if left.shape != right.shape:
        return False
    if exact and not left.dtype.hasobject:
        return left.dtype == right.dtype and left.tobytes() == right.tobytes()
    if left.dtype.kind not in "fc":
        return bool(np.array_equal(left, right))
    return bool(np.allclose(left, right, _TOLERANCE, _TOLERANCE, equal_nan=True))


def _close_words(one: str, other: str) -> bool:
    """Return whether two printed words are numbers that are nearly equal."""
    try:
        left, right = (float(word.strip("[](),")) for word in (one, other))
    except ValueError:
        return False
    return abs(left - right) <= _TOLERANCE * max(abs(left), abs(right), 1.0)


# Built programs under MPI beside the kernels they come from.
#
# Every rank has all arguments; the kernel as written runs on the first, each built program on all
# of them, on blocks that its own `scatter` makes and its own `gather` collects. Results must be
# equal: to the bit where they are whole numbers or truths, else within `TOLERANCE`, as sums over
# ranks add in another order. A program is called twice, and the second call counts, as predictions
# are of calls again and again: from a barrier to the end of the slowest rank.


TOLERANCE = 1e-9
"""How far numbers may differ, as a part of the greatest of an array."""


def _case(case: Mapping[str, Any], job: Mapping[str, Any], comm: Any) -> list[dict[str, Any]]:
    """Return of each built program whether its results are right, and what it took."""
    import numpy as np

    function = getattr(_loaded(case["source"], "as_written"), case["kernel"])
    given = _arguments(function, case)
    whole = {name: copied(value) for name, value in given.items()}
    returned = function(**whole) if comm.Get_rank() == 0 else None
    programs = [_loaded(text, f"built{number}") for number, text in enumerate(case["programs"])]
    equal = [_is_equal(one, case["kernel"], given, whole, returned) for one in programs]
    samples: list[list[float]] = [[] for _ in programs]
    # whether memory comes anew is decided by what was freed before: here, as of large arrays
    keep_as_with(FRESH_BYTES)
    deadline = time.perf_counter() + float(job["seconds"]) * len(programs)
    for turn in range(int(job["repetitions"])):
        order = range(len(programs)) if turn % 2 else reversed(range(len(programs)))
        for number in order:
            blocks = _blocks(programs[number], case["kernel"], given)
            samples[number].append(_again(getattr(programs[number], case["kernel"]), blocks, comm))
        if comm.bcast(time.perf_counter() > deadline):
            break
    for one in programs:
        _let_go(one)
    slowest = [np.max(comm.allgather(every), axis=0).tolist() for every in samples]
    return [{"differs": why, "samples_s": times} for why, times in zip(equal, slowest, strict=True)]


def _again(function: Callable[..., Any], blocks: Mapping[str, Any], comm: Any) -> float:
    """Return the seconds of a second call, on what the first one got, put back where it lies."""
    import numpy as np

    before = {name: copied(value) for name, value in blocks.items()}
    function(*blocks.values())
    for name, value in before.items():
        if is_array(value):
            np.copyto(blocks[name], value)
    comm.Barrier()
    start = time.perf_counter()
    function(*blocks.values())
    return time.perf_counter() - start


def _loaded(text: str, name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def _blocks(program: Any, kernel: str, given: Mapping[str, Any]) -> dict[str, Any]:
    owners = program.OWNERS[kernel]
    return {
        name: program.scatter(owners[name], value) if name in owners else value
        for name, value in given.items()
    }


def _is_equal(
    program: Any, kernel: str, given: Mapping[str, Any], whole: Mapping[str, Any], returned: Any
) -> str:
    """Return what of the results of a built program is not as the kernel has it; empty: all is."""
    blocks = _blocks(program, kernel, given)
    found = getattr(program, kernel)(*blocks.values())
    pairs = [
        (name, whole[name], program.gather(layout, blocks[name]))
        for name, layout in program.OWNERS[kernel].items()
    ]
    results = found if isinstance(found, tuple) else (found,)
    wanted: Sequence[Any] = returned if isinstance(returned, tuple) else (returned,) * len(results)
    for layout, one, own in zip(program.RESULTS[kernel], wanted, results, strict=False):
        pairs.append(
            ("what it returns", one, own if layout is None else program.gather(layout, own))
        )
    if program.rank:
        return ""
    return "; ".join(f"{name} {why}" for name, one, own in pairs if (why := _differs(one, own)))


def _differs(wanted: Any, found: Any) -> str:
    import numpy as np

    one, other = np.asarray(wanted), np.asarray(found)
    if one.shape != other.shape:
        return f"is of shape {other.shape} instead of {one.shape}"
    if one.dtype != other.dtype:
        return f"is of type {other.dtype} instead of {one.dtype}"
    if one.dtype.kind not in "fc":
        return "" if np.array_equal(one, other) else "differs"
    most = np.nanmax(np.abs(one[np.isfinite(one)]), initial=0.0)
    tolerance = max(TOLERANCE, 64 * np.finfo(one.dtype).eps) * most
    same = np.allclose(one, other, 0.0, tolerance, equal_nan=True)
    return "" if same else f"differs by {np.nanmax(np.abs(one - other)):.3g} of {most:.3g}"


def _let_go(program: ModuleType) -> None:
    """Free what a program has of MPI: there is not much to be had at once."""
    for value in vars(program).values():
        if type(value).__name__ == "Halo":
            for _, _, requests in value.made.values():
                for request in requests:
                    request.Free()
        if type(value).__name__ == "Mesh":
            for line in value._lines.values():
                line.Free()
            value.grid.Free()
