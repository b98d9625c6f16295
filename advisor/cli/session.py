"""One run of ``advise check``: read, check, fix where asked, report, choose the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO

from advisor import engine
from advisor.cli.common import (
    FINDINGS,
    NOTHING_TO_SAY,
    STANDARD_STREAM,
    WRONG_USE,
    CommandError,
    complain,
    system_error,
    write_out,
    write_result,
    wrong_use,
)
from advisor.cli.fix import SAFE, SAFE_AND_UNSAFE, Fixed, FixError, fix_until_stable
from advisor.cli.paths import python_files
from advisor.edits import unified_diff
from advisor.engine import FileResult, Options
from advisor.files import SourceFile, decode_source, read_source, replace_file
from advisor.finding import Finding, Remark
from advisor.report.model import NEEDS_DOCUMENTATION, Report, renderer
from advisor.report.style import detect_style
from advisor.source import SourceProblem


@dataclass(frozen=True, slots=True)
class Request:
    """What a command line asks for, checked."""

    paths: tuple[str, ...]
    options: Options
    fix: bool
    diff: bool
    unsafe_fixes: bool
    output_format: str
    output: str | None
    statistics: bool
    exit_zero: bool
    fail_above: float | None
    stdin_filename: str


@dataclass(slots=True)
class _Outcome:
    """What has been seen so far in a run."""

    findings: list[Finding] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    diffs: list[str] = field(default_factory=list)
    fixed: int = 0
    failed: bool = False

    def fail(self, problem: Exception) -> None:
        self.failed = True
        complain(str(problem))

    def add(self, result: FileResult) -> None:
        self.findings += result.findings
        self.remarks += result.remarks
        if result.findings:
            self.sources[result.path] = result.source


def run(request: Request, stream: IO[str], environment: Mapping[str, str]) -> int:
    """Carry a request out and return the exit code.

    A file that cannot be read, parsed or fixed costs its one line on standard error and makes
    the exit code 2; the others are still checked.
    """
    outcome = _Outcome()
    for path, file in _sources(request, outcome):
        try:
            _one_file(path, file, request, outcome)
        except (SourceProblem, FixError, CommandError) as problem:
            outcome.fail(problem)
    if request.diff:
        write_result("".join(outcome.diffs), request.output)
    else:
        _report(request, outcome, stream, environment)
    if request.fix or request.diff:
        _count_fixes(request, outcome)
    return _exit_code(request, outcome)


def _sources(request: Request, outcome: _Outcome) -> Iterator[tuple[str, SourceFile]]:
    if request.paths == (STANDARD_STREAM,):
        try:
            data = sys.stdin.buffer.read() if sys.stdin is not None else b""
            yield request.stdin_filename, decode_source(request.stdin_filename, data)
        except SourceProblem as problem:
            outcome.fail(problem)
        return
    for path in python_files(request.paths, outcome.fail):
        try:
            yield path, read_source(path)
        except SourceProblem as problem:
            outcome.fail(problem)
        except OSError as error:
            outcome.fail(system_error(error, path))


def _one_file(path: str, file: SourceFile, request: Request, outcome: _Outcome) -> None:
    def check(text: str) -> FileResult:
        from costdb.machines import MachineError

        try:
            return engine.check_source(path, text, request.options)
        except MachineError as error:
            raise wrong_use(str(error)) from error

    if not engine.needs_reading(file.text):
        fixed = Fixed(FileResult(path, file.text, (), ()), ())
    else:
        fixed = Fixed(check(file.text), ())
        if request.fix or request.diff:
            allowed = SAFE_AND_UNSAFE if request.unsafe_fixes else SAFE
            fixed = fix_until_stable(fixed.result, check, allowed)
    if request.diff:
        outcome.diffs.append(unified_diff(path, file.text, fixed.result.source))
    elif request.fix:
        _write_fixed(path, file, fixed, request)
    outcome.fixed += len(fixed.applied)
    outcome.add(fixed.result)


def _write_fixed(path: str, file: SourceFile, fixed: Fixed, request: Request) -> None:
    try:
        data = file.encode(fixed.result.source)
    except UnicodeEncodeError as error:
        raise wrong_use(f"{path}: the fixed text does not fit into {file.encoding}") from error
    if request.paths == (STANDARD_STREAM,):
        write_out(fixed.result.source)
    elif fixed.applied:
        try:
            replace_file(path, data)
        except OSError as error:
            raise system_error(error, path) from error


def _report(
    request: Request, outcome: _Outcome, stream: IO[str], environment: Mapping[str, str]
) -> None:
    report = Report(
        request.options.machine or "",
        tuple(outcome.findings),
        tuple(outcome.remarks),
        outcome.sources,
        _documentation() if request.output_format in NEEDS_DOCUMENTATION else {},
    )
    if request.statistics:
        from advisor.report import statistics

        text = statistics.render(report, as_json=request.output_format == "json")
    else:
        plain: Mapping[str, str] = {**environment, "NO_COLOR": "1"}
        style = detect_style(stream, environment if request.output is None else plain)
        text = renderer(request.output_format)(report, style)
    if request.fix and request.paths == (STANDARD_STREAM,) and request.output is None:
        sys.stderr.write(text)
    else:
        write_result(text, request.output)


def _documentation() -> Mapping[str, str]:
    from advisor.cli.rule import page
    from advisor.cli.rules import installed_rules

    return {rule.code: page(rule) for rule in installed_rules()}


def _count_fixes(request: Request, outcome: _Outcome) -> None:
    done = "would be fixed" if request.diff else "fixed"
    complain(f"{outcome.fixed} {done}")


def _exit_code(request: Request, outcome: _Outcome) -> int:
    if outcome.failed:
        return WRONG_USE
    if request.diff:
        found = any(outcome.diffs)
    elif request.fail_above is None:
        found = bool(outcome.findings)
    else:
        found = any(f.prediction.speedup > request.fail_above for f in outcome.findings)
    return FINDINGS if found and not request.exit_zero else NOTHING_TO_SAY
