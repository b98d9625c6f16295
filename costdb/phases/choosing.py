"""Which choice of an application is fastest: every allowed binding of some parameters, ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from costdb import choosing
from costdb.choosing import Choice
from costdb.estimate import Estimate, Missing
from costdb.expr import Expr
from costdb.machines import Machine
from costdb.phases.application import Application, ApplicationError, Chosen
from costdb.phases.pricing import price_words
from costdb.phases.subject import DescribedSubject
from costdb.subject import SubjectError


def predict(
    application: Application, machine: Machine, choices: Mapping[str, Chosen]
) -> Estimate | Missing:
    """Return the predicted run time for one choice of all parameters.

    Raises
    ------
    ApplicationError
        A choice is not allowed, or a parameter is not bound.
    """
    try:
        found = choosing.predict(_subject(application, machine), choices)
    except SubjectError as error:
        raise ApplicationError(str(error)) from error
    return found if isinstance(found, Missing) else found.estimate


def rank_choices(
    application: Application,
    machine: Machine,
    over: Sequence[str],
    fixed: Mapping[str, Chosen],
    where: Expr | None = None,
) -> tuple[Choice, ...] | Missing:
    """Return every allowed choice, fastest first.

    Parameters
    ----------
    application : Application
    machine : Machine
    over : sequence of str
        Parameters to vary: words over all allowed ones, numbers from their minimum to their
        maximum (powers of two only, where the description says so).
    fixed : mapping
        The other parameters.
    where : Expr, optional
        Over number parameters and sizes; choices where it is 0 are left out, for example
        ``PX*PY == 64``.

    Returns
    -------
    tuple of Choice or Missing
        Sorted by predicted time; ties in the order of the description. Missing as soon as one
        choice cannot be priced.

    Raises
    ------
    ApplicationError
        A name is unknown, a range has no end, or no choice is allowed.
    """
    if len(set(over)) != len(over):
        raise ApplicationError(f"{application.origin}: a parameter is named twice")
    try:
        return choosing.rank(_subject(application, machine), dict.fromkeys(over), fixed, where)
    except SubjectError as error:
        raise ApplicationError(str(error)) from error


def _subject(application: Application, machine: Machine) -> DescribedSubject:
    return DescribedSubject(
        application, lambda words, chosen: price_words(application, chosen, words), machine
    )
