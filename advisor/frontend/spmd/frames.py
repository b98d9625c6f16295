"""Files that a pass follows, their functions, and the calls of these that run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.files import decode_source
from advisor.frontend.advise_comments.comments import read_comments
from advisor.frontend.advise_comments.directives import CommentError, Pragmas, read_pragmas
from advisor.frontend.spmd.values import Class, Function, Value
from advisor.frontend.syntax.prefilter import sibling_file
from advisor.frontend.syntax.trees import Tree, tree_of
from advisor.ir.spmd.memory import Buffer
from advisor.ir.spmd.program import MODULE, CallSite
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import Step
from advisor.source import SourceProblem
from costdb.records import dataclass, field

if TYPE_CHECKING:
    from advisor.frontend.spmd.run import Run

MOST_MODULES = 8
"""Modules beside a program that are followed."""

LINE_END = re.compile(r"\r\n|\n|\r")


class TooMuch(Exception):
    """A file in which following every call takes too long."""


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


@dataclass(slots=True)
class Frame:
    """The names of one running function.

    Attributes
    ----------
    names : dict of str to Value
    function : str
    shared : dict of str to Value
        The names of the module, or of the function that a nested one stands in.
    given : set of str
        Names declared ``global`` or ``nonlocal``.
    depth : int
        Loops around the present statement within this function.
    outer : int
        Loops around the call of this function.
    of_all_ranks : str
        The communicator that it is given, and that nothing says more of.
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

    def entered(self, names: dict[str, Value], steps: tuple[Step, ...]) -> Entered:
        """Return what was found when it was entered with names."""
        made = tuple(self.buffers.values()), tuple(self.communicators)
        return Entered(names, steps, *made, frozenset(self.returned_names))


# Files that a pass follows: the program, and modules beside it.


@dataclass(frozen=True, slots=True)
class Context:
    """A file that a pass follows: the program, or a module beside it.

    Attributes
    ----------
    path : str
    lines : list of str
        The source, as spans count.
    tree : Tree
    pragmas : Pragmas
    communicators : frozenset of str
        Names on which methods are called that only mpi4py's communicators have.
    frame : Frame
        Its top level.
    module : str
        How it is imported; ``""`` for the program itself.
    defined : dict of str to Defined
        Its functions.
    """

    path: str
    lines: list[str]
    tree: Tree
    pragmas: Pragmas
    communicators: frozenset[str]
    frame: Frame
    module: str = ""
    defined: dict[str, Defined] = field(default_factory=dict)


def file_of(
    path: str, source: str, communicators: frozenset[str], module: str = "", **names: Value
) -> Context:
    """Return a file that nothing is followed of yet.

    Raises
    ------
    SourceProblem
        When the file does not parse, or a comment to the tool cannot be right.
    """
    tree = tree_of(path, source)
    try:
        pragmas = read_pragmas(path, read_comments(source))
    except CommentError as error:
        raise error.in_file(path) from error
    frame = Frame(names, MODULE, names, module=module)
    return Context(path, LINE_END.split(source), tree, pragmas, communicators, frame, module)


@dataclass(slots=True)
class Siblings:
    """The modules beside a file, followed when a program imports them; they are read, never run.

    Attributes
    ----------
    path : str
        The program.
    given : dict of str to str
        Texts of modules that are not to be read from their files.
    contexts : dict of str to Context or None
        None: there is none, it does not parse, or it is being followed already.
    """

    path: str
    given: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, Context | None] = field(default_factory=dict)
    followed: int = 0

    def context(self, run: Run, module: str) -> Context | None:
        """Return a module, followed when it is first asked for; None where there is none."""
        name = module.rpartition(".")[2]
        if name not in self.contexts:
            # modules that import each other find nothing of the one that is not done
            self.contexts[name] = None
            if self.followed < MOST_MODULES:
                self.contexts[name] = self._followed(run, name, module)
        return self.contexts[name]

    def _followed(self, run: Run, name: str, module: str) -> Context | None:
        file = sibling_file(self.path, module)
        if file is None:
            return None
        try:
            source = self.given.get(file.stem)
            if source is None:
                source = decode_source(str(file), file.read_bytes()).text
            context = file_of(str(file), source, run.file.communicators, name)
        except (OSError, SourceProblem, RecursionError):
            # what is wrong with it is told where it is checked itself
            return None
        self.followed += 1
        try:
            with run.within(context), run.block():
                run.follow_block(context.tree.module, run)
        except TooMuch:
            return None
        return context
