"""``advise predict``: how long a program takes, and which parts of it take how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from advisor.cli import options
from advisor.cli.common import NOTHING_TO_SAY, TEXT, complain, watched, write_problems, write_shown
from advisor.cli.options import option
from advisor.config.files import wrong_use

if TYPE_CHECKING:
    from costdb.choosing import Choice


def predict(
    files: options.Subjects,
    machine: options.MachineOfSubject = None,
    define: Annotated[
        list[str] | None, option("-D --define", "Bind a parameter.", "NAME=VALUE")
    ] = None,
    ranks: options.Ranks = None,
    kernel: Annotated[
        str | None,
        option(
            "--kernel", "Which kernel, or function of an MPI program, of a Python file.", "NAME"
        ),
    ] = None,
    measure: options.Measure = False,
    validate: Annotated[
        bool, option("--validate", "Only say what is wrong with descriptions.")
    ] = False,
    output_format: options.TextJsonOrPage = TEXT,
    output: options.ResultFile = None,
) -> int:
    """Predict the run time of a model, a description or a kernel."""
    if validate:
        return _validate(files, output_format, output)
    from advisor.cli import subjects
    from advisor.report.prediction import PredictionReport, as_json, as_text
    from costdb.choosing import predict
    from costdb.evaluate import Missing

    given = subjects.parse_given(define or (), ranks)
    opened = subjects.open_files(files, machine, kernel, given)
    given, configured = subjects.with_configured(opened, files[0], given)
    with subjects.measurements(opened, run=measure) as known:
        found = predict(opened.subject, given, known)
    formula = subjects.formula_of(opened)
    told = subjects.read_in(opened)
    origins = configured if told is None else (*configured, *told.origins(given))
    if isinstance(found, Missing):
        raise subjects.lacking(found)
    name = None if opened.machine is None else opened.machine.name
    cautions = told.cautions(opened.machine, found.bindings) if told and opened.machine else ()
    report = PredictionReport(opened.title, name, formula, found, origins, cautions)
    write_shown(report, as_text, as_json, output_format, output)
    return NOTHING_TO_SAY


def _validate(files: list[str], output_format: str, output: str | None) -> int:
    from advisor.cli.subjects import DESCRIPTION
    from costdb.documents import description_problems

    problems: list[str] = []
    for file in files:
        if not file.endswith(DESCRIPTION):
            raise wrong_use(f"{file}: --validate is for descriptions ({DESCRIPTION})")
        problems += description_problems(file)
    return write_problems(problems, {"files": files}, output_format, output)


def choose(
    files: options.Subjects,
    over: Annotated[
        list[str] | None,
        option(
            "--over",
            "What to choose: PX,PY or P=1..64 or machine=t3e,sp2; may be given again.",
            "NAMES",
        ),
    ] = None,
    machine: options.MachineOfSubject = None,
    define: Annotated[
        list[str] | None, option("-D --define", "Bind another parameter.", "NAME=VALUE")
    ] = None,
    where: Annotated[
        str | None, option("--where", 'Only these, as "PX*PY == 64 and PX <= 8".', "EXPR")
    ] = None,
    best_per: Annotated[
        str | None, option("--best-per", "Only the best for each value of NAME.", "NAME")
    ] = None,
    top: Annotated[int | None, option("--top", "Only the K best.", "K", min=1)] = None,
    ranks: options.Ranks = None,
    kernel: Annotated[
        str | None,
        option(
            "--kernel",
            "Which kernel of a Python file, or which functions of it, by commas.",
            "NAME",
        ),
    ] = None,
    measure: options.Measure = False,
    built: Annotated[
        bool, option("--built", "By the program that `advise build` writes of a kernel.")
    ] = False,
    output_format: options.TextJsonOrPage = TEXT,
    output: options.ResultFile = None,
) -> None:
    """Rank choices of parameters, fastest first."""
    from advisor.cli import subjects
    from advisor.cli.subjects import MACHINE
    from advisor.report.prediction import ChoicesReport, choices_as_json, choices_as_text
    from costdb.choosing import rank
    from costdb.evaluate import Missing
    from costdb.machines import machine_names

    given = subjects.parse_given(define or (), ranks)
    alternatives = (len(files) > 1 and files[0].endswith(".py")) or "," in (kernel or "")
    # what is to be chosen among several programs need not be said
    names = subjects.parse_over(over or (["program"] if alternatives else ()))
    if not names:
        raise wrong_use("--over is missing: name the parameters to choose, as --over PX,PY")
    if best_per is not None and best_per not in names:
        raise wrong_use(f"--best-per {best_per}: not among those of --over ({', '.join(names)})")
    condition = subjects.parse_where(where)
    if MACHINE in names:
        names = {**names, MACHINE: names[MACHINE] or machine_names()}
    opened = subjects.open_on(names.get(MACHINE) or (), files, machine, kernel, given)
    opened = subjects.as_built(opened) if built else opened
    given, _ = subjects.with_configured(opened, files[0], given, names)
    with subjects.measurements(opened, run=measure) as known:

        def left_out(why: str) -> None:
            complain(f"advise: {why}")

        ranked = rank(opened.subject, names, given, condition, watched, left_out, known)
    if isinstance(ranked, Missing):
        raise subjects.lacking(ranked)
    chosen = ranked if best_per is None else _best_per(best_per, ranked)
    report = ChoicesReport(
        title=opened.title,
        machine=None if opened.machine is None else opened.machine.name,
        given={**given, **subjects.numbers_of(given)},
        choices=chosen[:top],
        considered=len(ranked),
    )
    write_shown(report, choices_as_text, choices_as_json, output_format, output)


def _best_per(name: str, ranked: Sequence[Choice]) -> Sequence[Choice]:
    best: dict[object, Choice] = {}
    for choice in ranked:
        best.setdefault(choice.bindings[name], choice)
    return tuple(best.values())
