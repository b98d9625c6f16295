"""Applications read, priced and chosen as the commands do it, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from costdb import choosing
from costdb.choosing import Choice, Chosen
from costdb.documents import DescribedSubject
from costdb.evaluate import Estimate, Missing, Priced
from costdb.expr import Expr
from costdb.machines import Machine
from costdb.phases.application import Application, application_of, bind, price_words
from costdb.phases.document import read_content, read_toml


def load_application(path: str | Path) -> Application:
    return parse_application(read_content(path), str(path))


def parse_application(content: bytes, origin: str) -> Application:
    return application_of(read_toml(content, origin), origin)


def price_application(
    application: Application, machine: Machine, choices: Mapping[str, Chosen]
) -> Priced | Missing:
    return price_words(application, machine, bind(application, choices).words)


def predict(
    application: Application, machine: Machine, choices: Mapping[str, Chosen]
) -> Estimate | Missing:
    found = choosing.predict(_subject(application, machine), choices)
    return found if isinstance(found, Missing) else found.estimate


def rank_choices(
    application: Application,
    machine: Machine,
    over: Sequence[str],
    fixed: Mapping[str, Chosen],
    where: Expr | None = None,
) -> tuple[Choice, ...] | Missing:
    return choosing.rank(_subject(application, machine), dict.fromkeys(over), fixed, where)


def _subject(application: Application, machine: Machine) -> DescribedSubject:
    return DescribedSubject(
        application, lambda words, chosen: price_words(application, chosen, words), machine
    )
