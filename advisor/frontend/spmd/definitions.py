"""Functions of a file, and what following the file found of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.frontend.spmd.values import Class, Function, Value
from advisor.ir.spmd.memory import Buffer
from advisor.ir.spmd.program import CallSite
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import Step


@dataclass(slots=True)
class Entered:
    """One way in which a function was entered."""

    names: dict[str, Value]
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    communicators: tuple[Communicator, ...]
    returned: frozenset[str]


@dataclass(slots=True)
class Defined:
    """A function of the file and what following the file found of it."""

    function: Function
    owner: Class | None = None
    shared: dict[str, Value] = field(default_factory=dict)
    entered: list[Entered] = field(default_factory=list)
    sites: list[CallSite] = field(default_factory=list)
    nested: bool = False
