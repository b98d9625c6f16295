"""What a sampled program may call: functions that only compute on what they are given.

The rows are those of ``pure.toml`` beside this module. A function without a row is not called;
whatever needs it is not sampled, and is named.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Final

_TABLE: Final = tomllib.loads((files("advisor") / "measure" / "pure.toml").read_text("utf-8"))
_MEMBERS: Final = _TABLE["members"]

CALLS: Final = frozenset(
    f"{module}.{name}" for module, names in _TABLE["calls"].items() for name in names.split()
)
"""Dotted names of functions; types of elements are among them."""

WITH_FUNCTIONS: Final = frozenset(
    {"numpy.fromfunction", "numpy.apply_along_axis", "numpy.vectorize", "numpy.piecewise"}
)
"""Those that call what they are given, which must be a function of the same file."""

TALKING: Final = frozenset(_MEMBERS["talking"].split())
"""Methods by which ranks send to each other or wait for each other."""

OF_RANK: Final = frozenset({"Get_rank", "rank", "coords", "Get_coords", "Get_cart_rank"})
"""What gives each rank another value."""

MPI_MEMBERS: Final = TALKING | frozenset(_MEMBERS["of_ranks"].split())
"""What communicators, requests, datatypes and windows have; of files that import mpi4py."""

VALUES: Final = frozenset(f"numpy.{name}" for name in _TABLE["names"]["numpy"].split())
"""Names of NumPy that are no functions."""

COMPILERS: Final = frozenset(
    {"numba.njit", "numba.jit", "numba.core.decorators.njit", "advisor.compiler.advised_njit"}
)
"""Decorators that compile a function; what is compiled is one piece, and runs whole."""

COMPILER_OPTIONS: Final = frozenset(
    ("parallel", "fastmath", "nogil", "boundscheck", "error_model", "nopython", "forceobj")
)

MARKS: Final = frozenset({"advisor.kernel", "advisor.annotations.kernel"})
"""Decorators that change nothing."""

OPERATORS: Final = frozenset(f"__{name}__" for name in _MEMBERS["operators"].split())
"""Methods that a class of the file may define; none may be asked for by its name."""

OF_CLASSES: Final = frozenset({"property", "staticmethod", "classmethod"})
"""Decorators of methods."""

UFUNC_METHODS: Final = frozenset({"accumulate", "at", "outer", "reduce", "reduceat"})

BUILTINS: Final = frozenset(_TABLE["names"]["builtins"].split())

MEMBERS: Final = frozenset(_MEMBERS["values"].split())
"""Attributes and methods of arrays, numbers, containers, sparse matrices and generators."""
