"""Who takes part: communicators, and the partners of a message."""

from __future__ import annotations

from enum import StrEnum

from advisor.source import Span
from costdb.expr import Expr
from costdb.records import dataclass


class CommKind(StrEnum):
    """How a communicator came to be."""

    WORLD = "world"
    SELF = "self"
    CARTESIAN = "cartesian"
    SPLIT = "split"
    NODE = "node"
    GIVEN = "given"
    """A parameter or an attribute that nothing in the file binds."""


@dataclass(frozen=True, slots=True)
class Communicator:
    """A communicator. Duplicates are the communicator that they duplicate.

    Attributes
    ----------
    kind : CommKind
    text : str
        The expression that made it, or the name of the parameter: tells communicators apart.
    size, rank : Expr
        Symbols. Those of ``COMM_WORLD`` and of a communicator that a function is given are
        called ``P`` and ``rank``; others ``P.NAME`` and ``rank.NAME``.
    span : Span
        Where it was made.
    dims : tuple of Expr or None
        Extents of a Cartesian communicator, where they are known.
    periods : tuple of (bool or None) or None
        Which of its dimensions wrap around; None where that is not known.
    duck_typed : bool
        Known only from how it is used: nothing in the file says that it is mpi4py's.
    """

    kind: CommKind
    text: str
    size: Expr
    rank: Expr
    span: Span
    dims: tuple[Expr, ...] | None = None
    periods: tuple[bool | None, ...] | None = None
    duck_typed: bool = False


class PartnerKind(StrEnum):
    """How a rank names the other end of a message."""

    RANK = "rank"
    """`Partner.rank` is an expression over the own rank, the size and loop indices."""
    NEIGHBOUR = "neighbour"
    """The neighbour `displacement` away along `axis` of a Cartesian communicator."""
    NOBODY = "nobody"
    """``PROC_NULL``."""
    ANY = "any"
    """``ANY_SOURCE``: whoever sends first, as in task farms."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Partner:
    """The other end of a message.

    Attributes
    ----------
    kind : PartnerKind
    text : str
        As in the source, ``""`` where a default is meant.
    rank : Expr or None
        Set for `PartnerKind.RANK`.
    axis, displacement : int or None
        Set for `PartnerKind.NEIGHBOUR`.
    may_be_nobody : bool
        ``PROC_NULL`` on some ranks.
    span : Span or None
    """

    kind: PartnerKind
    text: str
    rank: Expr | None = None
    axis: int | None = None
    displacement: int | None = None
    may_be_nobody: bool = False
    span: Span | None = None
