"""Modules beside a program, followed when it imports them; they are read, never run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import libcst as cst

from advisor.files import decode_source
from advisor.frontend.advise_comments.comments import read_comments
from advisor.frontend.advise_comments.directives import CommentError, Pragmas, read_pragmas
from advisor.frontend.spmd.frames import Context, Frame
from advisor.frontend.spmd.functions import Functions
from advisor.frontend.spmd.run import Run, TooMuch
from advisor.frontend.spmd.statements import Statements
from advisor.frontend.spmd.values import Value
from advisor.frontend.syntax.prefilter import sibling_file
from advisor.frontend.syntax.trees import tree_of
from advisor.ir.spmd.program import MODULE
from advisor.source import SourceProblem

MOST_MODULES = 8
"""Modules that are followed for one program."""

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(slots=True)
class Siblings:
    """The modules beside a file.

    Attributes
    ----------
    path : str
        The program.
    given : dict of str to str
        Texts of modules that are not to be read from their files.
    contexts : dict of str to Context or None
        None: there is none, it does not parse, or it is being followed already.
    tables : dict of str to Functions
    trees : dict of str to Module
    """

    path: str
    given: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, Context | None] = field(default_factory=dict)
    tables: dict[str, Functions] = field(default_factory=dict)
    trees: dict[str, cst.Module] = field(default_factory=dict)

    def context(self, run: Run, module: str) -> Context | None:
        """Return a module, followed when it is first asked for; None where there is none."""
        name = module.rpartition(".")[2]
        if name not in self.contexts:
            # modules that import each other find nothing of the one that is not done
            self.contexts[name] = None
            found = self._text(module) if len(self.trees) < MOST_MODULES else None
            if found is not None:
                self.contexts[name] = self._followed(run, name, *found)
        return self.contexts[name]

    def end(self) -> None:
        """Let go of what followed the modules."""
        for table in self.tables.values():
            table.end()

    def _text(self, module: str) -> tuple[str, str] | None:
        file = sibling_file(self.path, module)
        if file is None:
            return None
        try:
            text = self.given.get(file.stem)
            if text is None:
                text = decode_source(str(file), file.read_bytes()).text
            return str(file), text
        except (OSError, SourceProblem):
            return None

    def _followed(self, run: Run, module: str, path: str, source: str) -> Context | None:
        try:
            tree = tree_of(path, source)
            pragmas = read_pragmas(path, read_comments(source))
        except (SourceProblem, CommentError, RecursionError):
            # what is wrong with it is told where it is checked itself
            return None
        table, statements = follower_of(run, pragmas, module)
        names: dict[str, Value] = {}
        frame = Frame(names, MODULE, names, module=module)
        context = Context(
            tree.span_of, _LINE_END.split(source), path, run.communicators, table, frame, module
        )
        self.tables[module], self.trees[module] = table, tree.module
        try:
            with run.within(context), run.block():
                statements.block(tree.module)
        except TooMuch:
            return None
        return context


def follower_of(run: Run, pragmas: Pragmas, module: str) -> tuple[Functions, Statements]:
    """Return the functions of a module, to be filled, and what follows its statements."""
    statements = Statements(run, pragmas)
    return Functions(statements.block, module), statements
