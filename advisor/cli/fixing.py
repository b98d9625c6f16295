"""Fix one file: apply what may be applied, and write it back."""

from __future__ import annotations

import ast
from collections.abc import Collection
from contextlib import suppress

from advisor import engine
from advisor.cli.common import write_out
from advisor.config.files import CommandError, using, wrong_use
from advisor.engine import FileResult, Options
from advisor.files import SourceFile, read_source, replace_file
from advisor.finding import Applicability, Finding
from advisor.source import CellsLost, Edit, EditError, SourceProblem, apply_edits

# Far above what a file of kernels needs; a pair of rules that undo each other stops here.
_MOST_FIXES = 200


def _best_step(
    result: FileResult, allowed: Collection[Applicability], seen: Collection[str]
) -> tuple[list[Finding], str] | None:
    """Return the highest gain of each kernel, and the text that they lead to.

    Each leads to a text not seen before, and changes no place that another one does.
    """
    chosen: dict[str, Finding] = {}
    edits, text = list[Edit](), ""
    for finding in sorted(result.findings, key=lambda finding: -finding.speedup):
        fix = finding.fix
        if fix is None or fix.applicability not in allowed or not fix.edits:
            continue
        try:
            alone = apply_edits(result.source, fix.edits)
        except EditError as error:
            raise CommandError(
                f"{finding.path}: the fix of {finding.code} cannot be applied ({error}); "
                "nothing was changed, please report it"
            ) from error
        if alone in seen or finding.kernel in chosen:
            continue
        with suppress(EditError):
            text = apply_edits(result.source, [*edits, *fix.edits])
            chosen[finding.kernel] = finding
            edits += fix.edits
    return ([*chosen.values()], text) if chosen else None


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def apply_fixes(
    result: FileResult, options: Options, *, unsafe: bool
) -> tuple[FileResult, list[Finding]]:
    """Return a file as it is when no fix is left, and what was applied, the highest gain first.

    Nothing is written.

    The text is checked again after one of each kernel, because it may remove the ground of others,
    and moves what lies below it.

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
        A fix cannot be carried out, or breaks the file: a bug of its rule.
    """

    def check(text: str) -> FileResult:
        from costdb.machines import MachineError

        if not options.observed and not engine.needs_reading(text, result.path):
            return FileResult(result.path, text, (), ())
        try:
            return engine.check_source(result.path, text, options)
        except MachineError as error:
            raise wrong_use(str(error)) from error

    allowed = [Applicability.SAFE, *[Applicability.UNSAFE] * unsafe]
    applied: list[Finding] = []
    seen = {result.source}
    while len(applied) < _MOST_FIXES:
        step = _best_step(result, allowed, seen)
        if step is None:
            break
        findings, text = step
        try:
            if _parses(result.source):
                ast.parse(text)
            result = check(text)
        except (SourceProblem, SyntaxError) as problem:
            codes = ", ".join(dict.fromkeys(one.code for one in findings))
            raise CommandError(
                f"{result.path}: the fix of {codes} breaks the file ({problem}); nothing was"
                " changed, please report it"
            ) from problem
        seen.add(text)
        applied += findings
    return result, applied


def write_back(path: str, text: str, file: SourceFile, *, to_output: bool) -> None:
    """Write a fixed text to its file, or to standard output.

    Raises
    ------
    CommandError
        It does not fit into the file's encoding, the file has changed since it was read, or the
        system refuses; the file is as it was.
    """
    try:
        data = file.encode(text)
    except UnicodeEncodeError as error:
        raise wrong_use(f"{path}: the fixed text does not fit into {file.encoding}") from error
    except CellsLost as error:
        raise wrong_use(f"{path}: not fixed: {error}") from error
    if to_output:
        write_out(file.written(text))
        return
    try:
        with using(path):
            if read_source(path) != file:
                raise wrong_use(f"{path}: has changed since it was read; not fixed")
            replace_file(path, data)
    except SourceProblem as problem:
        raise CommandError(str(problem)) from problem
