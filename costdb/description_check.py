"""The full check of a description, of whatever kind, for people who write one.

A prediction does not need it and never imports it: reading alone keeps wrong numbers out.
"""

from __future__ import annotations

from pathlib import Path

from costdb import pgas, smp
from costdb.documents import load_description
from costdb.phases.application import ApplicationError
from costdb.phases.checking import application_problems, schema_problems
from costdb.phases.document import read_content, read_toml
from costdb.phases.reading import PHASES
from costdb.subject import SubjectError

_SCHEMAS = {
    "supersteps": Path(smp.__path__[0], "supersteps.schema.json"),
    "references": Path(pgas.__path__[0], "references.schema.json"),
}


def description_problems(path: str | Path) -> tuple[str, ...]:
    """Return what is wrong with a description, one line each; nothing when it is right.

    What breaks the JSON Schema of its kind, and else what cannot be read; of phases also every
    choice of words for which a name is undefined.

    Raises
    ------
    SubjectError
        The file cannot be read at all.
    """
    try:
        document = read_toml(read_content(path), str(path))
        kind = document.get("kind", PHASES)
        if kind == PHASES:
            return application_problems(path)
    except ApplicationError as error:
        raise SubjectError(str(error)) from error
    schema = _SCHEMAS.get(kind) if isinstance(kind, str) else None
    if schema is not None and (broken := schema_problems(document, schema, str(path))):
        return broken
    try:
        load_description(path)
    except SubjectError as error:
        return (str(error),)
    return ()
