"""The program ``advise``: finds the command, runs it, and turns what went wrong into one line.

A command is a function, or a group of them, that has its name in the module of
:mod:`advisor.cli.commands` that `COMMANDS` says. Only the module of the command that was asked for
is imported, so that ``advise FILE`` does not pay for the others.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from importlib import import_module
from types import TracebackType
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from advisor.cli.common import (
    INTERRUPTED,
    WRONG_USE,
    be_able_to_read,
    complain,
    discard_output,
    problem_line,
    write_out,
)
from advisor.config.files import CommandError, system_error

PROGRAM = "advise"
DEFAULT_COMMAND = "check"
_GROUPS = {
    "Every day": "check explain run annotate measure verify build calibrate rule",
    "For experts": "predict choose machine validate",
    "Plumbing": "lsp clean version",
}
"""Commands as help lists them."""
_ELSEWHERE = {
    **{"choose": "predict", "rule": "explain", "run": "annotate"},
    **{"calibrate": "machine", "validate": "machine", "measure": "verify"},
    **{"lsp": "plumbing", "clean": "plumbing", "version": "plumbing"},
}
COMMANDS = {
    name: f"advisor.cli.commands.{_ELSEWHERE.get(name, name)}"
    for names in _GROUPS.values()
    for name in names.split()
}
_MEANT = {
    "lint": "check",
    "fix": "check --fix",
    "diff": "check --diff",
    "list": "machine list",
    "rules": "rule",
    "show": "explain",
    "bench": "measure",
    "profile": "run",
    "compare": "choose",
    "export": "machine export",
}
"""What is meant by words that are no commands."""
_MORE: Mapping[str, Mapping[str, Any]] = {
    "measure": {
        "epilog": "Nothing of a file is imported or run: what runs is written anew from what is"
        " read.",
    },
    "verify": {"short_help": "Run kernels and rewrites; compare with predictions."},
    "run": {
        "epilog": "What follows PROGRAM goes to it. Under mpiexec, rank 0 reports for all.",
        # what follows the program is the program's
        "context_settings": {"allow_interspersed_args": False, "ignore_unknown_options": False},
    },
}
"""What Typer is told of a command beside its function."""

_COMPLETION_OPTIONS = frozenset(("--install-completion", "--show-completion"))
_OWN_OPTIONS = _COMPLETION_OPTIONS | {"--help", "-h", "--version"}
_MANNER = re.compile(r"-[qv]+|--quiet|--verbose|--color=.*")
_WORD = re.compile(r"[A-Za-z]+")
_ALIKE = 0.7
_COMPLETION_REQUEST = "_ADVISE_COMPLETE"

# The base of all usage errors. Typer brings it along under another name in each generation,
# and exports a subclass only.
_USAGE_ERROR = cast(type[Exception], typer.BadParameter.__base__)


def run() -> NoReturn:
    """Run the program on the arguments of the process, and end the process."""
    sys.excepthook = _internal_error
    be_able_to_read()
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
    # how a run speaks ends with it
    return copy_context().run(_main, list(arguments))


def _main(given: list[str]) -> int:
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
    try:
        given = _commanded(given)
        _one_machine(given)
        code = _application(given).main(args=given, prog_name=PROGRAM, standalone_mode=False)
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


def _commanded(given: list[str]) -> list[str]:
    """Return arguments that begin with a command: the one that is meant where none is given."""
    place = next((n for n, word in enumerate(given) if not _MANNER.fullmatch(word)), len(given))
    first, rest = given[:place], given[place:]
    if rest[:1] == ["help"]:
        return [*rest[1:2], "--help"]
    if not rest or rest[0] in _OWN_OPTIONS:
        return given
    meant = None if rest[0] in COMMANDS else _word_meant(rest[0])
    if meant is not None:
        said = f"there is no such command or file; did you mean `{PROGRAM} {meant}`?"
        raise CommandError(f"{PROGRAM}: {rest[0]}: {said}")
    command, *others = rest if rest[0] in COMMANDS else (DEFAULT_COMMAND, *rest)
    return [command, *first, *others]


def _one_machine(given: Sequence[str]) -> None:
    own = given if given[:1] != ["run"] else ()  # what follows a program is the program's
    if sum(word in ("-m", "--machine") or word.startswith("--machine=") for word in own) > 1:
        complain(f"{PROGRAM}: --machine is given more than once: the last one counts")


def _word_meant(word: str) -> str | None:
    """Return the command that somebody may mean by a word that is neither one nor a file."""
    from difflib import get_close_matches

    if not _WORD.fullmatch(word) or os.path.lexists(word):
        return None
    near = get_close_matches(word.lower(), [*COMMANDS, *_MEANT], 1, _ALIKE)
    return _MEANT.get(near[0], near[0]) if near else None


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  # the question is whether the system knows it
    except FileNotFoundError:
        return True
    return False


class _Grouped(TyperGroup):
    """Lists the commands by who needs them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        for title, names in _GROUPS.items():
            known = [(name, self.commands[name]) for name in names.split()]
            with formatter.section(title):
                room = formatter.width - 6 - max(map(len, COMMANDS))
                formatter.write_dl([(name, one.get_short_help_str(room)) for name, one in known])


def _application(arguments: Sequence[str]) -> Any:
    """Return the program with the command asked for; with all of them to list them."""
    app = typer.Typer(
        name=PROGRAM,
        cls=_Grouped,
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
    program: Any = get_command(app)
    _give_manners(program)
    return program


def _give_manners(command: Any) -> None:
    """Give a command, or each of a group, the options of all."""
    for one in getattr(command, "commands", {}).values():
        _give_manners(one)
    if not hasattr(command, "commands"):
        from advisor.cli.options import manners

        command.params += manners()


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
    text = text.replace("a valid int range", "a whole number")
    text = text.replace("is not in the range x>=", "is less than ")
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
