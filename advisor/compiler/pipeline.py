"""The compiler pass, for one function or a whole program: it looks and changes nothing.

Numba calls :func:`costdb.launch.start.init_numba` before its first compilation, because the
project's metadata names it among ``numba_extensions``. It comes to :func:`init` if
``ADVISE_NUMBA`` is set.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from numba import njit
from numba.core.compiler import Compiler, CompilerBase
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NopythonTypeInference, ParforPreLoweringPass

from advisor.compiler.record import PLAIN, guarded, note, note_cached, note_underway

VARIABLE = "ADVISE_NUMBA"


@register_pass(mutates_CFG=False, analysis_only=True)
class ObserveFacts(AnalysisPass):  # type: ignore[misc]
    """Note types, layouts and parallel loops of a function; never fails and never mutates."""

    _name = "advise_observe_facts"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Note the facts of a function.

        Parameters
        ----------
        state : numba.core.compiler.StateDict

        Returns
        -------
        bool
            False: nothing was changed.
        """
        with guarded("looking at a compiled function"):
            note(state)
        return False


def with_facts(pipelines: list[Any]) -> list[Any]:
    """Add the pass to pipelines of numba, after parallel loops are found.

    A pipeline that infers no types, as in object mode, stays as it is.
    """
    for pipeline in pipelines:
        plain = list(pipeline.passes)
        with guarded("adding a pass to the compiler"):
            try:
                _add_to(pipeline)
            except Exception:
                # half of a change would leave a pipeline that numba refuses to run
                pipeline.passes[:] = plain
                pipeline.finalize()
                raise
    return pipelines


def _add_to(pipeline: Any) -> None:
    passes = [kind for kind, _ in pipeline.passes]
    for late in (ParforPreLoweringPass, NopythonTypeInference):
        if late in passes and ObserveFacts not in passes:
            pipeline.add_pass_after(ObserveFacts, late)
            pipeline.finalize()
            return


class AdvisedCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's own compiler with one more pass, for ``pipeline_class=``."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipelines with the pass in them."""
        return with_facts(define_plainly(self))


define_plainly = Compiler.define_pipelines


def advised_njit(*args: Any, **options: Any) -> Any:
    """Compile a function as ``numba.njit`` does, and advise on it when the program ends.

    Parameters
    ----------
    *args, **options
        As for ``numba.njit``. A ``pipeline_class`` of the caller's stays, without advice.

    Returns
    -------
    numba dispatcher, or a decorator that makes one
    """
    options.setdefault("pipeline_class", AdvisedCompiler)
    made = njit(*args, **options)
    with guarded("preparing the report"):
        from advisor.compiler.advice import report_at_exit

        report_at_exit()
    if options.get("cache"):
        return watched(made)
    return made


def watched(made: Any) -> Any:
    """Look at functions that numba takes from its cache, which no pass sees.

    Parameters
    ----------
    made : numba dispatcher, or a decorator that makes one
    """
    if not hasattr(made, "py_func"):
        decorate: Callable[[Any], Any] = made
        return lambda function: watched(decorate(function))
    with guarded("looking at a cached function"):
        # the dispatcher's C part looks the method up on the instance
        made._compile_for_args = partial(_noting(type(made)._compile_for_args), made)
    return made


def _noting(compile_plainly: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of dispatchers that also notes what was taken from the cache."""

    @wraps(compile_plainly)
    def compile_for_args(self: Any, *args: Any, **named: Any) -> Any:
        result = compile_plainly(self, *args, **named)
        with guarded("looking at a cached function"):
            note_cached(self, args)
        return result

    return compile_for_args


def init() -> None:
    """Switch the pass on if the environment asks for it."""
    if not os.environ.get(VARIABLE):
        return
    with guarded("switching the pass on"):
        from advisor.compiler.advice import report_at_exit, wish

        if wish(os.environ[VARIABLE]) is not None:
            install()
            note_underway()
            report_at_exit()


def install() -> None:
    """Let numba's default compiler note facts of all that it compiles from here on.

    Functions with a ``pipeline_class`` of their own are left alone.
    """
    if Compiler.define_pipelines is not define_plainly:
        return
    dispatcher: Any = Dispatcher
    make_plainly = dispatcher.__init__

    @wraps(define_plainly)
    def define_pipelines(self: Any) -> list[Any]:
        return with_facts(define_plainly(self))

    @wraps(make_plainly)
    def make(self: Any, py_func: Any, *args: Any, **named: Any) -> None:
        # what a decorator of ours counts is no text that numba could compile
        make_plainly(self, getattr(py_func, PLAIN, py_func), *args, **named)

    Compiler.define_pipelines = define_pipelines
    dispatcher.__init__ = make
    dispatcher._compile_for_args = _noting(dispatcher._compile_for_args)
