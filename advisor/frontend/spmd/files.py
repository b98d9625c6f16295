"""Files that a pass follows: the program, and modules beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import libcst as cst

from advisor.frontend.spmd.frames import Argument, Frame
from advisor.frontend.spmd.values import Class, Function, Value
from advisor.source import Span

if TYPE_CHECKING:
    from advisor.frontend.spmd.run import Run


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
