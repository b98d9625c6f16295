"""What ``# advise:`` comments say of single statements, by the lines they speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.frontend.advise_comments.directives import AnyDirective, Probability, StatedCost, Trip
from advisor.source import SourceProblem
from costdb.expr import Expr, ExprError, parse


@dataclass(frozen=True, slots=True)
class Pragmas:
    """Trips, probabilities and costs (in microseconds), each by line."""

    trips: Mapping[int, Expr]
    probabilities: Mapping[int, Expr]
    costs_us: Mapping[int, Expr]


def read_pragmas(path: str, directives: Sequence[AnyDirective]) -> Pragmas:
    """Return the pragmas among directives.

    Raises
    ------
    SourceProblem
        For an expression that does not parse.
    """
    alone = {directive.line for directive in directives if directive.own_line}
    trips: dict[int, Expr] = {}
    probabilities: dict[int, Expr] = {}
    costs: dict[int, Expr] = {}
    for directive in directives:
        line = directive.line
        if directive.own_line:
            # several directives may stand above one statement
            while line in alone:
                line += 1
        match directive:
            case Trip():
                trips[line] = _expression(path, directive.count, directive)
            case Probability():
                probabilities[line] = _expression(path, directive.probability, directive)
            case StatedCost():
                costs[line] = _expression(path, directive.microseconds, directive)
            case _:
                pass
    return Pragmas(trips, probabilities, costs)


def spoken_of(table: Mapping[int, Expr], lines: range) -> Expr | None:
    """Return what the pragmas say of a statement whose header takes up some lines."""
    return next((table[line] for line in lines if line in table), None)


def _expression(path: str, text: str, directive: AnyDirective) -> Expr:
    try:
        return parse(text)
    except ExprError as error:
        raise SourceProblem(path, directive.line, directive.column, str(error)) from error
