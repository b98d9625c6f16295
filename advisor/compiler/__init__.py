"""Advice from within numba: a pass that hands the compiler's facts to the front end.

Needs the extra ``kernel-advisor[numba]``; numba is imported where it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from advisor.compiler.pipeline import AdvisedCompiler as AdvisedCompiler
    from advisor.compiler.pipeline import advised_njit as advised_njit

__all__ = ["AdvisedCompiler", "advised_njit"]


def __getattr__(name: str) -> object:
    """Return what is public, imported when first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("advisor.compiler.pipeline"), name)
