"""Functions that do the same job, as kernels that can be priced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from advisor.compiler.record import PLAIN
from advisor.distribution import MeshSpec, NotDistributed
from advisor.files import read_source
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import DeclaredArray, Kernel
from advisor.observed import Seen, SeenArray, SeenNumber, Source
from advisor.source import SourceProblem


class NoKernel(Exception):
    """A function that cannot be read as a kernel; one line."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the functions to choose from.

    Attributes
    ----------
    call : callable
        As it was given.
    name : str
    plain : function
        Its Python source: itself, or what it was compiled from.
    source : {"numba", "call"}
        What runs it.
    """

    call: Any
    name: str
    plain: Any
    source: Source

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, those by position first."""
        code = self.plain.__code__
        return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def variant_of(function: Any) -> Variant:
    """Return a callable as a variant.

    Raises
    ------
    TypeError
        It has no Python source: only functions, and what numba makes of them, can be priced.
    """
    compiled = getattr(function, "py_func", None)
    plain = compiled if compiled is not None else getattr(function, PLAIN, function)
    if not callable(function) or not hasattr(plain, "__code__"):
        raise TypeError(f"select takes functions, not {function!r}")
    return Variant(function, plain.__name__, plain, "call" if compiled is None else "numba")


def kernel_of(variant: Variant, facts: Sequence[SeenArray | SeenNumber], *, local: bool) -> Kernel:
    """Return a variant as a kernel.

    Parameters
    ----------
    variant : Variant
    facts : sequence of SeenArray and SeenNumber
        What its arguments are.
    local : bool
        Whether it works on whole arrays in this process, whatever its annotations distribute.

    Raises
    ------
    NoKernel
        Its source is not there, or is none that can be read.
    """
    plain = variant.plain
    seen = Seen(
        function=plain.__qualname__,
        line=plain.__code__.co_firstlineno,
        source=variant.source,
        # a choice is made for calls of all shapes, of which these only tell which are the same
        arrays=tuple(
            replace(fact, shape=None, like=fact.like or repr(fact.shape))
            for fact in facts
            if isinstance(fact, SeenArray)
        ),
        numbers=tuple(fact for fact in facts if isinstance(fact, SeenNumber)),
    )
    try:
        found = _read(plain.__code__.co_filename, seen)
    except (SourceProblem, OSError) as problem:
        raise NoKernel(f"`{variant.name}` cannot be read: {problem}") from problem
    own = [k for k in found if k.name == variant.name and k.span.start_line >= seen.line]
    if not own:
        raise NoKernel(f"`{variant.name}`: its source is not in {plain.__code__.co_filename}")
    kernel = min(own, key=lambda one: one.span.start_line)
    return _undistributed(kernel) if local else kernel


@lru_cache(maxsize=256)
def _read(file: str, seen: Seen) -> tuple[Kernel, ...]:
    return read_kernels(file, read_source(file).text, [seen])


def _undistributed(kernel: Kernel) -> Kernel:
    """Return a kernel whose arrays one process holds whole."""
    return kernel.with_arrays({name: _whole(array) for name, array in kernel.arrays.items()})


def _whole(array: DeclaredArray) -> DeclaredArray:
    spec = array.spec
    dims = tuple(NotDistributed() for _ in spec.dims)
    halo = (0,) * len(spec.halo)
    return replace(array, spec=replace(spec, dims=dims, mesh=MeshSpec(), halo=halo))
