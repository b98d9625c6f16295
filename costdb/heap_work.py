"""Work on a heap: which memory a program takes and frees, and what it so gets anew.

Part of the description of work in :mod:`costdb.work`; symbolic like all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from costdb.expr import Expr


@dataclass(frozen=True, slots=True)
class Drain:
    """Arrays at the end of a heap that become free together.

    Attributes
    ----------
    freed_bytes : tuple of Expr
        The arrays that are freed.
    before_bytes : tuple of Expr
        Arrays that an earlier drain left free beside them, where it did not give them back.
    charged : bool
        False for a drain that is only there because of what follows it.
    """

    freed_bytes: tuple[Expr, ...]
    before_bytes: tuple[Expr, ...] = ()
    charged: bool = True


@dataclass(frozen=True, slots=True)
class Taken:
    """An array gets memory; `block` names it until it is released.

    What a library takes for itself is `scratch`: no call's price has its memory, however large.
    """

    block: str
    size_bytes: Expr
    scratch: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """The memory of a block is freed, if there is one."""

    block: str


@dataclass(frozen=True, slots=True)
class Renamed:
    """Blocks get other names, all at once: of each pair, the first one gets that of the second."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Laps:
    """Steps for each `variable` in ``low..high``."""

    variable: str
    low: Expr
    high: Expr
    steps: tuple[HeapStep, ...]


HeapStep: TypeAlias = Taken | Released | Renamed | Laps


IF_GIVEN_BACK = "fresh memory, if given back"
"""The name of a part of a time that a process has in full, or less of it for good."""


@dataclass(frozen=True, slots=True)
class FreshMemory:
    """Memory that is given back when arrays are freed, and given anew when it is needed again.

    Array model. Whoever does the same again and again pays for every page each time. Where sizes
    are numbers, `steps` say what happens one after another; else `drains` what becomes free.

    Attributes
    ----------
    drains : tuple of Drain
        In the order in which they happen.
    other_bytes : tuple of Expr
        Arrays that the program has besides, and frees at some time.
    steps : tuple of HeapStep
        In the order in which they happen.
    """

    drains: tuple[Drain, ...]
    other_bytes: tuple[Expr, ...] = ()
    label: str = "fresh memory"
    steps: tuple[HeapStep, ...] = ()
