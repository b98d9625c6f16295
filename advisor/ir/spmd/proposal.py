"""What a rule about SPMD programs offers: other operations in the place of some.

The engine prices both sides with the same models, at the sizes and ranks that the source or the
user gives, and ranks by the gain. A rule states operations; it never states a cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from advisor.ir.proposal import Legality, Rule
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.steps import Loop, Step
from advisor.source import Edit, Span
from costdb.records import dataclass


@dataclass(frozen=True, slots=True)
class ProgramProposal:
    """One way to write part of a program otherwise.

    Attributes
    ----------
    title : str
        What to do, as an imperative: "send the array as a buffer".
    reason : str
        Why it can be faster, without numbers.
    span : Span
        The line that a person should look at: the call.
    function : SpmdFunction
    before, after : tuple of Step
        The steps that change, and what stands in their place. Steps that stay as they are need
        not be there. Loops that enclose the change are given in `loops`, not here; a loop that
        the change removes or adds is a step.
    loops : tuple of Loop
        Around the steps in the function, outermost first: ``visit.loops``.
    legality : Legality
    edits : callable returning tuple of Edit
        Builds the edits; called only when somebody looks at them. Empty where the source cannot
        be changed mechanically.
    conditions : tuple of str
        What has to be true beyond what the source shows; told with the finding.
    """

    title: str
    reason: str
    span: Span
    function: SpmdFunction
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    legality: Legality
    loops: tuple[Loop, ...] = ()
    edits: Callable[[], tuple[Edit, ...]] = tuple
    conditions: tuple[str, ...] = ()


class ProgramTransform(Rule, Protocol):
    """A rule about SPMD programs, found through the group ``advise.program_transforms``."""

    def propose_program(self, program: Program) -> Iterable[ProgramProposal]:
        """Yield every alternative to what the program does.

        Proposals that speak of the same `span` compete; the fastest is told, the others are its
        alternatives.
        """
        ...
