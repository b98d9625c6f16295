"""Running a user's program as Python does, while its calls are looked at."""

from __future__ import annotations

import gc
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from advisor.compiler.record import gathered, guarded, take_over
from advisor.observe import calls, messages
from advisor.observe.imports import after_import
from advisor.observe.ranks import Record, together

_FAILED = 1
# Python's own, which the command line raises for itself
_COLLECTIONS = (700, 10, 10)
_DEPTH = 1000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes
    ----------
    code : int
        Its exit code, as Python would have given it.
    record : Record or None
        What was seen on all ranks; None on ranks other than the first.
    """

    code: int
    record: Record | None


def observe(program: str, arguments: Sequence[str], *, module: bool = False) -> Ended:
    """Run a program in this process and return what was seen of it.

    Parameters
    ----------
    program : str
        Path of a file, or the name of a module.
    arguments : sequence of str
    module : bool
        Whether `program` is a module, as after ``python -m``.

    Notes
    -----
    The program is executed: that is what was asked for. Under ``mpiexec`` every rank calls this,
    and the records meet on rank 0, before MPI is finalized.
    """
    counted, sent = calls.Calls(), messages.Messages()
    found: list[Record | None] = []

    def gather() -> None:
        if not found:
            mpi = sys.modules.get("mpi4py.MPI")
            own = Record((*gathered(), *counted.gathered()), tuple(sent.by_place.items()))
            with guarded("bringing the records of the ranks together"):
                found.append(together(mpi, own))

    take_over()
    calls.install(counted)
    after_import(
        {
            "numba": _observe_numba,
            "mpi4py.MPI": lambda mpi: _observe_messages(mpi, sent, gather),
        }
    )
    gc.set_threshold(*_COLLECTIONS)
    code = _run(program, arguments, module)
    # a rank that failed comes here as well, or the others would wait for it
    gather()
    return Ended(code, found[0] if found else None)


def _observe_numba(numba: ModuleType) -> None:
    from advisor.compiler.switch import install

    install()


def _observe_messages(mpi: ModuleType, sent: messages.Messages, gather: Callable[[], None]) -> None:
    messages.install(mpi, sent)
    plain = mpi.Finalize

    def finalize() -> None:
        gather()
        plain()

    # a program may finalize MPI itself, after which nothing can be sent
    mpi.Finalize = finalize  # type: ignore[attr-defined]


def _run(program: str, arguments: Sequence[str], module: bool) -> int:
    sys.argv = [program, *arguments]
    places, depth = list(sys.path), sys.getrecursionlimit()
    sys.path.insert(0, str(Path.cwd() if module else Path(program).resolve().parent))
    sys.setrecursionlimit(_DEPTH)
    sys.excepthook = sys.__excepthook__
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        return _code_of(end)
    except BaseException as error:
        _show(error)
        if isinstance(error, KeyboardInterrupt):
            raise
        return _FAILED
    finally:
        # what is still to be imported is ours, and not a file of that name beside the program
        sys.path[:] = places
        sys.setrecursionlimit(depth)
        for stream in (sys.stdout, sys.stderr):
            with guarded("flushing the program's output"):
                stream.flush()
    return 0


def _code_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return _FAILED


def _show(error: BaseException) -> None:
    """Print the program's traceback without the frames that ran it."""
    trace = error.__traceback__
    own = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in own:
        trace = trace.tb_next
    traceback.print_exception(error.with_traceback(trace))
