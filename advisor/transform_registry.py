"""Finds the transforms that are installed, through their entry-point groups.

The name of an entry is the rule's code. A rule that has nothing to say of kernels without some part
stands in a group that ends in it, as ``advise.transforms.Fourier``: the class of a statement or of
a value, ``Element`` for a single element, or ``Parallel`` for a loop that may have work which waits
for no other iteration. It is imported once a kernel holds that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.ir.kernel import Kernel, once, symbols
from advisor.ir.statements import Loop, Store, names_elements, values_of, walk
from advisor.ir.values import parts_of, reads
from costdb.records import dataclass

if TYPE_CHECKING:
    from advisor.ir.kernel import Proposal, Rule, Transform
    from advisor.ir.spmd.program import ProgramTransform

GROUP = "advise.transforms"
PROGRAM_GROUP = "advise.program_transforms"
_CODE = re.compile(r"[A-Z]+[0-9]+")
_FILES = "*.*-info/entry_points.txt"


@dataclass(frozen=True, eq=False)
class Installed:
    """A rule that is imported once it is asked about what may concern it.

    Attributes
    ----------
    entry : str
        The name of its entry.
    place : str
        ``module:name``.
    needs : frozenset of str
        A kernel that holds none of them does not concern it; empty where every kernel does.
    """

    entry: str
    place: str
    needs: frozenset[str]

    @cached_property
    def rule(self) -> Any:
        """The rule itself."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)

    @property
    def code(self) -> str:
        """Its code, for which one that is named so is not imported."""
        code: str = self.entry if _CODE.fullmatch(self.entry) else self.rule.code
        return code

    @property
    def module(self) -> str:
        """The module that it is in."""
        return self.place.partition(":")[0]

    def __getattr__(self, name: str) -> Any:
        """Return what else the rule has."""
        return getattr(self.rule, name)

    def propose(self, kernel: Kernel) -> Iterable[Proposal]:
        """Yield what the rule proposes for a kernel."""
        if self.needs and self.needs.isdisjoint(held(kernel)):
            return ()
        found: Iterable[Proposal] = self.rule.propose(kernel)
        return found


@once
def held(kernel: Kernel) -> frozenset[str]:
    """Return what rules may need of a kernel: the classes of its statements and values.

    ``Element`` stands for a subscript, or places, that name single elements. ``Parallel`` stands
    for a loop that does not merely go on from its own results: it uses its index, or arrays that
    it does not store to.
    """
    found: set[str] = set()
    for statement in walk(kernel.body):
        if isinstance(statement, Loop) and _is_parallel(statement):
            found.add("Parallel")
        parts = [part for value in values_of(statement) for part in parts_of(value)]
        found.update(type(one).__name__ for one in (statement, *parts))
        if names_elements(statement):
            found.add("Element")
    return frozenset(found)


def _is_parallel(loop: Loop) -> bool:
    # not on the way to an answer that was kept

    within = list(walk(loop.body))
    stored = {one.array for one in within if isinstance(one, Store)}
    used = {read.array for one in within for value in values_of(one) for read in reads(value)}
    return loop.variable in symbols(loop.body) or not used <= stored


@cache
def transforms() -> tuple[Transform, ...]:
    """Return all installed transforms, ordered by code.

    Raises
    ------
    LookupError
        When none is installed, which means that the distribution's metadata is missing.
    """
    found: tuple[Transform, ...] = _installed(GROUP)
    if not found:
        raise LookupError(
            "no transforms are installed: reinstall with `pip install kernel-advisor`"
        )
    return found


@cache
def program_transforms() -> tuple[ProgramTransform, ...]:
    """Return the installed transforms of SPMD programs, ordered by code; there may be none."""
    return _installed(PROGRAM_GROUP)


def rules() -> tuple[Rule, ...]:
    """Return all installed transforms, of kernels and of programs, ordered by code.

    Raises
    ------
    LookupError
        As :func:`transforms`.
    """
    return tuple(sorted((*transforms(), *program_transforms()), key=lambda one: one.code))


def _installed(group: str) -> tuple[Any, ...]:
    needs: dict[tuple[str, str], set[str]] = {}
    for own, name, place in _entries():
        if own == group or own.startswith(f"{group}."):
            needs.setdefault((name, place), set()).add(own[len(group) + 1 :])
    # whoever is in the group itself needs nothing
    found = [
        Installed(*key, frozenset() if "" in one else frozenset(one)) for key, one in needs.items()
    ]
    return tuple(sorted(found, key=lambda one: one.code))


@cache
def _entries() -> tuple[tuple[str, str, str], ...]:
    """Return group, name and place of the entry points for this tool.

    Of folders what ``importlib.metadata`` says, of which the import takes as long as ten rules.
    """
    found: list[tuple[str, str, str]] = []
    seen: set[str] = set()
    files = (file for place in sys.path for file in sorted(Path(place or ".").glob(_FILES)))
    for file in files:
        # of two versions the first on the path is imported
        distribution = file.parent.name.partition("-")[0].lower()
        group = ""
        for line in file.read_text("utf-8").splitlines() if distribution not in seen else ():
            name, equals, place = map(str.strip, line.partition("="))
            if line.startswith("["):
                group = line.strip("[] ")
            elif equals and group.startswith("advise."):
                found.append((group, name, place.partition("[")[0].strip()))
        seen.add(distribution)
    return tuple(found)
