"""The program ``advise``: finds the command, runs it, and turns what went wrong into one line.

A command is a function, or a group of them, that has its name in the module of
:mod:`advisor.cli.commands` that `COMMANDS` says. Only the module of the command that was asked for
is imported, so that ``advise FILE`` does not pay for the others.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.main import get_command

from advisor.cli.common import (
    INTERRUPTED,
    RECURSION_LIMIT,
    WRONG_USE,
    complain,
    discard_output,
    problem_line,
    write_out,
)
from advisor.config.layer import CommandError, system_error

PROGRAM = "advise"
DEFAULT_COMMAND = "check"
COMMANDS = {
    "check": "advisor.cli.commands.check",
    "predict": "advisor.cli.commands.predict",
    "choose": "advisor.cli.commands.predict",
    "machine": "advisor.cli.commands.machine",
    "calibrate": "advisor.cli.commands.calibrate",
    "measure": "advisor.cli.commands.measure",
    "build": "advisor.cli.commands.build",
    "verify": "advisor.cli.commands.verify",
    "validate": "advisor.cli.commands.validate",
    "rule": "advisor.cli.commands.rule",
    "lsp": "advisor.cli.commands.plumbing",
    "explain": "advisor.cli.commands.explain",
    "run": "advisor.cli.commands.run",
    "clean": "advisor.cli.commands.plumbing",
    "version": "advisor.cli.commands.plumbing",
}
_MORE: Mapping[str, Mapping[str, Any]] = {
    "measure": {
        "epilog": "Nothing of a file is imported or run: what runs is written anew from what is"
        " read.",
    },
    "run": {
        "epilog": "What follows PROGRAM goes to it. Under mpiexec, rank 0 reports for all.",
        # what follows the program is the program's
        "context_settings": {"allow_interspersed_args": False, "ignore_unknown_options": False},
    },
}
"""What Typer is told of a command beside its function."""

_COMPLETION_OPTIONS = frozenset(("--install-completion", "--show-completion"))
_OWN_OPTIONS = _COMPLETION_OPTIONS | {"--help", "-h", "--version"}
_ALLOCATIONS_PER_COLLECTION = 500_000
_COMPLETION_REQUEST = "_ADVISE_COMPLETE"

# The base of all usage errors. Typer brings it along under another name in each generation,
# and exports a subclass only.
_USAGE_ERROR = cast(type[Exception], typer.BadParameter.__base__)


def run() -> NoReturn:
    """Run the program on the arguments of the process, and end the process."""
    sys.excepthook = _internal_error
    # Most of what a run makes lives to its end, so looking for cycles among it is time lost.
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    sys.setrecursionlimit(RECURSION_LIMIT)
    code = main(sys.argv[1:])
    if threading.active_count() > 1:
        sys.exit(code)
    # All that a run made goes with its process: taking it apart first is a tenth of a short run.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the program and return its exit code.

    Parameters
    ----------
    arguments : sequence of str
        Without the program's name. When the first is not a command, ``check`` is meant; a
        file that has a command's name is reached as ``./name``.
    """
    given = list(arguments)
    completing = _COMPLETION_REQUEST in os.environ
    if completing or not _COMPLETION_OPTIONS.isdisjoint(given[:1]):
        from advisor.cli.options import complete_at_once_in_zsh

        complete_at_once_in_zsh()
    if completing:
        from advisor.cli.options import name_command

        given = list(filter(None, [name_command(os.environ, COMMANDS, DEFAULT_COMMAND)]))
    elif not given:
        main(["--help"])
        return WRONG_USE
    if given and given[0] not in COMMANDS and given[0] not in _OWN_OPTIONS:
        given.insert(0, DEFAULT_COMMAND)
    try:
        code = get_command(_application(given)).main(
            args=given, prog_name=PROGRAM, standalone_mode=False
        )
    except CommandError as error:
        complain(str(error))
        return WRONG_USE
    except _USAGE_ERROR as error:
        complain(f"{PROGRAM}: {_usage_message(error)}; see {_help_command(given)}")
        return WRONG_USE
    except OSError as error:
        if _folder_is_gone():
            complain(f"{PROGRAM}: the current folder does not exist any more")
            return WRONG_USE
        # help, which the library writes; whatever else a command reads or writes, it looks after
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        discard_output()
        complain(str(system_error(error, "standard output")))
        return WRONG_USE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except ValueError as error:
        line = problem_line(error)
        if line is None:
            raise
        complain(line)
        return WRONG_USE
    return code if isinstance(code, int) else 0


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  # the question is whether the system knows it
    except FileNotFoundError:
        return True
    return False


def _application(arguments: Sequence[str]) -> typer.Typer:
    """Return an application that knows the command asked for; all of them to list them."""
    app = typer.Typer(
        name=PROGRAM,
        help="Predict which distribution, communication and algorithm is faster, and rewrite.",
        epilog=f"'{PROGRAM} FILE' is short for '{PROGRAM} {DEFAULT_COMMAND} FILE'.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    asked = arguments[0] if arguments else ""
    for name in [asked] if asked in COMMANDS else COMMANDS:
        command = getattr(import_module(COMMANDS[name]), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, **_MORE.get(name, {}))(command)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        from advisor.cli.commands.plumbing import version_line

        write_out(version_line())
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Hold the options that stand before any command."""


def _usage_message(error: BaseException) -> str:
    describe = getattr(error, "format_message", error.__str__)
    text = " ".join(str(describe()).split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _help_command(arguments: Sequence[str]) -> str:
    command = [arguments[0]] if arguments and arguments[0] in COMMANDS else []
    return f"'{' '.join([PROGRAM, *command, '--help'])}'"


def _internal_error(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> NoReturn:
    """Show a bug of ours as one, with the exit code that cannot be read as "findings"."""
    sys.__excepthook__(kind, error, trace)
    complain(f"{PROGRAM}: internal error: please report it with the lines above")
    sys.exit(WRONG_USE)
