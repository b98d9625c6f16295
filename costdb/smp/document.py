"""Shared-memory programs as documents: supersteps over parameters, with variants.

Parameters, derived quantities, constraints and variants are those of application descriptions
(:mod:`costdb.phases.reading`); in place of phases there are supersteps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from costdb.expr import Expr, num
from costdb.phases.application import Application, When, Word
from costdb.phases.document import Node
from costdb.phases.pricing import derived_quantities, written_out
from costdb.phases.reading import (
    HEAD_KEYS,
    OPTIONAL_HEAD_KEYS,
    check_names,
    head_expressions,
    listed,
    read_head,
    read_when,
)
from costdb.process.terms import Leaf, Process, Sequential, repeated
from costdb.work import Superstep

KIND: Final = "supersteps"


@dataclass(frozen=True, slots=True)
class StatedSuperstep:
    """A superstep of a document: its counts, how often it happens, and for which words."""

    superstep: Superstep
    times: Expr
    when: When
    place: str


@dataclass(frozen=True, slots=True)
class SuperstepProgram:
    """A shared-memory program; `head` holds what documents of every kind have."""

    head: Application
    supersteps: tuple[StatedSuperstep, ...]

    def process(self, words: Mapping[str, Word]) -> Process:
        """Return the variant that `words` pick, over sizes and parameters.

        Raises
        ------
        ApplicationError
            It leaves a name undefined.
        """
        derived = derived_quantities(self.head, words)

        def whole(expr: Expr, place: str) -> Expr:
            return written_out(self.head, expr, derived, place)

        def leaf(stated: StatedSuperstep) -> Process:
            step, place = stated.superstep, stated.place
            work = Superstep(
                whole(step.processors, place),
                whole(step.reads, place),
                whole(step.writes, place),
                whole(step.total, place),
                step.label,
            )
            return repeated(whole(stated.times, place), Leaf(work))

        steps = tuple(leaf(stated) for stated in self.supersteps if stated.when.holds(words))
        return repeated(whole(self.head.repeat, "/repeat"), Sequential(steps))


def program_of(document: dict[str, object], origin: str) -> SuperstepProgram:
    """Return the program that a parsed document describes.

    Raises
    ------
    ApplicationError
        With the place of what cannot be used.
    """
    top = Node(document, "", origin)
    keys = top.known((*HEAD_KEYS, "kind", "processors", "supersteps"), OPTIONAL_HEAD_KEYS)
    if keys["kind"].text() != KIND:
        raise keys["kind"].refuse(f"expected {KIND}")
    head = read_head(keys, origin)
    processors = keys["processors"].expression()
    program = SuperstepProgram(
        head, tuple(_superstep(node, head, processors) for node in listed(keys, "supersteps"))
    )
    if not program.supersteps:
        raise keys["supersteps"].refuse("there is no superstep")
    check_names(head, _expressions(program, processors))
    return program


def _superstep(node: Node, head: Application, processors: Expr) -> StatedSuperstep:
    table = node.known(("name", "reads", "writes", "total"), ("times", "when"))
    reads, writes, total = (table[key].expression() for key in ("reads", "writes", "total"))
    return StatedSuperstep(
        Superstep(processors, reads, writes, total, table["name"].text()),
        table["times"].expression() if "times" in table else num(1),
        read_when(table, head.parameters),
        node.place,
    )


def _expressions(
    program: SuperstepProgram, processors: Expr
) -> Iterator[tuple[str, Expr, frozenset[str]]]:
    nothing: frozenset[str] = frozenset()
    yield from head_expressions(program.head)
    yield "/processors", processors, nothing
    for stated in program.supersteps:
        step = stated.superstep
        for expr in (step.reads, step.writes, step.total, stated.times):
            yield stated.place, expr, nothing
