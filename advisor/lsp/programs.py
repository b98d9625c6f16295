"""SPMD programs read again and again, of which an edit concerns a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.frontend.spmd.bodies import BodyMemory
from advisor.frontend.spmd.called import called
from advisor.frontend.spmd.reader import read_program
from advisor.frontend.syntax.trees import Tree, TreeMemory
from advisor.ir.spmd.program import Program
from advisor.observed import Seen


@dataclass(slots=True)
class ProgramMemory:
    """Reads programs as :func:`~advisor.frontend.spmd.reader.read_program` does.

    To be used by one thread at a time.
    """

    trees: TreeMemory = field(default_factory=TreeMemory)
    bodies: BodyMemory = field(default_factory=BodyMemory)
    called_bodies: BodyMemory = field(default_factory=BodyMemory)
    parsed: set[str] = field(default_factory=set)
    """Texts that were parsed since somebody cleared this."""

    def calls(
        self,
        path: str,
        source: str,
        given: Mapping[str, int | float],
        given_by: Mapping[str, str],
    ) -> tuple[Seen, ...]:
        """Return what calls tell of functions that numba compiles.

        Raises
        ------
        SourceProblem
            As :func:`~advisor.frontend.spmd.called.called` does.
        """
        return called(path, source, self.trees, self.called_bodies, given, given_by)

    def read(self, path: str, source: str) -> Program | None:
        """Return the program of a file; None where nothing in it communicates.

        Raises
        ------
        SourceProblem
            As the reader does.
        """
        return read_program(path, source, self._tree, self.bodies)

    def _tree(self, path: str, source: str) -> Tree:
        found = self.trees(path, source)
        self.parsed.add(source)
        return found
