"""Functions that run: what they are called with, and what their names denote."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.frontend.spmd.values import Value
from advisor.ir.spmd.memory import Buffer
from advisor.ir.spmd.ranks import Communicator
from advisor.source import Span


@dataclass(frozen=True, slots=True)
class Argument:
    """An evaluated argument of a call."""

    value: Value
    keyword: str | None
    span: Span
    place: Span
    text: str
    star: str = ""


@dataclass(slots=True)
class Frame:
    """The names of one running function.

    Attributes
    ----------
    names : dict of str to Value
    function : str
    shared : dict of str to Value
        The names of the module, or of the function that a nested one stands in.
    given : frozenset of str
        Names declared ``global`` or ``nonlocal``.
    depth : int
        Loops around the present statement within this function.
    outer : int
        Loops around the call of this function.
    of_all_ranks : str
        The communicator that it is given, and that nothing says more of.
    nested : bool
        Whether it is defined within another.
    """

    names: dict[str, Value]
    function: str
    shared: dict[str, Value]
    given: set[str] = field(default_factory=set)
    depth: int = 0
    outer: int = 0
    returned: list[Value] = field(default_factory=list)
    returned_names: set[str] = field(default_factory=set)
    buffers: dict[tuple[str, int], Buffer] = field(default_factory=dict)
    communicators: dict[Communicator, None] = field(default_factory=dict)
    module: str = ""
    of_all_ranks: str = ""
    nested: bool = False
