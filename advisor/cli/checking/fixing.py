"""Fix one file: apply what may be applied, and write it back."""

from __future__ import annotations

from advisor import engine
from advisor.cli.checking.fix import SAFE, SAFE_AND_UNSAFE, Fixed, FixError, fix_until_stable
from advisor.cli.common import write_out
from advisor.config.errors import CommandError, system_error, wrong_use
from advisor.engine import FileResult, Options
from advisor.files import SourceFile, read_source, replace_file
from advisor.source import SourceProblem


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

        if not engine.needs_reading(text, result.path):
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
    if to_output:
        write_out(text)
    elif fixed.applied:
        try:
            if read_source(path).text != file.text:
                raise wrong_use(f"{path}: has changed since it was read; not fixed")
            replace_file(path, data)
        except SourceProblem as problem:
            raise CommandError(str(problem)) from problem
        except OSError as error:
            raise system_error(error, path) from error
