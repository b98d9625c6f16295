"""Settings given in several places, later ones over earlier ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from costdb.records import dataclass, field

# On which line of a TOML document a key stands; the standard library's parser does not say.

Keys = Sequence[str | int]
"""The way to a value within a document."""

_LINE_END = re.compile(r"(?<=\n)")


def line_of(text: str, keys: Keys) -> int:
    """Return the line, from 1, of the statement that brings `keys` into a valid document.

    A key exists from some line on: the first prefix of the document that parses and has it ends
    with its value, and the longest shorter prefix that parses ends just before it. Both are
    found by bisection, so that a long document costs a dozen parses. Only called for errors.
    """
    lines = _LINE_END.split(text)
    without, having = 0, len(lines)
    while having - without > 1:
        middle = (without + having) // 2
        # within a value of several lines no prefix parses: the next one above, else below
        candidates = (*range(middle, without, -1), *range(middle + 1, having))
        parsed = ((end, _parsed(lines[:end])) for end in candidates)
        end, document = next((one for one in parsed if one[1] is not None), (having, None))
        if document is None:
            break
        if _has(document, keys):
            having = end
        else:
            without = end
    return without + 1


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    import tomllib  # only for errors: a run without any must not pay for it

    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _has(document: Any, keys: Keys) -> bool:
    for key in keys:
        if isinstance(document, list) and isinstance(key, int):
            if key >= len(document):
                return False
        elif not isinstance(document, dict) or key not in document:
            return False
        document = document[key]
    return True


# How a command says that it was used wrongly: one line.


class CommandError(Exception):
    """Wrong use or bad input; its message is the whole line, exit code 2."""


class NoMachineError(CommandError):
    """Nothing names a machine where one must be named."""


def wrong_use(message: str) -> CommandError:
    """Return the error for a problem that has no place in a file."""
    return CommandError(f"advise: {message}")


def system_error(error: OSError, path: str) -> CommandError:
    """Return the error for a path that the system refused."""
    return wrong_use(f"{path}: {error.strerror or error}")


Number = int | float


class ConfigError(CommandError):
    """A configuration that cannot be used; the message is one line with file and place."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a setting was given.

    Attributes
    ----------
    file : str
        The configuration file; empty for the command line.
    keys : tuple of str or int
        The way to the setting within the document.
    """

    file: str = ""
    keys: tuple[str | int, ...] = ()

    def error(self, key: Keys, message: str) -> ConfigError:
        """Return an error at a key below this place."""
        if not self.file:
            return ConfigError(f"advise: {message}")
        from pathlib import Path

        text = Path(self.file).read_text(encoding="utf-8")
        line = line_of(text, (*self.keys, *key))
        return ConfigError(f"{shown_path(self.file)}:{line}: {message}")


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What ``[tool.advise.rules.CODE]`` sets for one rule; None where it says nothing."""

    min_speedup: float | None = None
    fail_above: float | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place sets; None, or nothing in it, where it says nothing.

    Attributes
    ----------
    machine : str or None
        A name or a path that ends in .json, which counts from the folder of the file.
    sizes : mapping of str to number
    select, ignore, extend_select : tuple of str or None
        Codes or prefixes.
    min_speedup, fail_above : float or None
        For all rules.
    rules : mapping of str to RuleOptions
        By code or name, as written.
    origin : Origin
    """

    machine: str | None = None
    sizes: Mapping[str, Number] = field(default_factory=dict)
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    min_speedup: float | None = None
    fail_above: float | None = None
    rules: Mapping[str, RuleOptions] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a file, all places taken together.

    Attributes
    ----------
    size_origins : mapping of str to str
        ``-D`` or the configuration file, for each size.
    machine_origin : Origin
    layers : tuple of Layer
        What was taken together, the strongest last.
    """

    machine: str | None
    machine_origin: Origin
    sizes: Mapping[str, Number]
    size_origins: Mapping[str, str]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    extend_select: tuple[str, ...]
    min_speedup: float | None
    fail_above: float | None
    rules: Mapping[str, RuleOptions]
    layers: tuple[Layer, ...]


def settle(layers: tuple[Layer, ...]) -> Settings:
    """Return what holds when later layers go over earlier ones.

    A setting that is given replaces the earlier one; sizes and options of rules are replaced
    one by one. A general limit replaces the earlier limits of single rules too, and a new
    selection whatever was added to the old one or ignored in it.
    """
    machine: str | None = None
    machine_origin = Origin()
    sizes: dict[str, Number] = {}
    origins: dict[str, str] = {}
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    min_speedup: float | None = None
    fail_above: float | None = None
    rules: dict[str, RuleOptions] = {}
    for layer in layers:
        if layer.machine is not None:
            machine, machine_origin = layer.machine, layer.origin
        sizes.update(layer.sizes)
        named = shown_path(layer.origin.file) if layer.origin.file else "-D"
        origins.update(dict.fromkeys(layer.sizes, named))
        if layer.select is not None:
            select, ignore, extend_select = layer.select, (), ()
        ignore = ignore if layer.ignore is None else layer.ignore
        extend_select = extend_select if layer.extend_select is None else layer.extend_select
        if layer.min_speedup is not None:
            min_speedup = layer.min_speedup
            rules = {name: RuleOptions(None, old.fail_above) for name, old in rules.items()}
        if layer.fail_above is not None:
            fail_above = layer.fail_above
            rules = {name: RuleOptions(old.min_speedup, None) for name, old in rules.items()}
        for name, options in layer.rules.items():
            old = rules.get(name, RuleOptions())
            rules[name] = RuleOptions(
                old.min_speedup if options.min_speedup is None else options.min_speedup,
                old.fail_above if options.fail_above is None else options.fail_above,
            )
    return Settings(
        machine, machine_origin, sizes, origins, select, ignore, extend_select,
        min_speedup, fail_above, rules, layers,
    )  # fmt: skip


def shown_path(path: str) -> str:
    """Return the shorter of a path as it is and as seen from the current folder."""
    import os

    relative = os.path.relpath(path)
    return min(relative, path, key=len)


MACHINE_VARIABLE = "ADVISE_MACHINE"


def choose_machine(name: str | None) -> str:
    """Return the name of a machine whose profile loads: the default one where none is named.

    Raises
    ------
    CommandError
        When it is unknown, or its profile is broken.
    """
    from costdb.machines import MachineError, default_machine, load_machine
    from costdb.store.place import StoreError

    try:
        chosen = name or default_machine()
        load_machine(chosen)
    except (MachineError, StoreError) as error:
        raise wrong_use(str(error)) from error
    return chosen
