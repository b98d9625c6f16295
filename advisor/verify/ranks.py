"""Built programs under MPI beside the kernels they come from: ``advisor.verify.ranks JOB``.

Every rank has all arguments; the kernel as written runs on the first, each built program on all of
them, on blocks that its own `scatter` makes and its own `gather` collects. Results must be equal:
to the bit where they are whole numbers or truths, else within `TOLERANCE`, as sums over ranks add
in another order. A rank's time goes from a barrier to its own end; the slowest one counts.
"""

from __future__ import annotations

import inspect
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from advisor import made_up
from costdb.arrays.amounts import FRESH_BYTES
from costdb.calibration.hardware import keep_as_with
from costdb.launch.processes import begin
from costdb.launch.space import give_way

TOLERANCE = 1e-9
"""How far numbers may differ, as a part of the greatest of an array."""
_SEED = 20_261_124


def main(arguments: list[str]) -> int:
    """Run the job in the file that the only argument names; answer once for each case."""
    from mpi4py import MPI

    job, answer = begin(arguments)
    comm = MPI.COMM_WORLD
    give_way(job["folder"])
    for case in job["cases"]:
        try:
            found = _case(case, job, comm)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            comm.Abort(1)  # the other ranks may wait for this one
            raise
        if comm.Get_rank() == 0:
            answer(found)
    return 0


def _case(case: Mapping[str, Any], job: Mapping[str, Any], comm: Any) -> list[dict[str, Any]]:
    """Return of each built program whether its results are right, and what it took."""
    import numpy as np

    function = getattr(_loaded(case["source"], "as_written"), case["kernel"])
    given = _arguments(function, case, np.random.default_rng(_SEED))
    whole = {name: _copied(value) for name, value in given.items()}
    returned = function(**whole) if comm.Get_rank() == 0 else None
    programs = [_loaded(text, f"built{number}") for number, text in enumerate(case["built"])]
    equal = [_is_equal(one, case["kernel"], given, whole, returned) for one in programs]
    samples: list[list[float]] = [[] for _ in programs]
    # whether memory comes anew is decided by what was freed before: here, as of large arrays
    keep_as_with(FRESH_BYTES)
    deadline = time.perf_counter() + float(job["seconds"]) * len(programs)
    for turn in range(int(job["repetitions"])):
        order = range(len(programs)) if turn % 2 else reversed(range(len(programs)))
        for number in order:
            blocks = _blocks(programs[number], case["kernel"], given)
            comm.Barrier()
            start = time.perf_counter()
            getattr(programs[number], case["kernel"])(*blocks.values())
            samples[number].append(time.perf_counter() - start)
        if comm.bcast(time.perf_counter() > deadline):
            break
    for one in programs:
        _let_go(one)
    slowest = [np.max(comm.allgather(every), axis=0).tolist() for every in samples]
    return [{"differs": why, "samples_s": times} for why, times in zip(equal, slowest, strict=True)]


def _loaded(text: str, name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def _arguments(function: Any, case: Mapping[str, Any], random: Any) -> dict[str, Any]:
    arrays = {one["name"]: one for one in case["arrays"]}
    made: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in arrays:
            made[name] = made_up.array(random, arrays[name])
        elif name in case["sizes"]:
            made[name] = case["sizes"][name]
        elif parameter.default is inspect.Parameter.empty:
            kind = str(getattr(parameter.annotation, "__name__", parameter.annotation))
            if kind not in ("int", "float"):
                raise ValueError(f"the argument {name} has no value: pass -D {name}=...")
            made[name] = made_up.number(kind)
    return made


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


def _copied(value: Any) -> Any:
    return value.copy("A") if hasattr(value, "dtype") else value


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
