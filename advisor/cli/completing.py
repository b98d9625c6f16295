"""Completion in a shell: what could stand at a place of the command line.

Imports next to nothing, because every option names its function from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, MutableMapping

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
