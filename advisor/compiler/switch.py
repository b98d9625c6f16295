"""The pass for a whole program, whatever decorators it uses.

Numba calls :func:`costdb.launch.start.init_numba` before its first compilation, because the
project's metadata names it among
``numba_extensions``. It comes here if ``ADVISE_NUMBA`` is set.
"""

from __future__ import annotations

import os
from functools import wraps
from typing import Any

from advisor.compiler.record import PLAIN, guarded, note_cached, note_underway

VARIABLE = "ADVISE_NUMBA"


def init() -> None:
    """Switch the pass on if the environment asks for it."""
    if not os.environ.get(VARIABLE):
        return
    with guarded("switching the pass on"):
        from advisor.compiler.report import report_at_exit, wish

        if wish(os.environ[VARIABLE]) is not None:
            install()
            note_underway()
            report_at_exit()


def install() -> None:
    """Let numba's default compiler note facts of all that it compiles from here on.

    Functions with a ``pipeline_class`` of their own are left alone.
    """
    from importlib import import_module

    from advisor.compiler.pipeline import define_plainly, with_facts

    compilers: Any = import_module("numba.core.compiler")
    dispatchers: Any = import_module("numba.core.dispatcher")
    if compilers.Compiler.define_pipelines is not define_plainly:
        return
    compile_plainly = dispatchers.Dispatcher._compile_for_args
    make_plainly = dispatchers.Dispatcher.__init__

    @wraps(define_plainly)
    def define_pipelines(self: Any) -> list[Any]:
        return with_facts(define_plainly(self))

    @wraps(compile_plainly)
    def compile_for_args(self: Any, *args: Any, **named: Any) -> Any:
        result = compile_plainly(self, *args, **named)
        with guarded("looking at a cached function"):
            note_cached(self, args)
        return result

    @wraps(make_plainly)
    def make(self: Any, py_func: Any, *args: Any, **named: Any) -> None:
        # what a decorator of ours counts is no text that numba could compile
        make_plainly(self, getattr(py_func, PLAIN, py_func), *args, **named)

    compilers.Compiler.define_pipelines = define_pipelines
    dispatchers.Dispatcher.__init__ = make
    dispatchers.Dispatcher._compile_for_args = compile_for_args
