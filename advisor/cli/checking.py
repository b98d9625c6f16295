"""One run of ``advise check``: read, check, fix where asked, report, choose the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from advisor import engine
from advisor.cache import Question
from advisor.cli.common import (
    FINDINGS,
    NOTHING_TO_SAY,
    STANDARD_STREAM,
    WRONG_USE,
    be_able_to_read,
    complain,
    manner,
    note,
    tell_unused,
    text_style,
    watched,
    write_out,
    write_result,
)
from advisor.cli.scope import Scope, python_files
from advisor.config.effective import Effective
from advisor.config.files import CommandError, NoMachineError, shown_path, system_error, using
from advisor.engine import FileResult
from advisor.files import SourceFile, decode_source, read_bytes
from advisor.finding import NOTHING_SEEN, Coverage, Finding, NotUnderstood, Remark
from advisor.frontend.prefilter import OUTSIDE, SIZES, coverage_of, may_use_arrays, not_read
from advisor.report.model import UNSAFE_FIXES, Curve, Report, fix_option, renderer
from advisor.source import (
    NOTEBOOK,
    NotPython,
    SourceProblem,
    cell_line,
    cells_of,
    file_and_cell,
    on_file,
    placed,
    placed_problem,
    unified_diff,
)
from costdb.records import dataclass, field, nearest, replace

_MOST_NAMES = 4
_IDENTITY = ("path", "code", "span", "title")
"""What a finding of a file is known by."""
if TYPE_CHECKING:
    from advisor.ranking.findings import Judged

_ANOTHER_COMMAND = {
    ".toml": "`advise predict --validate FILE` checks a description",
    ".pam": "`advise predict FILE` reads a process model",
    ".json": "`advise machine validate FILE` checks the profile of a machine",
}
"""What a file is for that is named by hand and holds no Python, by its ending."""

_OF_FILES = frozenset(("github", "gitlab", "sarif", "junit", "rdjson"))
"""Formats whose readers know lines of files, and no cells."""
_OF_CELLS = frozenset(("json", "json-lines"))

_Told = TypeVar("_Told", Finding, Remark, NotUnderstood)


@dataclass(frozen=True, slots=True)
class _File:
    """A file that may hold a kernel, or cannot be read."""

    path: str
    effective: Effective
    content: SourceFile | Refusal

    @property
    def question(self) -> Question:
        """What the cache is asked of a file that could be read."""
        assert isinstance(self.content, SourceFile)
        options, digest = self.effective.options, self.effective.machine_digest
        return Question(self.path, self.content.text, options, digest)


@dataclass(slots=True)
class Check:
    """What a command line asks for, checked, and what has been seen so far.

    Attributes
    ----------
    given : tuple of str
        The names that ``-D`` of the command line gives values to.
    jobs : int or None
        How many processes; None: as many as are worth it.
    """

    paths: tuple[str, ...]
    scope: Scope
    given: tuple[str, ...] = ()
    fix: bool = False
    diff: bool = False
    unsafe_fixes: bool = False
    output_format: str = "full"
    output: str | None = None
    statistics: bool = False
    exit_zero: bool = False
    stdin_filename: str = "<stdin>"
    jobs: int | None = None
    baseline: str | None = None
    write_baseline: str | None = None
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

    def run(self) -> int:
        """Carry it out and return the exit code.

        A file that cannot be read, parsed or fixed costs its one line on standard error and makes
        the exit code 2; the others are still checked.

        Raises
        ------
        CommandError
            When a configuration is wrong, or the baseline.
        """
        try:
            files = list(self._files())
        except NoMachineError as error:
            if not self.scope.resolver.named_only:
                raise
            complain(f"{error}; nothing was checked")
            return NOTHING_TO_SAY
        for file, found in self._answered(files):
            try:
                if isinstance(found, Refusal):
                    print(found.trace, file=sys.stderr, end="")
                    raise CommandError(found.line)
                self._one_file(file, found)
            except CommandError as problem:
                self._fail(problem)
        # a file that could not be read may have the names of -D that nothing has
        if self.looked_into and not self.failed:
            tell_unused(self.given, self.names)
        if self.write_baseline is not None:
            return self._write_baseline(self.write_baseline)
        if self.baseline is not None:
            self._sift(self.baseline)
        if self.diff:
            write_result("".join(self.diffs), self.output)
        else:
            self._report()
        if self.fix or self.diff:
            more = sum(fix_option(finding) == UNSAFE_FIXES for finding in self.findings)
            hint = f"; {more} more with {UNSAFE_FIXES}" if more and not self.unsafe_fixes else ""
            note(f"{self.fixed} {'would be fixed' if self.diff else 'fixed'}{hint}")
        return self._exit_code()

    @property
    def _piped(self) -> bool:
        return self.paths == (STANDARD_STREAM,)

    def _fail(self, problem: Exception) -> None:
        self.failed = True
        complain(str(problem))

    def _files(self) -> Iterator[_File]:
        """Yield the files that may hold a kernel, and those that cannot be read."""
        scope, piped = self.scope, self._piped
        if piped:
            paths = [self.stdin_filename]
        else:
            paths = list(python_files(self.paths, self._fail, scope.excluded, force=scope.force))
        for path in watched(paths, "files read"):
            command = _ANOTHER_COMMAND.get(os.path.splitext(path)[1])  # noqa: PTH122  # quick
            if command is not None and not piped:
                complain(f"advise: {path}: programs in Python are checked here; {command}")
            effective = scope.resolver.effective(path)
            self.machines[effective.options.machine or ""] = None
            self.checked.append(path)
            content = self._content(path, effective)
            if content is None:
                self.passed_over += 1
                continue
            # python_files knows what is excluded; a name given to standard input went past it
            excluded = piped and scope.force and scope.excluded(path)
            if isinstance(content, Refusal) or (
                not excluded
                and (effective.options.observed or engine.needs_reading(content.text, path))
            ):
                yield _File(path, effective, content)
                continue
            self.passed_over += not excluded
            self._cover(path, content.text, coverage_of(path, content.text))
            if self.fix and piped:
                write_out(content.written(content.text))

    def _cover(self, path: str, text: str, coverage: Coverage) -> None:
        if path.endswith(NOTEBOOK):
            # of whole parts the file is told, and how to have it read
            parts = (
                one if one.reason in (SIZES, OUTSIDE) else placed(one, text)
                for one in coverage.not_understood
            )
            coverage = replace(coverage, not_understood=tuple(parts))
        self.coverage = self.coverage.and_also(coverage)

    def _content(self, path: str, effective: Effective) -> SourceFile | Refusal | None:
        """Return what a file holds; None for one that holds no kernel, as its bytes tell."""
        try:
            if self._piped:
                data = sys.stdin.buffer.read() if sys.stdin is not None else b""
                return decode_source(path, data)
            data = read_bytes(path)
            unmarked = not effective.options.observed and not engine.needs_decoding(data, path)
            if unmarked and path.endswith((".py", NOTEBOOK)) and not may_use_arrays(data):
                return None
            return decode_source(path, data)
        except NotPython as other:
            self.coverage = self.coverage.and_also(not_read(path, other.message))
            return None
        except SourceProblem as problem:
            return Refusal(str(problem))
        except OSError as error:
            return Refusal(f"{system_error(error, path)}{_alike(path, error)}")

    def _answered(self, files: Sequence[_File]) -> Iterator[tuple[_File, FileResult | Refusal]]:
        """Yield files with their answers, in their order; from the cache where it has them."""
        kept = self.scope.resolver.cache

        def known(file: _File) -> FileResult | Refusal | None:
            if isinstance(file.content, Refusal):
                return file.content
            return None if kept is None else kept.find(file.question)

        found = [(file, known(file)) for file in files]
        fresh = answers([file.question for file, answer in found if answer is None], self.jobs)
        for file, answer in watched(found, "kernel files checked"):
            self._explain_file(file, known=answer is not None)
            if answer is not None:
                yield file, answer
                continue
            made = next(fresh)
            if kept is not None and isinstance(made, FileResult) and not made.failures:
                kept.keep(file.question, made)
            yield file, made

    def _explain_file(self, file: _File, *, known: bool) -> None:
        if manner.get().verbose and not isinstance(file.content, Refusal):
            folder = os.path.split(file.path)[0] or "."
            settings = self.scope.resolver.configurations.of_folder(folder)
            source = shown_path(settings.file) if settings.file else "no configuration"
            how = "kept from an earlier run" if known else "analysed"
            complain(f"{file.path}: {source}, machine {file.effective.options.machine}, {how}")

    def _one_file(self, file: _File, result: FileResult) -> None:
        source, options = file.content, file.effective.options
        assert isinstance(source, SourceFile)
        self.names |= result.names
        if self.fix or self.diff:
            from advisor.cli.fixing import apply_fixes, write_back

            result, applied = apply_fixes(result, options, unsafe=self.unsafe_fixes)
            if self.diff:
                self.diffs += _diffs(file.path, source.text, result.source)
            elif applied or self._piped:
                write_back(file.path, result.source, source, to_output=self._piped)
            self.fixed += len(applied)
        for failure in result.failures:
            print(failure.trace, file=sys.stderr, end="")
            self._fail(CommandError(failure.told(file.path)))
        self.looked_into += 1
        self.findings += result.findings
        self.remarks += result.remarks
        self._cover(file.path, result.source, result.coverage)
        self.effective[file.path] = file.effective
        if result.findings or result.remarks:
            self.sources[file.path] = result.source

    def _write_baseline(self, file: str) -> int:
        from advisor.suppress import to_text

        if self.failed:
            complain(f"advise: {file}: not written, because not every file could be checked")
            return WRONG_USE
        write_result(to_text(self.findings, file), file)
        note(f"{len(self.findings)} accepted in {file}")
        return NOTHING_TO_SAY

    def _sift(self, file: str) -> None:
        from advisor.suppress import sift

        with using(file):
            self.findings[:], stale = sift(self.findings, file, self.checked)
        for entry in stale:
            complain(
                f"{file}: stale: {entry.code} in kernel {entry.kernel} of {entry.path} is no longer"
                " found; --write-baseline takes it out"
            )

    def _report(self) -> None:
        report = Report(
            ", ".join(filter(None, self.machines)),
            tuple(map(self._in_cell, self.findings)),
            tuple(map(self._in_cell, self.remarks)),
            {**self.sources, **self._cells()},
            self.failed,
            self.looked_into,
            self.passed_over,
            self._covered(),
            self._fails,
            self._curves,
        )
        if self.statistics:
            from advisor.report.full import render_statistics

            text = render_statistics(report, as_json=self.output_format == "json")
        else:
            text = renderer(self.output_format)(report, text_style(self.output))
        if self.fix and self._piped and self.output is None:
            if sys.stderr is not None:
                sys.stderr.write(text)
        else:
            write_result(text, self.output)

    def _in_cell(self, told: _Told) -> _Told:
        """Return what is told of a notebook by cell and line, or as the format knows places."""
        if not told.path.endswith(NOTEBOOK):
            return told

        text = self.sources[told.path]
        if isinstance(told, Finding):
            told = self._with_edits_for_reader(told, text)
        return on_file(placed(told, text)) if self._of_files else placed(told, text)

    def _with_edits_for_reader(self, finding: Finding, text: str) -> Finding:
        """Return a finding of a notebook without edits that a reader would make elsewhere."""
        fix = finding.fix
        if fix is None or self.output_format not in (*_OF_FILES, *_OF_CELLS):
            return finding

        spans = (finding.span, *(edit.span for edit in fix.edits))
        cells = {cell_line(text, span.start_line)[0] for span in spans}
        if len(cells) == 1 and not self._of_files:
            return finding
        return replace(finding, fix=replace(fix, edits=()))

    @property
    def _of_files(self) -> bool:
        return self.output_format in _OF_FILES

    def _covered(self) -> Coverage:
        if not self._of_files:
            return self.coverage

        parts = tuple(map(on_file, self.coverage.not_understood))
        return replace(self.coverage, not_understood=parts)

    def _cells(self) -> dict[str, str]:
        """Return the cells of notebooks with findings, by what reports call them."""
        notebooks = {path: one for path, one in self.sources.items() if path.endswith(NOTEBOOK)}
        if not notebooks:
            return {}

        return {
            f"{path}:cell {number}": cell
            for path, text in notebooks.items()
            for number, cell in cells_of(text).items()
        }

    def _fails(self, finding: Finding) -> bool:
        return self.effective[file_and_cell(finding.path)[0]].fails(finding)

    def _curves(self, finding: Finding) -> Sequence[Curve]:
        """Return how a gain goes with sizes; its file is analysed again, as findings keep no
        prices."""
        from advisor.cli.commands.explain import judged_in
        from advisor.report.html import curves_of

        path = file_and_cell(finding.path)[0]
        if path not in self.judged:
            options = self.effective[path].options
            self.judged[path] = judged_in(path, self.sources[path], options)
        for one in self.judged[path]:
            there = self._in_cell(one.finding)
            if all(getattr(there, name) == getattr(finding, name) for name in _IDENTITY):
                return curves_of(one)
        return ()

    def _exit_code(self) -> int:
        if self.failed:
            return WRONG_USE
        found = any(self.diffs) if self.diff else any(map(self._fails, self.findings))
        return FINDINGS if found and not self.exit_zero else NOTHING_TO_SAY


def _alike(path: str, error: OSError) -> str:
    """Return a hint at the files whose names are nearest to that of one that is not there."""
    place = Path(path)
    if error.errno != ENOENT or not place.parent.is_dir():
        return ""
    others = [one.name for one in place.parent.iterdir() if one.suffix in (".py", NOTEBOOK)]
    return nearest(place.name, sorted(others), _MOST_NAMES)


def _diffs(path: str, before: str, after: str) -> Iterator[str]:
    """Yield what changes in a file, or in each cell of a notebook."""
    if not path.endswith(NOTEBOOK):
        yield unified_diff(path, before, after)
        return

    old, new = cells_of(before), cells_of(after)
    for number in old:
        yield unified_diff(f"{path}:cell {number}", old[number], new.get(number, ""))


# A worker takes some 0.4 s to start; a kernel takes a tenth of that.
FEWEST_FILES = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file has no answer; the whole line, and where a bug of ours came up."""

    line: str
    trace: str = ""


def answer(task: Question) -> FileResult | Refusal:
    """Return what the engine finds, or its refusal as one line."""
    from costdb.machines import MachineError

    try:
        return engine.check_source(task.path, task.source, task.options)
    except SourceProblem as problem:
        return Refusal(str(placed_problem(problem, task.source)))
    except MachineError as error:
        return Refusal(f"advise: {error}")
    except Exception:
        # a bug of ours costs one file, not the run
        from traceback import format_exc

        told = f"advise: internal error in {task.path}: please report it with the lines above"
        return Refusal(told, format_exc())


def answers(tasks: Sequence[Question], jobs: int | None) -> Iterator[FileResult | Refusal]:
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


def _side_by_side(tasks: Sequence[Question], workers: int) -> Iterator[FileResult | Refusal]:
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
            # waited for: a pool that is still closing its pipes when the interpreter ends writes
            # into one of them, and a traceback of the library is what the user sees
            pool.shutdown(wait=True, cancel_futures=True)


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
    from costdb.calibration.section import usable_cores

    return min(usable_cores(), count // (FEWEST_FILES // 2))


def _begin_work() -> None:
    """Set a worker up: the parent is to say that the user has interrupted the run."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    be_able_to_read()
