"""Fix one file: apply what may be applied, and write it back."""

from __future__ import annotations

from collections.abc import Callable, Collection

from advisor import engine
from advisor.cli.common import write_out
from advisor.config.files import CommandError, system_error, wrong_use
from advisor.engine import FileResult, Options
from advisor.files import SourceFile, read_source, replace_file
from advisor.finding import Applicability, Finding
from advisor.notebook import CellsLost
from advisor.source import EditError, SourceProblem, apply_edits
from costdb.records import dataclass

# Apply the fixes of a file, one after another, until there is nothing left to apply.

SAFE = frozenset((Applicability.SAFE,))
SAFE_AND_UNSAFE = frozenset((Applicability.SAFE, Applicability.UNSAFE))

# Far above what a file of kernels needs; a pair of rules that undo each other stops here.
_MOST_FIXES = 200


class FixError(Exception):
    """A fix that cannot be carried out or breaks the file; one line. A bug of its rule."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """The state of a file after its fixes.

    Attributes
    ----------
    result : FileResult
        Of the text as it is now.
    applied : tuple of Finding
        In the order in which they were applied.
    """

    result: FileResult
    applied: tuple[Finding, ...]


def fix_until_stable(
    first: FileResult,
    check: Callable[[str], FileResult],
    allowed: Collection[Applicability] = SAFE,
) -> Fixed:
    """Apply fixes until none is left, the one with the highest gain first.

    The text is checked again after each one, because it may remove the ground of another, and
    moves what lies below it.

    Parameters
    ----------
    first : FileResult
        Of the text to start from.
    check : callable
        Text to result.
    allowed : collection of Applicability
        Which fixes may be applied.

    Raises
    ------
    FixError
        When a fix has overlapping edits, or its outcome does not parse.
    """
    result = first
    applied: list[Finding] = []
    seen = {first.source}
    while len(applied) < _MOST_FIXES:
        step = _best_step(result, allowed, seen)
        if step is None:
            break
        finding, text = step
        try:
            result = check(text)
        except SourceProblem as problem:
            raise FixError(
                f"{finding.path}: the fix of {finding.code} breaks the file "
                f"({problem.message}); nothing was changed, please report it"
            ) from problem
        seen.add(text)
        applied.append(finding)
    return Fixed(result, tuple(applied))


def _best_step(
    result: FileResult, allowed: Collection[Applicability], seen: Collection[str]
) -> tuple[Finding, str] | None:
    """Return the highest gain that leads to a text not seen before, and that text."""
    by_gain = sorted(result.findings, key=lambda finding: -finding.speedup)
    for finding in by_gain:
        fix = finding.fix
        if fix is None or fix.applicability not in allowed or not fix.edits:
            continue
        try:
            text = apply_edits(result.source, fix.edits)
        except EditError as error:
            raise FixError(
                f"{finding.path}: the fix of {finding.code} cannot be applied ({error}); "
                "nothing was changed, please report it"
            ) from error
        if text not in seen:
            return finding, text
    return None


def apply_fixes(result: FileResult, options: Options, *, unsafe: bool) -> Fixed:
    """Return the state of a file after its fixes; nothing is written.

    Parameters
    ----------
    result : FileResult
        Of the file as it is.
    options : Options
    unsafe : bool
        Whether unsafe fixes are applied too.

    Raises
    ------
    CommandError
        A fix cannot be carried out, or breaks the file.
    """

    def check(text: str) -> FileResult:
        from costdb.machines import MachineError

        if not options.observed and not engine.needs_reading(text, result.path):
            return FileResult(result.path, text, (), ())
        try:
            return engine.check_source(result.path, text, options)
        except MachineError as error:
            raise wrong_use(str(error)) from error

    try:
        return fix_until_stable(result, check, SAFE_AND_UNSAFE if unsafe else SAFE)
    except FixError as error:
        raise CommandError(str(error)) from error


def write_back(fixed: Fixed, file: SourceFile, *, to_output: bool) -> None:
    """Write a fixed text to its file if anything was fixed, or always to standard output.

    Raises
    ------
    CommandError
        It does not fit into the file's encoding, the file has changed since it was read, or the
        system refuses; the file is as it was.
    """
    path, text = fixed.result.path, fixed.result.source
    try:
        data = file.encode(text)
    except UnicodeEncodeError as error:
        raise wrong_use(f"{path}: the fixed text does not fit into {file.encoding}") from error
    except CellsLost as error:
        raise wrong_use(f"{path}: not fixed: {error}") from error
    if to_output:
        write_out(file.written(text))
    elif fixed.applied:
        try:
            if read_source(path) != file:
                raise wrong_use(f"{path}: has changed since it was read; not fixed")
            replace_file(path, data)
        except SourceProblem as problem:
            raise CommandError(str(problem)) from problem
        except OSError as error:
            raise system_error(error, path) from error
