"""Which files can hold anything to advise on, told from their text alone."""

from __future__ import annotations

import re

BUFFER_METHOD = (
    "Sendrecv(?:_replace)?|Isend|Irecv|(?:A|Ia)ll(?:reduce|gatherv?|toall[vw]?)|(?:B|Ib)cast"
    "|(?:G|Ig)atherv?|(?:S|Is)catterv?|(?:E|Ie)xscan|(?:R|Ir)educe_scatter(?:_block)?"
    "|Isendrecv(?:_replace)?"
)
"""Methods, as a regular expression, that few things but mpi4py's communicators have."""

_MARK = re.compile(r"\badvisor\b|#[ \t]*advise[ \t]*:")
_MPI = re.compile(r"\bmpi4py\b")
_PROGRAM = re.compile(rf"\bmpi4py\b|\bprange\b|\.(?:{BUFFER_METHOD})\s*\(")
_NUMBA = re.compile(r"\bnumba\b")
_JIT = re.compile(r"\bn?jit\b")
_MARK_BYTES = re.compile(_MARK.pattern.encode())
_PROGRAM_BYTES = re.compile(_PROGRAM.pattern.encode())
_NUMBA_BYTES = re.compile(_NUMBA.pattern.encode())
_JIT_BYTES = re.compile(_JIT.pattern.encode())
_HINTS = (b"advis",)
"""One of these is in every text that the pattern matches: finding words is a tenth of the work."""

_PROGRAM_HINTS = (
    b"mpi4py",
    b"prange",
    b"endrecv",
    b"Isend",
    b"Irecv",
    b"educe",
    b"llgather",
    b"lltoall",
    b"cast",
    b"ather",
    b"catter",
    b"xscan",
)
"""The same for programs that communicate."""

_DECLARED = b"coding"
_FIRST_LINES_BYTES = 512


def imports_mpi(source: str) -> bool:
    """Return whether a file mentions mpi4py."""
    return _MPI.search(source) is not None


def may_communicate(source: str) -> bool:
    """Return whether a file may hold an SPMD program; cheap, and never wrongly False."""
    return _PROGRAM.search(source) is not None


def may_hold_kernels(source: str) -> bool:
    """Return whether a file may hold annotated kernels; cheap, and never wrongly False."""
    return _MARK.search(source) is not None


def may_call_compiled(source: str) -> bool:
    """Return whether a file may have numba compile functions; cheap, and never wrongly False."""
    return _NUMBA.search(source) is not None and _JIT.search(source) is not None


def needs_reading(source: str) -> bool:
    """Return whether a file may hold anything to advise on; cheap, and never wrongly False."""
    return may_hold_kernels(source) or may_communicate(source) or may_call_compiled(source)


def needs_decoding(data: bytes) -> bool:
    """Return whether the text in `data` may need reading; never wrongly False.

    Every encoding that a Python file may have writes marks as ASCII, but for a few that it must
    declare: whatever declares one is decoded first.
    """
    if any(hint in data for hint in _HINTS) and _MARK_BYTES.search(data) is not None:
        return True
    if any(hint in data for hint in _PROGRAM_HINTS) and _PROGRAM_BYTES.search(data) is not None:
        return True
    # two words, so that a text that only speaks of numba is not parsed
    if b"numba" in data and _NUMBA_BYTES.search(data) and _JIT_BYTES.search(data):
        return True
    return _DECLARED in data[:_FIRST_LINES_BYTES]
