"""Options that several commands share, so that one name means the same in all of them.

Each is a type for a parameter of a command. A parameter with another default or another meaning
makes its own option, by the functions here where they fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, MutableMapping
from typing import Annotated, Any

import typer

from advisor.cli.common import SIZES_VARIABLE
from advisor.config.machine import MACHINE_VARIABLE
from advisor.report.model import FORMATS

# Completion in a shell: what could stand at a place of the command line.
#
# Imports next to nothing, because every option names its function from here.

_BASH_WORDS, _BASH_PLACE = "COMP_WORDS", "COMP_CWORD"
_OTHER_WORDS = "_TYPER_COMPLETE_ARGS"
_PROGRAM = re.compile(r"\S*(\s)")


def words(*known: str) -> Callable[[str], list[str]]:
    """Return what offers these words."""
    return lambda incomplete: _starting(known, incomplete)


def machines(incomplete: str) -> list[str]:
    """Return the machines whose names start so."""
    from costdb.machines import machine_names

    return _starting(machine_names(), incomplete)


def codes(incomplete: str) -> list[str]:
    """Return the codes that continue what is written behind the last comma."""
    from advisor.transform_registry import rules

    before, comma, word = incomplete.rpartition(",")
    known = [transform.code for transform in rules()]
    return [before + comma + code for code in _starting(known, word)]


def rules(incomplete: str) -> list[str]:
    """Return the codes and names of rules that start so."""
    from advisor.transform_registry import rules

    known = [word for transform in rules() for word in (transform.code, transform.name)]
    return _starting(known, incomplete)


def _starting(words: Collection[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def complete_at_once_in_zsh() -> None:
    """Have the script for zsh complete the first time it is called, too.

    From a folder of functions zsh loads it by calling it, and what Typer writes then only defines
    the function that completes: the first press of the key in every shell would do nothing.
    """
    from typer import _completion_shared

    _completion_shared._completion_scripts["zsh"] = (
        f"{_completion_shared.COMPLETION_SCRIPT_ZSH.rstrip()}\n\n"
        'if [[ "${funcstack[1]}" == "_%(prog_name)s" ]]; then\n'
        '  %(complete_func)s "$@"\n'
        "fi\n"
    )


def name_command(
    environment: MutableMapping[str, str], commands: Collection[str], default: str
) -> str:
    """Return the command that a request for completion is about, empty while it is typed.

    Where it is left out, the default command is put into the request, so that its options are
    offered.

    Parameters
    ----------
    environment : mutable mapping of str to str
        Holds the request as the shell made it.
    commands : collection of str
    default : str
    """
    key = _BASH_WORDS if _BASH_WORDS in environment else _OTHER_WORDS
    # bash joins the words by line ends, the other shells by blanks
    split = _PROGRAM.match(environment.get(key, ""))
    if split is None:
        return ""
    program, rest = split[0], environment[key][split.end() :]
    words = rest.split()
    typing_first = len(words) < 2 and not (words and rest.endswith((" ", "\n")))
    if typing_first and not rest.startswith("-"):
        return ""
    if words[0] in commands:
        return words[0]
    environment[key] = f"{program}{default}{split[1]}{rest}"
    place = environment.get(_BASH_PLACE, "")
    if place.isdigit():
        environment[_BASH_PLACE] = str(int(place) + 1)
    return default


def machine_option(help_text: str, short: str = "-m") -> Any:
    """Return ``--machine``, for which the environment may speak."""
    return typer.Option(
        "--machine",
        short,
        metavar="NAME",
        envvar=MACHINE_VARIABLE,
        show_envvar=True,
        autocompletion=machines,
        help=help_text,
    )


def report_format_option(*more: str) -> Any:
    """Return ``--output-format`` of a command that reports findings.

    Parameters
    ----------
    *more : str
        Words that it takes beside the formats.
    """
    return typer.Option(
        "--output-format",
        metavar="FORMAT",
        envvar="ADVISE_OUTPUT_FORMAT",
        show_envvar=True,
        autocompletion=words(*more, *FORMATS),
        help=f"One of {', '.join((*more, *FORMATS))}.",
    )


def codes_option(name: str, help_text: str) -> Any:
    """Return an option that names rules."""
    return typer.Option(
        f"--{name}",
        metavar="CODES",
        envvar=f"ADVISE_{name.replace('-', '_').upper()}",
        show_envvar=True,
        autocompletion=codes,
        help=help_text,
    )


def output_file_option(what: str) -> Any:
    """Return ``-o`` for a report or a result."""
    return typer.Option("-o", "--output-file", metavar="FILE", help=f"Write the {what} to a file.")


Machine = Annotated[str | None, machine_option("Machine to predict for: a name or a profile.json.")]
MachineOfSubject = Annotated[
    str | None,
    machine_option("Machine to predict for: a name or a profile.json. A .pam needs none."),
]
ThisMachine = Annotated[str, machine_option("This machine's name.")]

Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "-D",
        "--define",
        metavar="NAME=VALUE",
        envvar=SIZES_VARIABLE,
        show_envvar=True,
        help="Bind a size, as -D N=1000.",
    ),
]

ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="ADVISE_CONFIG",
        show_envvar=True,
        help="Read [tool.advise] from this file instead of the nearest pyproject.toml.",
    ),
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no configuration file.")]

ReportFile = Annotated[str | None, output_file_option("report")]
ResultFile = Annotated[str | None, output_file_option("result")]
TextOrJson = Annotated[
    str,
    typer.Option(
        "--output-format",
        metavar="FORMAT",
        autocompletion=words("text", "json"),
        help="text or json.",
    ),
]

CacheFolder = Annotated[
    str | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        envvar="ADVISE_CACHE_DIR",
        show_envvar=True,
        help="Where answers are kept; .advise_cache beside the configuration otherwise.",
    ),
]

Subjects = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="A process model (.pam; several make one), a description (.toml), or Python.",
    ),
]
Ranks = Annotated[
    int | None,
    typer.Option("-P", "--ranks", metavar="P", min=1, help="Ranks that run the program."),
]
Measure = Annotated[
    bool,
    typer.Option("--measure", help="First time here what was not yet, as advise measure does."),
]
Sections = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="SECTION", help="Only this section; may be repeated."),
]
