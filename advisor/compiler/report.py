"""What becomes of the compiler's facts when the program ends: warnings, JSON lines, the store.

Nothing is analysed while the program compiles or runs.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import warnings
from typing import Literal, get_args

from advisor.compiler.record import gathered, guarded, is_taken, log
from costdb.launch.space import ours
from costdb.records import dataclass

VARIABLE = "ADVISE_NUMBA"
Form = Literal["warnings", "json-lines", "store"]
FORMS: tuple[str, ...] = get_args(Form)
_OFF = frozenset(("", "0", "off", "no", "false"))
_ON = frozenset(("1", "on", "yes", "true"))
_registered: list[int] = []


class AdviceWarning(UserWarning):
    """A finding on a compiled function, at the line of the source that it is about."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How to report.

    Attributes
    ----------
    form : {"warnings", "json-lines", "store"}
    file : str
        Where JSON lines go, added at its end; empty: standard error.
    """

    form: str
    file: str = ""


def wish(text: str) -> Wish | None:
    """Return what ``ADVISE_NUMBA`` asks for: a form, or ``json-lines=FILE``; None for nothing.

    ``1`` means warnings. Another word is logged and means nothing.
    """
    form, _, file = text.strip().partition("=")
    if form.lower() in _OFF:
        return None
    if form.lower() in _ON:
        return Wish("warnings")
    if form in FORMS and not (file and form != "json-lines"):
        return Wish(form, file)
    log.warning("advise: %s=%s: expected 1, 0, %s", VARIABLE, text, ", ".join(FORMS))
    return None


def report_at_exit() -> None:
    """Report when this process ends, once, as the environment says; warnings unless it does."""
    if os.getpid() in _registered:
        return
    _registered.append(os.getpid())
    atexit.register(_report_own, os.getpid())


def _report_own(process: int) -> None:
    # a forked child inherits the registration, and what its parent gathered
    if process != os.getpid() or is_taken():
        return
    text = os.environ.get(VARIABLE)
    wanted = Wish("warnings") if text is None else wish(text)
    if wanted is not None:
        report(wanted)


def report(wanted: Wish) -> None:
    """Report all facts gathered so far; an error of ours is logged, not raised."""
    # here the program has imported what it likes, and the analysis is still to be imported
    with guarded("reporting on compiled functions"), ours():
        facts = gathered()
        if not facts:
            return
        if wanted.form == "store":
            from advisor.compiler.advice import store

            store(facts, " ".join(sys.argv[:1]))
            return
        from advisor.compiler.advice import advise_on

        advice = advise_on(facts)
        for problem in advice.problems:
            log.warning("%s", problem)
        if wanted.form == "warnings":
            from advisor.report.rows import headline

            for finding in advice.findings:
                message = f"{finding.code} {headline(finding)}"
                line = finding.span.start_line
                warnings.warn_explicit(message, AdviceWarning, finding.path, line)
            return
        _write_lines(wanted.file, [_line(finding) for finding in advice.findings])


def _line(finding: object) -> str:
    from advisor.finding import Finding
    from advisor.report.json_report import finding_document

    assert isinstance(finding, Finding)
    return json.dumps(finding_document(finding), allow_nan=False) + "\n"


def _write_lines(file: str, lines: list[str]) -> None:
    if not file:
        sys.stderr.write("".join(lines))
        return
    from pathlib import Path

    with Path(file).open("a", encoding="utf-8") as stream:
        stream.write("".join(lines))
