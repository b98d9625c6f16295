"""Advice from within numba: a pass that hands the compiler's facts to the front end.

Needs the extra ``kernel-advisor[numba]``; numba is imported where it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from advisor.compiler.decorator import advised_njit as advised_njit
    from advisor.compiler.pipeline import AdvisedCompiler as AdvisedCompiler

__all__ = ["AdvisedCompiler", "advised_njit"]

_HOMES = {
    "AdvisedCompiler": "advisor.compiler.pipeline",
    "advised_njit": "advisor.compiler.decorator",
}


def __getattr__(name: str) -> object:
    """Return what is public, imported when first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
