"""The process that runs a user's program as Python does, while its calls are looked at.

Started as :func:`costdb.launch.space.command` does, with ``OUTPUT HOW PROGRAM ARGUMENTS...``. What
was seen goes into the file OUTPUT: nothing is analysed where a program has imported what it likes.
"""

from __future__ import annotations
import __future__

import builtins
import json
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from operator import or_
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor.codec import encode
from advisor.compiler.record import gathered, guarded, take_over
from advisor.files import read_source
from advisor.observe import messages
from advisor.observe.calls import Calls
from advisor.observe.messages import Record, together
from advisor.source import NOTEBOOK, separate
from costdb.launch.space import give_way, ours

# Being told when a module has been imported, without importing it.

Hook = Callable[[ModuleType], None]


class AfterImport:
    """A finder that calls a hook for each of some modules as soon as it is there.

    Parameters
    ----------
    hooks : mapping of str to callable
        By full name; a hook that fails is logged, and the import goes on.
    """

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._hooks = dict(hooks)

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of the modules where the other finders do; None for all others."""
        hook = self._hooks.pop(name, None)
        if hook is None:
            return None
        # the hook is gone, so this comes back to the other finders
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            _hook_into(spec.loader, hook)
        return spec


def _hook_into(loader: Any, hook: Hook) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        with guarded(f"preparing to observe {module.__name__}"):
            hook(module)

    loader.exec_module = exec_module


def after_import(hooks: Mapping[str, Hook]) -> None:
    """Call hooks once their modules are imported; at once for those that are already."""
    waiting = {}
    for name, hook in hooks.items():
        if name in sys.modules:
            hook(sys.modules[name])
        else:
            waiting[name] = hook
    sys.meta_path.insert(0, AfterImport(waiting))


_FEATURES = reduce(
    or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
)
MODULE = "module"
FILE = "file"
_FAILED = 1
_INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Run a program and return its exit code; under ``mpiexec`` every rank does.

    The records of the ranks meet on rank 0, before MPI is finalized; the others write null.
    """
    output, how, program, *given = arguments
    folder = str(Path.cwd() if how == MODULE else Path(program).resolve().parent)
    counted, sent = Calls(os.path.realpath(folder)), messages.Messages()
    written: list[bool] = []

    def gather() -> None:
        if written:
            return
        written.append(True)
        mpi = sys.modules.get("mpi4py.MPI")
        own = Record((*gathered(), *counted.gathered()), sent.gathered())
        with guarded("bringing the records of the ranks together"), ours():
            record = together(mpi, own)
            text = json.dumps(None if record is None else encode(record))
            Path(output).write_text(text, "utf-8")

    take_over()
    give_way(folder)
    after_import(
        {
            "numba": _observe_numba,
            "mpi4py.MPI": lambda mpi: _observe_messages(mpi, sent, gather),
        }
    )
    with counted.watching():
        code = _run(program, given, how == MODULE)
        _finish_threads()
    # a rank that failed comes here as well, or the others would wait for it
    gather()
    return code


def _finish_threads() -> None:
    """Wait for the threads that a program leaves running, as Python does before it exits."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _observe_numba(numba: ModuleType) -> None:
    with ours():
        from advisor.compiler.pipeline import install

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
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            _execute(Path(program).absolute())
    except SystemExit as end:
        return _code_of(end)
    except BaseException as error:
        _show(error)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else _FAILED
    finally:
        for stream in (sys.stdout, sys.stderr):
            with guarded("flushing the program's output"):
                stream.flush()
    return 0


def _execute(file: Path) -> None:
    """Execute a file as ``__main__``, which it stays until the process ends."""
    main = ModuleType("__main__")
    main.__file__ = str(file)
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    is_notebook = file.suffix == NOTEBOOK
    parts = separate(read_source(str(file)).text) if is_notebook else [file.read_bytes()]
    features = 0
    for part in parts:
        code = compile(part, main.__file__, "exec", flags=features, dont_inherit=True)
        # what a cell imports from the future holds for the later ones
        features |= code.co_flags & _FEATURES
        exec(code, main.__dict__)


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
