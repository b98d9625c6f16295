"""The process that runs a user's kernel: ``advisor.verify.worker JOB``.

It imports the file that the job names, makes arguments of the stated shapes, calls the kernel,
and answers with what it took; what came of it is in a file.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import time
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor import made_up
from costdb.launch.processes import begin
from costdb.launch.space import give_way, ours

_SEED = 20_261_121
_PIECE_BYTES = 2**14


def main(arguments: list[str]) -> int:
    """Run the job in the file that the only argument names."""
    import numpy as np

    job, answer = begin(arguments)

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
    fresh = {name: _copied(value) for name, value in given.items()}
    changes = [name for name, value in given.items() if _is_array(value)]
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
    keep([value for value in (*returned, *fresh.values()) if _is_array(value)])
    return samples


def _arguments(function: Callable[..., Any], job: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    random = np.random.default_rng(_SEED)
    arrays = {one["name"]: one for one in job["arrays"]}
    for size in sorted(_sizes(job)):
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


def _sizes(job: Mapping[str, Any]) -> list[int]:
    """Return the bytes of all arrays."""
    import numpy as np

    return [prod(one["shape"]) * np.dtype(one["dtype"]).itemsize for one in job["arrays"]]


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


def _copied(value: Any) -> Any:
    return value.copy("A") if _is_array(value) else value


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "copy")
