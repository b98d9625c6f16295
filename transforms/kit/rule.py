"""What a rule is: a code, a name, a page, and a function that yields proposals.

The page is the docstring of the rule's module, in Markdown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal
from costdb.records import dataclass


@dataclass(frozen=True, slots=True)
class PagedRule:
    """What rules have in common."""

    code: str
    name: str
    page: str | None

    @property
    def documentation(self) -> str:
        """The page; of Python without docstrings (``-OO``) its title."""
        return self.page or f"# {self.code} {self.name}\n"


@dataclass(frozen=True, slots=True)
class KernelRule(PagedRule):
    """A rule about kernels, as the entry-point group ``advise.transforms`` names it."""

    propose: Callable[[Kernel], Iterable[Proposal]]
