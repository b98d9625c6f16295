"""Files that a pass follows, their functions, and the calls of these that run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import libcst as cst

from advisor.frontend.spmd.values import Class, Function, Value
from advisor.ir.spmd.memory import Buffer
from advisor.ir.spmd.program import CallSite
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import Step
from advisor.source import Span

if TYPE_CHECKING:
    from advisor.frontend.spmd.run import Run
    from advisor.ir.spmd.program import CallSite


# Files that a pass follows: the program, and modules beside it.


class FunctionTable(Protocol):
    """The functions and classes of the file, which know how to be entered."""

    module: str

    def add(self, name: str, node: cst.FunctionDef, run: Run) -> Function:
        """Note a definition."""

    def own(self, cls: Class, names: list[str], run: Run) -> None:
        """Note the class whose methods some functions are."""

    def enter(self, run: Run, function: Function, given: list[Argument], span: Span) -> Value:
        """Follow a call."""

    def instantiate(self, run: Run, cls: Class, given: list[Argument], span: Span) -> Value:
        """Return a new instance."""


@dataclass(frozen=True, slots=True)
class Context:
    """A file that a pass follows: the program, or a module beside it.

    Attributes
    ----------
    span : callable
        The place of a node.
    lines : list of str
        The source, as spans count.
    path : str
    communicators : frozenset of str
        Names on which methods are called that only mpi4py's communicators have.
    functions : FunctionTable
        Functions and classes of the file.
    frame : Frame
        Its top level.
    module : str
        How it is imported; ``""`` for the program itself.
    """

    span: Callable[[cst.CSTNode], Span]
    lines: list[str]
    path: str
    communicators: frozenset[str]
    functions: FunctionTable
    frame: Frame
    module: str = ""


class ModulesBeside(Protocol):
    """Finds modules beside the program."""

    def context(self, run: Run, module: str) -> Context | None:
        """Return a module, followed when it is first asked for; None where there is none."""


# Functions of a file, and what following the file found of them.


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
