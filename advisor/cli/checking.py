"""One run of ``advise check``: read, check, fix where asked, report, choose the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING

from advisor import engine
from advisor.cache import Answer, Answers, Question
from advisor.cli.common import (
    FINDINGS,
    NOTHING_TO_SAY,
    RECURSION_LIMIT,
    STANDARD_STREAM,
    WRONG_USE,
    complain,
    tell_unused,
    watched,
    write_out,
    write_result,
)
from advisor.cli.scope import Excluded, python_files
from advisor.config.effective import Effective, Resolver
from advisor.config.layer import CommandError, system_error
from advisor.edits import unified_diff
from advisor.engine import FileResult
from advisor.files import SourceFile, decode_source, read_bytes
from advisor.finding import NOTHING_SEEN, Coverage, Finding, Remark
from advisor.report.model import Curve, Report, renderer
from advisor.report.style import Style, detect_style
from advisor.source import SourceProblem
from advisor.unread import coverage_of, may_use_arrays
from costdb.records import dataclass, field

if TYPE_CHECKING:
    from advisor.ranking.findings import Judged

_ANOTHER_COMMAND = {
    ".toml": "`advise predict --validate FILE` checks a description",
    ".pam": "`advise predict FILE` reads a process model",
    ".json": "`advise machine validate FILE` checks the profile of a machine",
}
"""What a file is for that is named by hand and holds no Python, by its ending."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a command line asks for, checked.

    Attributes
    ----------
    excluded : callable
        Whether a path is left out; asked about `paths` too under `force_exclude`.
    given : tuple of str
        The names that ``-D`` of the command line gives values to.
    jobs : int or None
        How many processes; None: as many as are worth it.
    """

    paths: tuple[str, ...]
    resolver: Resolver
    excluded: Excluded
    force_exclude: bool
    given: tuple[str, ...]
    fix: bool
    diff: bool
    unsafe_fixes: bool
    output_format: str
    output: str | None
    statistics: bool
    exit_zero: bool
    stdin_filename: str
    jobs: int | None
    baseline: str | None
    write_baseline: str | None

    @property
    def reads_standard_input(self) -> bool:
        """Whether the text to check comes from there."""
        return self.paths == (STANDARD_STREAM,)


@dataclass(frozen=True, slots=True)
class _File:
    """A file that may hold a kernel, or cannot be read."""

    path: str
    effective: Effective
    content: SourceFile | Refusal

    @property
    def source(self) -> SourceFile:
        """The content of a file that could be read."""
        assert isinstance(self.content, SourceFile)
        return self.content

    @property
    def question(self) -> Question:
        """What the cache is asked."""
        return Question(
            self.path, self.source.text, self.effective.options, self.effective.machine_digest
        )


@dataclass(slots=True)
class _Outcome:
    """What has been seen so far in a run."""

    findings: list[Finding] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    judged: dict[str, tuple[Judged, ...]] = field(default_factory=dict)
    effective: dict[str, Effective] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)
    machines: dict[str, None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    diffs: list[str] = field(default_factory=list)
    fixed: int = 0
    failed: bool = False
    looked_into: int = 0
    passed_over: int = 0
    coverage: Coverage = NOTHING_SEEN

    def fail(self, problem: Exception) -> None:
        self.failed = True
        complain(str(problem))

    def add(self, result: FileResult, effective: Effective) -> None:
        self.looked_into += 1
        self.findings += result.findings
        self.remarks += result.remarks
        self.coverage = self.coverage.and_also(result.coverage)
        self.effective[result.path] = effective
        if result.findings:
            self.sources[result.path] = result.source


def run(request: Request, stream: IO[str] | None, environment: Mapping[str, str]) -> int:
    """Carry a request out and return the exit code.

    A file that cannot be read, parsed or fixed costs its one line on standard error and makes
    the exit code 2; the others are still checked.

    Raises
    ------
    CommandError
        When a configuration is wrong, or the baseline.
    """
    outcome = _Outcome()
    files = list(_files(request, outcome))
    for file, found in _answered(files, request):
        try:
            if isinstance(found, Refusal):
                print(found.trace, file=sys.stderr, end="")
                raise CommandError(found.line)
            _one_file(file, found, request, outcome)
        except CommandError as problem:
            outcome.fail(problem)
    _tell_unused(request, outcome)
    if request.write_baseline is not None:
        return _write_baseline(request.write_baseline, outcome)
    if request.baseline is not None:
        _sift(request.baseline, outcome)
    if request.diff:
        write_result("".join(outcome.diffs), request.output)
    else:
        _report(request, outcome, stream, environment)
    if request.fix or request.diff:
        complain(f"{outcome.fixed} {'would be fixed' if request.diff else 'fixed'}")
    return _exit_code(request, outcome)


def _files(request: Request, outcome: _Outcome) -> Iterator[_File]:
    """Yield the files that may hold a kernel, and those that cannot be read."""
    piped = request.reads_standard_input
    if piped:
        paths = [request.stdin_filename]
    else:
        found = python_files(
            request.paths, outcome.fail, request.excluded, force=request.force_exclude
        )
        paths = list(found)
    for path in watched(paths, "files read"):
        if not piped and path.endswith(tuple(_ANOTHER_COMMAND)):
            _tell_other_command(path)
        effective = request.resolver.effective(path)
        outcome.machines[effective.options.machine or ""] = None
        outcome.checked.append(path)
        content = _content(path, effective, piped=piped)
        if content is None:
            outcome.passed_over += 1
            continue
        # python_files knows what is excluded; a name given to standard input went past it
        excluded = piped and request.force_exclude and request.excluded(path)
        if isinstance(content, Refusal) or (
            not excluded and _may_hold_kernels(path, content, effective)
        ):
            yield _File(path, effective, content)
            continue
        outcome.passed_over += not excluded
        outcome.coverage = outcome.coverage.and_also(coverage_of(path, content.text))
        if request.fix and piped:
            write_out(content.text)


def _tell_other_command(path: str) -> None:
    command = next(say for end, say in _ANOTHER_COMMAND.items() if path.endswith(end))
    complain(f"advise: {path}: programs in Python are checked here; {command}")


def _may_hold_kernels(path: str, content: SourceFile, effective: Effective) -> bool:
    return bool(effective.options.observed) or engine.needs_reading(content.text, path)


def _content(path: str, effective: Effective, *, piped: bool) -> SourceFile | Refusal | None:
    """Return what a file holds; None for one that can be told from its bytes to hold no kernel."""
    try:
        if piped:
            return decode_source(path, sys.stdin.buffer.read() if sys.stdin is not None else b"")
        data = read_bytes(path)
        unmarked = not effective.options.observed and not engine.needs_decoding(data, path)
        if unmarked and path.endswith(".py") and not may_use_arrays(data):
            return None
        return decode_source(path, data)
    except SourceProblem as problem:
        return Refusal(str(problem))
    except OSError as error:
        return Refusal(str(system_error(error, path)))


def _answered(files: Sequence[_File], request: Request) -> Iterator[tuple[_File, Answer | Refusal]]:
    """Yield files with their answers, in their order; from the cache where it has them."""
    kept = request.resolver.answers
    known = [_known(file, kept) for file in files]
    tasks = [file.question for file, found in zip(files, known, strict=True) if found is None]
    fresh = answers(tasks, request.jobs)
    for file, found in watched(list(zip(files, known, strict=True)), "kernel files checked"):
        if found is not None:
            yield file, found
            continue
        answer = next(fresh)
        if kept is not None and isinstance(answer, Answer):
            kept.keep(file.question, answer)
        yield file, answer


def _known(file: _File, kept: Answers | None) -> Answer | Refusal | None:
    if isinstance(file.content, Refusal):
        return file.content
    return None if kept is None else kept.find(file.question)


def _one_file(file: _File, answer: Answer, request: Request, outcome: _Outcome) -> None:
    source, options = file.source, file.effective.options
    outcome.names |= answer.names
    result = FileResult(
        file.path, source.text, answer.findings, answer.remarks, coverage=answer.coverage
    )
    if request.fix or request.diff:
        from advisor.cli.fixing import apply_fixes, write_back

        fixed = apply_fixes(result, options, unsafe=request.unsafe_fixes)
        if request.diff:
            outcome.diffs.append(unified_diff(file.path, source.text, fixed.result.source))
        else:
            write_back(fixed, source, to_output=request.reads_standard_input)
        outcome.fixed += len(fixed.applied)
        result = fixed.result
    outcome.add(result, file.effective)


def _tell_unused(request: Request, outcome: _Outcome) -> None:
    """Say which names of ``-D`` nothing has; a file that could not be read may have them."""
    if outcome.failed or not outcome.looked_into:
        return
    tell_unused(request.given, outcome.names)


def _write_baseline(file: str, outcome: _Outcome) -> int:
    from advisor.baseline import to_text

    if outcome.failed:
        complain(f"advise: {file}: not written, because not every file could be checked")
        return WRONG_USE
    write_result(to_text(outcome.findings, file), file)
    complain(f"{len(outcome.findings)} accepted in {file}")
    return NOTHING_TO_SAY


def _sift(file: str, outcome: _Outcome) -> None:
    from advisor.baseline import BaselineError, read_baseline, sift

    try:
        baseline = read_baseline(file)
    except BaselineError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise system_error(error, file) from error
    sifted = sift(outcome.findings, baseline, outcome.checked)
    outcome.findings[:] = sifted.new
    if baseline.dated and (sifted.stale or sifted.lost):
        complain(
            f"{file}: written by an earlier release, whose paths counted from the folder that it"
            f" ran in: {len(sifted.stale) + sifted.lost} of {len(baseline.entries)} entries fit"
            " nothing; --write-baseline writes it anew"
        )
        return
    for entry in sifted.stale:
        complain(
            f"{file}: stale: {entry.code} in kernel {entry.kernel} of {entry.path} is no longer"
            " found; --write-baseline takes it out"
        )


def _report(
    request: Request, outcome: _Outcome, stream: IO[str] | None, environment: Mapping[str, str]
) -> None:
    report = Report(
        ", ".join(filter(None, outcome.machines)),
        tuple(outcome.findings),
        tuple(outcome.remarks),
        outcome.sources,
        outcome.failed,
        outcome.looked_into,
        outcome.passed_over,
        outcome.coverage,
        lambda finding: outcome.effective[finding.path].fails(finding),
        partial(_curves, outcome),
    )
    if request.statistics:
        from advisor.report.full import render_statistics

        text = render_statistics(report, as_json=request.output_format == "json")
    else:
        style = detect_style(stream, environment) if request.output is None else Style()
        text = renderer(request.output_format)(report, style)
    if request.fix and request.reads_standard_input and request.output is None:
        if sys.stderr is not None:
            sys.stderr.write(text)
    else:
        write_result(text, request.output)


def _curves(outcome: _Outcome, finding: Finding) -> Sequence[Curve]:
    """Return how a gain goes with sizes; its file is analysed again, as findings keep no prices."""
    from advisor.cli.commands.explain import judged_in
    from advisor.report.curves import curves_of

    path = finding.path
    if path not in outcome.judged:
        options = outcome.effective[path].options
        outcome.judged[path] = judged_in(path, outcome.sources[path], options)
    named = finding.code, finding.span, finding.title
    return next(
        (
            curves_of(one)
            for one in outcome.judged[path]
            if named == (one.finding.code, one.finding.span, one.finding.title)
        ),
        (),
    )


def _exit_code(request: Request, outcome: _Outcome) -> int:
    if outcome.failed:
        return WRONG_USE
    if request.diff:
        found = any(outcome.diffs)
    else:
        found = any(outcome.effective[f.path].fails(f) for f in outcome.findings)
    return FINDINGS if found and not request.exit_zero else NOTHING_TO_SAY


# A worker takes some 0.4 s to start; a kernel takes a tenth of that.
FEWEST_FILES = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file has no answer; the whole line, and where a bug of ours came up."""

    line: str
    trace: str = ""


def answer(task: Question) -> Answer | Refusal:
    """Return what the engine finds, or its refusal as one line."""
    from costdb.machines import MachineError

    try:
        result = engine.check_source(task.path, task.source, task.options)
    except SourceProblem as problem:
        return Refusal(str(problem))
    except MachineError as error:
        return Refusal(f"advise: {error}")
    except Exception:
        # a bug of ours costs one file, not the run
        from traceback import format_exc

        told = f"advise: internal error in {task.path}: please report it with the lines above"
        return Refusal(told, format_exc())
    return Answer(result.findings, result.remarks, result.names, result.coverage)


def answers(tasks: Sequence[Question], jobs: int | None) -> Iterator[Answer | Refusal]:
    """Yield the answers in the order of the tasks.

    Parameters
    ----------
    tasks : sequence of Question
    jobs : int or None
        How many processes; None: as many as are worth it.
    """
    workers = _worth(len(tasks)) if jobs is None else min(jobs, len(tasks))
    done = 0
    if workers > 1:
        from concurrent.futures.process import BrokenProcessPool

        try:
            for found in _side_by_side(tasks, workers):
                yield found
                done += 1
        except (BrokenProcessPool, OSError, NotImplementedError):
            # no semaphores here, no memory left, or somebody ended a worker: go on alone
            pass
    yield from map(answer, tasks[done:])


def _side_by_side(tasks: Sequence[Question], workers: int) -> Iterator[Answer | Refusal]:
    # imported here: one file in an editor or a hook must not pay for it
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # not "fork": threads of whoever imported this would be copied in mid-air
    context = multiprocessing.get_context("spawn")
    with (
        _safe_path(),
        ProcessPoolExecutor(workers, context, initializer=_begin_work) as pool,
    ):
        try:
            yield from pool.map(answer, tasks)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep new processes from importing out of the current folder, whose files are only read."""
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _worth(count: int) -> int:
    if count < FEWEST_FILES:
        return 1
    return min(_processors(), count // (FEWEST_FILES // 2))


def _processors() -> int:
    # what this process may use, not what the machine has
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin_work() -> None:
    """Set a worker up: the parent is to say that the user has interrupted the run."""
    import signal
    import sys

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setrecursionlimit(RECURSION_LIMIT)
