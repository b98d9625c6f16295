"""What a rule is, and what it offers: a variant of a kernel, why it is legal, how to write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.source import Edit, Span
from costdb.records import dataclass

ALWAYS = 1.0, 0.0
"""Any speed-up, and any time saved, is worth a word."""


@dataclass(frozen=True, slots=True)
class Legality:
    """Whether a rewrite keeps results, and the argument in words."""

    applicability: Applicability
    argument: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """One way to write a kernel otherwise.

    Attributes
    ----------
    title : str
        What to do, as an imperative: "sum the windows by prefix scans".
    reason : str
        Why it can be faster, without numbers.
    span : Span
        The statement that the choice is about.
    variant : Kernel
        The kernel as it would be.
    legality : Legality
    edits : callable returning tuple of Edit
        Builds the edits; called only when somebody looks at them. Empty where the source
        cannot be changed mechanically.
    least : (float, float)
        The speed-up, and the seconds saved in a call, from which on it is worth a word.
    rest : Kernel or None
        The kernel without what is changed, where that by itself has to be so much faster.
    """

    title: str
    reason: str
    span: Span
    variant: Kernel
    legality: Legality
    edits: Callable[[], tuple[Edit, ...]]
    least: tuple[float, float] = ALWAYS
    rest: Kernel | None = None


class Rule(Protocol):
    """One kind of choice, with a page of its own."""

    @property
    def code(self) -> str:
        """Stable code, such as ``ADV201``."""

    @property
    def name(self) -> str:
        """Kebab-case name of the anti-pattern."""

    @property
    def documentation(self) -> str:
        """The rule's page, in Markdown."""

    @property
    def module(self) -> str:
        """The module that it is in, which begins with its page."""


class Transform(Rule, Protocol):
    """A rule about kernels, found through the entry-point group ``advise.transforms``."""

    def propose(self, kernel: Kernel) -> Iterable[Proposal]:
        """Yield every alternative to the choices that the kernel makes."""
