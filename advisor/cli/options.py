"""Options that several commands share, so that one name means the same in all of them.

Each is a type for a parameter of a command. A parameter with another default or another meaning
makes its own option, by the functions here where they fit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, MutableMapping
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperOption

from advisor.cli.common import COLORS, check_output, manner
from advisor.config.files import wrong_use
from costdb.records import replace

# Completion in a shell: what could stand at a place of the command line.
#
# Imports next to nothing, because every option names its function from here.

_BASH_WORDS, _BASH_PLACE = "COMP_WORDS", "COMP_CWORD"
_OTHER_WORDS = "_TYPER_COMPLETE_ARGS"
_PROGRAM = re.compile(r"\S*(\s)")


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


def option(
    names: str, help_text: str, metavar: str | None = None, *, env: bool = False, **more: Any
) -> Any:
    """Return an option of a command.

    Parameters
    ----------
    names : str
        All of them, by blanks.
    help_text, metavar : str
    env : bool
        Whether the environment may speak for it, under its long name: ``ADVISE_...``.
    **more
        As Typer takes it.
    """
    long = next(name for name in names.split() if name.startswith("--"))
    variable = f"ADVISE_{long[2:].replace('-', '_').upper()}" if env else None
    return typer.Option(*names.split(), help=help_text, metavar=metavar, envvar=variable, **more)


def machine_option(help_text: str) -> Any:
    """Return ``--machine``, for which the environment may speak."""
    return option("--machine -m", help_text, "NAME", env=True, autocompletion=machines)


def codes_option(name: str, help_text: str) -> Any:
    """Return an option that names rules."""
    return option(f"--{name}", help_text, "CODES", env=True, autocompletion=codes)


def output_file_option(what: str) -> Any:
    """Return ``-o`` for a report or a result."""
    help_text = f"Write the {what} to a file."
    return option("-o --output-file", help_text, "FILE", callback=check_output)


def manners() -> list[Any]:
    """Return the options that every command has; they say how a run speaks."""

    def made(names: str, help_text: str, **more: Any) -> Any:
        *_, long = names.split()

        def keep(context: object, parameter: object, value: Any) -> None:
            if long == "--color" and value not in COLORS:
                raise wrong_use(f"--color {value}: expected one of {', '.join(COLORS)}")
            if value:
                manner.set(replace(manner.get(), **{long[2:]: value}))

        more |= {"callback": keep, "expose_value": False, "help": help_text}
        return TyperOption(param_decls=names.split(), **more)

    flag = {"is_flag": True, "default": False}
    return [
        made("-q --quiet", "Say only results and problems.", **flag),
        made("-v --verbose", "Say also what holds for each file.", **flag),
        made(
            "--color",
            f"One of {', '.join(COLORS)}.",
            metavar="WHEN",
            default=COLORS[0],
            show_default=True,
            autocompletion=lambda context, words, incomplete: _starting(COLORS, incomplete),
        ),
    ]


Machine = Annotated[str | None, machine_option("Machine to predict for: a name or a profile.json.")]
MachineOfSubject = Annotated[
    str | None,
    machine_option("Machine to predict for: a name or a profile.json. A .pam needs none."),
]
ThisMachine = Annotated[str, machine_option("This machine's name.")]
Sizes = Annotated[
    list[str] | None, option("-D --define", "Bind a size, as -D N=1000.", "NAME=VALUE", env=True)
]
Arguments = Annotated[
    list[str] | None, option("-D --define", "Bind a size or an argument.", "NAME=VALUE")
]
Kernel = Annotated[str | None, option("--kernel", "Which kernel of a file.", "NAME")]
ConfigFile = Annotated[
    str | None,
    option(
        "--config",
        "Read [tool.advise] from this file instead of the nearest pyproject.toml.",
        "FILE",
        env=True,
    ),
]
Isolated = Annotated[bool, option("--isolated", "Read no configuration file.")]
ReportFile = Annotated[str | None, output_file_option("report")]
ResultFile = Annotated[str | None, output_file_option("result")]
_SHOWN = option("--output-format", "How the result is shown.")
TextOrJson = Annotated[Literal["text", "json"], _SHOWN]
TextJsonOrPage = Annotated[Literal["text", "json", "html", "markdown"], _SHOWN]
Json = Annotated[Literal["json"], _SHOWN]
REPORTED = option("--output-format", "How findings are reported.", env=True)
CacheFolder = Annotated[
    str | None,
    option(
        "--cache-dir",
        "Where answers are kept; .advise_cache beside the configuration otherwise.",
        "DIR",
        env=True,
    ),
]
Subjects = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="A process model (.pam; several make one), a description (.toml), or Python.",
    ),
]
Ranks = Annotated[int | None, option("-P --ranks", "Ranks that run the program.", "P", min=1)]
Measure = Annotated[
    bool, option("--measure", "First time here what was not yet, as advise measure does.")
]
Sections = Annotated[
    list[str] | None, option("--only", "Only this section; may be repeated.", "SECTION")
]
