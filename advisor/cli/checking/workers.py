"""Check many files, in other processes when there are enough of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from advisor import engine
from advisor.cache.answers import Answer
from advisor.cli.common import RECURSION_LIMIT
from advisor.engine import Options
from advisor.source import SourceProblem

# A worker takes some 0.4 s to start; a kernel takes a tenth of that.
FEWEST_FILES = 16


@dataclass(frozen=True, slots=True)
class Task:
    """One file to check."""

    path: str
    source: str
    options: Options


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file has no answer; the whole line."""

    line: str


def answer(task: Task) -> Answer | Refusal:
    """Return what the engine finds, or its refusal as one line."""
    from costdb.machines import MachineError

    try:
        result = engine.check_source(task.path, task.source, task.options)
    except SourceProblem as problem:
        return Refusal(str(problem))
    except MachineError as error:
        return Refusal(f"advise: {error}")
    return Answer(result.findings, result.remarks, result.names, result.coverage)


def answers(tasks: Sequence[Task], jobs: int | None) -> Iterator[Answer | Refusal]:
    """Yield the answers in the order of the tasks.

    Parameters
    ----------
    tasks : sequence of Task
    jobs : int or None
        How many processes; None: as many as are worth it.
    """
    workers = _worth(len(tasks)) if jobs is None else min(jobs, len(tasks))
    done = 0
    if workers > 1:
        from concurrent.futures.process import BrokenProcessPool

        try:
            for found in _side_by_side(tasks, workers):
                yield found
                done += 1
        except (BrokenProcessPool, OSError, NotImplementedError):
            # no semaphores here, no memory left, or somebody ended a worker: go on alone
            pass
    yield from map(answer, tasks[done:])


def _side_by_side(tasks: Sequence[Task], workers: int) -> Iterator[Answer | Refusal]:
    # imported here: one file in an editor or a hook must not pay for it
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # not "fork": threads of whoever imported this would be copied in mid-air
    context = multiprocessing.get_context("spawn")
    with (
        _safe_path(),
        ProcessPoolExecutor(workers, context, initializer=_begin_work) as pool,
    ):
        try:
            yield from pool.map(answer, tasks)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep new processes from importing out of the current folder, whose files are only read."""
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _worth(count: int) -> int:
    if count < FEWEST_FILES:
        return 1
    return min(_processors(), count // (FEWEST_FILES // 2))


def _processors() -> int:
    # what this process may use, not what the machine has
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin_work() -> None:
    """Set a worker up: the parent is to say that the user has interrupted the run."""
    import signal
    import sys

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setrecursionlimit(RECURSION_LIMIT)
