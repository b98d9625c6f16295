"""``advised_njit``: numba's ``njit`` with the pass, and a report when the program ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from advisor.compiler.pipeline import AdvisedCompiler
from advisor.compiler.record import guarded, note_cached


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
        from advisor.compiler.report import report_at_exit

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
        _watch_first_calls(made)
    return made


def _watch_first_calls(dispatcher: Any) -> None:
    compile_for = dispatcher._compile_for_args

    def first_call(*args: Any, **named: Any) -> Any:
        result = compile_for(*args, **named)
        with guarded("looking at a cached function"):
            note_cached(dispatcher, args)
        return result

    # the dispatcher's C part looks the method up on the instance
    dispatcher._compile_for_args = first_call
