"""What is done with facts once a program has ended: advice on them, and keeping them."""

from __future__ import annotations

import atexit
import json
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar, get_args

from advisor import engine
from advisor.codec import encode
from advisor.compiler.record import gathered, guarded, is_of_interest, is_taken, log
from advisor.engine import FileResult
from advisor.files import read_source
from advisor.finding import Finding, Remark
from advisor.observed import FUNCTION, MESSAGE, SEEN, Seen, SeenMessages
from advisor.source import SourceProblem
from advisor.transform_registry import program_transforms
from costdb.launch.space import ours
from costdb.records import dataclass, grouped, replace

Facts = Sequence[tuple[str, Seen]]
"""Functions that were seen, with their files."""
Traffic = Sequence[tuple[str, SeenMessages]]
"""Messages that were seen, with the files whose lines send or receive them."""

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class Advice:
    """What there is to say on functions that were seen.

    Attributes
    ----------
    machine : str
        The machines that it is for, by commas.
    results : tuple of FileResult
        Findings and remarks on those functions alone.
    problems : tuple of str
        One line for each file on which there is none, saying why.
    """

    machine: str
    results: tuple[FileResult, ...]
    problems: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the files."""
        return tuple(finding for result in self.results for finding in result.findings)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All remarks, in the order of the files."""
        return tuple(remark for result in self.results for remark in result.remarks)


def advise_on(facts: Facts, machine: str | None = None, traffic: Traffic = ()) -> Advice:
    """Return the advice on what was seen, by the configuration near its files.

    Parameters
    ----------
    facts : sequence of (str, Seen)
    machine : str, optional
        Goes over the configuration and ``ADVISE_MACHINE``.
    traffic : sequence of (str, SeenMessages)
        Of files with messages everything that communicates is advised on.
    """
    from advisor.config.effective import Resolver
    from advisor.config.files import CommandError, ConfigError, Layer, configurations
    from costdb.machines import MachineError

    chosen = machine or os.environ.get("ADVISE_MACHINE") or None
    results: list[FileResult] = []
    problems: list[str] = []
    machines: dict[str, None] = {}
    resolver: Resolver | None = None
    functions, messages = by_file(facts), by_file(traffic)
    for file in dict.fromkeys((*functions, *messages)):
        seen, sent = functions.get(file, ()), messages.get(file, ())
        if not seen and not is_of_interest(file):
            continue
        shown = min(os.path.relpath(file), file, key=len)
        try:
            resolver = resolver or Resolver(configurations(Layer(machine=chosen)), None)
            options = resolver.effective(file).options
            options = replace(options, observed=seen, messages=sent)
            machines[options.machine or ""] = None
            result = engine.check_source(shown, read_source(file).text, options)
        except (SourceProblem, MachineError, CommandError, ConfigError, OSError) as problem:
            problems.append(str(problem))
            continue
        problems += (one.told(shown) for one in result.failures)
        names = {one.function.rpartition(".")[2] for one in seen}
        results.append(_only(result, names, programs=bool(sent)))
    return Advice(", ".join(machines), tuple(results), tuple(dict.fromkeys(problems)))


def by_file(facts: Iterable[tuple[str, _Fact]]) -> Mapping[str, tuple[_Fact, ...]]:
    """Return facts by the real path of their files."""
    found = grouped((os.path.realpath(file), seen) for file, seen in facts)
    return {file: tuple(many) for file, many in found.items()}


def _only(result: FileResult, names: Iterable[str], *, programs: bool) -> FileResult:
    """Return what is said of some kernels; with `programs` also what rules for them say."""
    wanted = frozenset(names)
    codes = {rule.code for rule in program_transforms()} if programs else frozenset[str]()
    return replace(
        result,
        findings=tuple(f for f in result.findings if f.kernel in wanted or f.code in codes),
        remarks=tuple(r for r in result.remarks if r.kernel in wanted),
    )


def store(facts: Facts, program: str, traffic: Traffic = ()) -> int:
    """Keep facts for later runs of the linter, and return how many.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    from costdb.store.database import add_observations, writing

    path = os.path.realpath
    rows = [(path(file), seen.function, {SEEN: encode(seen)}) for file, seen in facts]
    messages = [
        (path(file), f"{sent.line}:{sent.method}", {SEEN: encode(sent)}) for file, sent in traffic
    ]
    if rows or messages:
        with writing() as connection:
            add_observations(connection, program, FUNCTION, rows)
            add_observations(connection, program, MESSAGE, messages, whole=True)
    return len(rows)


# What becomes of the compiler's facts when the program ends: warnings, JSON lines, the store.
#
# Nothing is analysed while the program compiles or runs.


VARIABLE = "ADVISE_NUMBA"
Form = Literal["warnings", "json-lines", "store"]
FORMS: tuple[str, ...] = get_args(Form)
_OFF = frozenset(("", "0", "off", "no", "false"))
_ON = frozenset(("1", "on", "yes", "true"))
_registered: list[int] = []


class AdviceWarning(UserWarning):
    """A finding on a compiled function, at the line of the source that it is about."""


def wish(text: str) -> tuple[str, str] | None:
    """Return what ``ADVISE_NUMBA`` asks for: a form, and the file of ``json-lines=FILE``, or none.

    ``1`` means warnings. None stands for nothing, as does another word, which is logged.
    """
    form, _, file = text.strip().partition("=")
    if form.lower() in _OFF:
        return None
    if form.lower() in _ON:
        return "warnings", ""
    if form in FORMS and not (file and form != "json-lines"):
        return form, file
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
    wanted = wish(os.environ.get(VARIABLE, "1"))
    if wanted is not None:
        report(*wanted)


def report(form: str, file: str = "") -> None:
    """Report all facts gathered so far; an error of ours is logged, not raised.

    Parameters
    ----------
    form : {"warnings", "json-lines", "store"}
    file : str
        Where JSON lines go, added at its end; empty: standard error.
    """
    # here the program has imported what it likes, and the analysis is still to be imported
    with guarded("reporting on compiled functions"), ours():
        facts = gathered()
        if not facts:
            return
        if form == "store":
            store(facts, " ".join(sys.argv[:1]))
            return
        advice = advise_on(facts)
        for problem in advice.problems:
            log.warning("%s", problem)
        if form == "warnings":
            from advisor.report.model import headline

            for finding in advice.findings:
                message = f"{finding.code} {headline(finding)}"
                line = finding.span.start_line
                warnings.warn_explicit(message, AdviceWarning, finding.path, line)
            return
        from advisor.report.continuous import finding_document

        lines = [json.dumps(finding_document(one), allow_nan=False) for one in advice.findings]
        text = "".join(f"{line}\n" for line in lines)
        if not file:
            sys.stderr.write(text)
            return
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text)
