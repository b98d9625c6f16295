"""Read ``[tool.advise]`` with hand-made checks: the schema's library is too slow for a linter.

``config.schema.json`` describes the same table for editors; a test holds the two together.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, Literal, get_args

from costdb.records import DOTTED_NAME, dataclass, field, nearest, replace

# Settings given in several places, later ones over earlier ones.


# On which line of a TOML document a key stands; the standard library's parser does not say.

Keys = Sequence[str | int]
"""The way to a value within a document."""

_LINE_END = re.compile(r"(?<=\n)")


def line_of(text: str, keys: Keys) -> int:
    """Return the line, from 1, of the statement that brings `keys` into a valid document.

    It ends with the first line up to which the document parses and has them, and begins behind the
    last one before up to which it parses. Only called for errors.
    """
    lines, before = _LINE_END.split(text), 0
    for end in range(1, len(lines) + 1):
        document = _parsed(lines[:end])
        if document is not None:
            if _has(document, keys):
                break
            before = end
    return before + 1


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    import tomllib  # only for errors: a run without any must not pay for it

    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _has(document: Any, keys: Keys) -> bool:
    try:
        reduce(getitem, keys, document)
    except (KeyError, IndexError, TypeError):
        return False
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


@contextmanager
def using(path: str) -> Iterator[None]:
    """Have what the system refuses of a path within the block told in one line."""
    try:
        yield
    except OSError as error:
        raise system_error(error, path) from error


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
    found: dict[str, Any] = {"machine": None, "min_speedup": None, "fail_above": None}
    found |= {"select": (), "ignore": (), "extend_select": ()}
    machine_origin = Origin()
    sizes: dict[str, Number] = {}
    origins: dict[str, str] = {}
    rules: dict[str, RuleOptions] = {}
    for layer in layers:
        if layer.machine is not None:
            machine_origin = layer.origin
        sizes.update(layer.sizes)
        named = shown_path(layer.origin.file) if layer.origin.file else "-D"
        origins.update(dict.fromkeys(layer.sizes, named))
        if layer.select is not None:
            found |= {"ignore": (), "extend_select": ()}
        stated = {name: getattr(layer, name) for name in found}
        found |= {name: value for name, value in stated.items() if value is not None}
        for limit in ("min_speedup", "fail_above"):
            if stated[limit] is not None:
                rules = {name: replace(old, **{limit: None}) for name, old in rules.items()}
        for name, options in layer.rules.items():
            old = rules.get(name, RuleOptions())
            rules[name] = RuleOptions(
                old.min_speedup if options.min_speedup is None else options.min_speedup,
                old.fail_above if options.fail_above is None else options.fail_above,
            )
    return Settings(
        machine_origin=machine_origin,
        sizes=sizes,
        size_origins=origins,
        rules=rules,
        layers=layers,
        **found,
    )


def shown_path(path: str) -> str:
    """Return the shorter of a path as it is and as seen from the current folder."""
    relative = os.path.relpath(path)
    return min(relative, path, key=len)


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


TABLE = ("tool", "advise")
LARGEST_NUMBER = 1e18

# Spelt out here, because a module of a report must not be imported to read a file.
OutputFormat = Literal[
    "full", "concise", "json", "json-lines", "github", "gitlab", "sarif", "junit", "rdjson",
    "markdown", "html",
]  # fmt: skip
OUTPUT_FORMATS: tuple[str, ...] = get_args(OutputFormat)

_SIZE = re.compile(DOTTED_NAME)
_CODE = re.compile(r"[A-Z]+[0-9]*|[a-z0-9]+(-[a-z0-9]+)+")
_RULE = re.compile(r"[A-Z]+[0-9]+|[a-z0-9]+(-[a-z0-9]+)*")
# A file without the word cannot hold the table: no TOML parser for it. Keys may hold escapes.
_MAY_HOLD_TABLE = re.compile(rb"advise|\\[uUx]")


@dataclass(frozen=True, slots=True)
class Override:
    """What holds for the files that match `paths`."""

    paths: tuple[str, ...]
    layer: Layer


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration file.

    Attributes
    ----------
    file : str
        Empty when there is none.
    root : str
        The folder that patterns count from.
    layer : Layer
    exclude : tuple of str
        Patterns of files and folders to leave out.
    output_format : str or None
    overrides : tuple of Override
        In order; later ones are stronger.
    """

    file: str
    root: str
    layer: Layer
    exclude: tuple[str, ...] = ()
    output_format: str | None = None
    overrides: tuple[Override, ...] = ()


class _Problem(Exception):
    """What is wrong, and the way to it below the table."""

    def __init__(self, keys: Keys, message: str) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


def read_configuration(file: str, *, required: bool = False) -> Configuration | None:
    """Return what a TOML file configures; None when it has no ``[tool.advise]``.

    Parameters
    ----------
    file : str
    required : bool
        Whether a missing table is an error.

    Raises
    ------
    ConfigError
        With file and line: not readable, not TOML, an unknown key, or a wrong value.
    """
    shown = shown_path(file)
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"advise: {shown}: {error.strerror or error}") from error
    table = _table(data, shown) if _MAY_HOLD_TABLE.search(data) else None
    if table is None:
        if required:
            raise ConfigError(f"advise: {shown}: has no table [tool.advise]")
        return None
    try:
        return configuration_of(table, file)
    except _Problem as problem:
        line = line_of(data.decode(), (*TABLE, *problem.keys))
        raise ConfigError(f"{shown}:{line}: {_dotted(problem.keys)}: {problem}") from None


def _table(data: bytes, shown: str) -> Any:
    import tomllib

    try:
        document: Any = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{shown}:{line}: not TOML: not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
        place = f"{found[2]}:{found[3]}" if found else str(data.count(b"\n") + 1)
        message = found[1] if found else str(error)
        raise ConfigError(f"{shown}:{place}: not TOML: {message}") from error
    except RecursionError as error:
        raise ConfigError(f"{shown}:1: not TOML: nested too deeply") from error
    except ValueError as error:  # a number with thousands of digits
        raise ConfigError(f"{shown}:1: cannot be read: {error}") from error
    tool = document.get("tool")
    return tool.get("advise") if isinstance(tool, dict) else None


def configuration_of(table: Any, file: str) -> Configuration:
    """Return what a parsed ``[tool.advise]`` configures.

    Raises
    ------
    _Problem
        A key is unknown or a value is wrong; :func:`read_configuration` adds the line.
    """
    values = _members(table, (), {*_SETTINGS, "exclude", "output-format", "overrides"})
    overrides = []
    for number, entry in enumerate(_array(values.get("overrides", []), ("overrides",))):
        keys = ("overrides", number)
        one = _members(entry, keys, {"paths", *_SETTINGS})
        if "paths" not in one:
            raise _Problem(keys, "paths are missing: which files is this for?")
        paths = _patterns(one["paths"], (*keys, "paths"))
        if not paths:
            raise _Problem((*keys, "paths"), "expected at least one pattern")
        overrides.append(Override(paths, _layer(one, keys, file)))
    return Configuration(
        file=file,
        root=str(Path(file).parent),
        layer=_layer(values, (), file),
        exclude=_patterns(values.get("exclude", []), ("exclude",)),
        output_format=_format(values["output-format"]) if "output-format" in values else None,
        overrides=tuple(overrides),
    )


def _layer(values: Mapping[str, Any], keys: Keys, file: str) -> Layer:
    settings: dict[str, Any] = {
        name.replace("-", "_"): read(values[name], (*keys, name))
        for name, read in _SETTINGS.items()
        if name in values
    }
    machine = settings.get("machine")
    if machine is not None and machine.endswith(".json"):
        settings["machine"] = str(Path(file).parent / machine)
    return Layer(**settings, origin=Origin(file, (*TABLE, *keys)))


def _members(value: Any, keys: Keys, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Problem(keys, "expected a table")
    for key in value:
        if key not in known:
            raise _Problem((*keys, key), f"unknown key{nearest(key, sorted(known))}")
    return value


def _array(value: Any, keys: Keys) -> list[Any]:
    if not isinstance(value, list):
        raise _Problem(keys, "expected an array")
    return value


def _text(value: Any, keys: Keys) -> str:
    if not isinstance(value, str) or not value:
        raise _Problem(keys, "expected a string that is not empty")
    return value


def _number(value: Any, keys: Keys) -> Number:
    # not bool, which Python counts among the numbers
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise _Problem(keys, "expected a number")
    if not 0 < value <= LARGEST_NUMBER:
        raise _Problem(keys, f"expected a positive number up to {LARGEST_NUMBER:g}")
    return value


def _ratio(value: Any, keys: Keys) -> float:
    return float(_number(value, keys))


def _format(value: Any) -> str:
    if value not in OUTPUT_FORMATS:
        raise _Problem(("output-format",), f"expected one of {', '.join(OUTPUT_FORMATS)}")
    return str(value)


def _patterns(value: Any, keys: Keys) -> tuple[str, ...]:
    return tuple(_text(one, (*keys, place)) for place, one in enumerate(_array(value, keys)))


def _codes(value: Any, keys: Keys) -> tuple[str, ...]:
    codes = _patterns(value, keys)
    for place, code in enumerate(codes):
        if not _CODE.fullmatch(code):
            raise _Problem((*keys, place), "expected a code, a prefix or a name, such as ADV2")
    return codes


def _sizes(value: Any, keys: Keys) -> Mapping[str, Number]:
    if not isinstance(value, dict):
        raise _Problem(keys, "expected a table, such as { N = 1000 }")
    for name in value:
        if not _SIZE.fullmatch(name):
            raise _Problem((*keys, name), "expected a name, such as N")
    return {name: _number(size, (*keys, name)) for name, size in value.items()}


def _rules(value: Any, keys: Keys) -> Mapping[str, RuleOptions]:
    if not isinstance(value, dict):
        raise _Problem(keys, "expected a table of tables, one for each rule")
    found = {}
    for rule, entry in value.items():
        place = (*keys, rule)
        if not _RULE.fullmatch(rule):
            raise _Problem(place, "expected a code or a name of a rule, such as ADV201")
        options = _members(entry, place, {"min-speedup", "fail-above"})
        limits = {name: _ratio(limit, (*place, name)) for name, limit in options.items()}
        found[rule] = RuleOptions(limits.get("min-speedup"), limits.get("fail-above"))
    return found


_SETTINGS: Mapping[str, Callable[[Any, Keys], Any]] = {
    "machine": _text,
    "sizes": _sizes,
    "select": _codes,
    "ignore": _codes,
    "extend-select": _codes,
    "min-speedup": _ratio,
    "fail-above": _ratio,
    "rules": _rules,
}


def _dotted(keys: Keys) -> str:
    shown = ""
    for key in keys:
        shown += f"[{key}]" if isinstance(key, int) else f".{key}"
    return f"tool.advise{shown}"


# Patterns of paths: ``*`` and ``?`` within a name, ``**`` across folders.


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern matches `path` or a folder that it lies in.

    Parameters
    ----------
    path : str
        Relative to where the patterns are written, with forward slashes.
    patterns : iterable of str
        One without a slash matches names at any depth; one with a slash, the path from its
        start. A slash at the end changes nothing.
    """
    parts = path.split("/")
    for pattern in patterns:
        wanted = pattern.removeprefix("./").rstrip("/").split("/")
        if len(wanted) == 1 and any(fnmatchcase(part, wanted[0]) for part in parts):
            return True
        if len(wanted) > 1 and any(_fits(parts[: n + 1], wanted) for n in range(len(parts))):
            return True
    return False


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the parts of a path are those of a pattern."""
    if not parts or not wanted:
        return not parts and not wanted
    if wanted[0] != "**":
        return fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])
    # whatever is within a folder, but not the folder itself
    return len(wanted) == 1 or any(_fits(parts[n:], wanted[1:]) for n in range(len(parts)))


FILE_NAME = "pyproject.toml"


@dataclass(slots=True)
class Configurations:
    """Looks configurations up, each folder once.

    Attributes
    ----------
    command_line : Layer
        Goes over every file's settings.
    fixed : Configuration or None
        Holds for all files instead of what is found near them.
    """

    command_line: Layer
    fixed: Configuration | None = None
    _resolved: dict[str, Path] = field(default_factory=dict)
    _by_folder: dict[Path, Configuration] = field(default_factory=dict)
    _settled: dict[tuple[str, tuple[int, ...]], Settings] = field(default_factory=dict)

    def of_folder(self, folder: str) -> Configuration:
        """Return the configuration for the files in a folder.

        Raises
        ------
        ConfigError
            The nearest file with a table ``[tool.advise]`` is wrong.
        """
        return self.fixed or self._at(self._resolve(folder))

    def _at(self, place: Path) -> Configuration:
        """Return the configuration of the nearest folder, from this one up, that has one."""
        if place not in self._by_folder:
            file = place / FILE_NAME
            found = read_configuration(str(file)) if file.is_file() else None
            if found is None:
                found = without_file() if place.parent == place else self._at(place.parent)
            self._by_folder[place] = found
        return self._by_folder[place]

    def of_file(self, path: str) -> Settings:
        """Return the settings for a file, overrides by path and command line included."""
        configuration = self.of_folder(os.path.split(path)[0] or ".")
        matching: tuple[int, ...] = ()
        if configuration.overrides:
            below = self._below(path, configuration.root)
            matching = tuple(
                number
                for number, override in enumerate(configuration.overrides)
                if matches(below, override.paths)
            )
        key = (configuration.file, matching)
        if key not in self._settled:
            overrides = (configuration.overrides[number].layer for number in matching)
            self._settled[key] = settle((configuration.layer, *overrides, self.command_line))
        return self._settled[key]

    def excludes(self, path: str) -> bool:
        """Return whether the configuration for a file or folder leaves it out."""
        configuration = self.of_folder(os.path.split(path)[0] or ".")
        if not configuration.exclude:
            return False
        return matches(self._below(path, configuration.root), configuration.exclude)

    def _resolve(self, folder: str) -> Path:
        if folder not in self._resolved:
            self._resolved[folder] = Path(folder).resolve()
        return self._resolved[folder]

    def _below(self, path: str, root: str) -> str:
        """Return a path as seen from the folder of a configuration, with forward slashes."""
        whole = self._resolve(str(Path(path).parent)) / Path(path).name
        return os.path.relpath(whole, root).replace(os.sep, "/")


def without_file() -> Configuration:
    """Return the configuration that says nothing."""
    return Configuration("", str(Path.cwd()), Layer())


def configurations(
    command_line: Layer, *, file: str | None = None, isolated: bool = False
) -> Configurations:
    """Return what looks configurations up.

    Parameters
    ----------
    command_line : Layer
    file : str or None
        The one file to read, for all files.
    isolated : bool
        Whether to read none.

    Raises
    ------
    ConfigError
        `file` is wrong.
    """
    if isolated:
        return Configurations(command_line, without_file())
    if file is None:
        return Configurations(command_line)
    path = str(Path(file).resolve())
    return Configurations(command_line, read_configuration(path, required=True))
