"""What the user chose in the editor: machine, sizes, the least gain shown, inlay hints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.config.effective import Resolver
from advisor.config.files import Configurations
from advisor.config.layer import CommandError, ConfigError, Layer
from advisor.engine import Options
from advisor.observations import Observations

SECTION = "advise"
_KNOWN = ("machine", "sizes", "minSpeedup", "inlayHints")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the editor; None where it says nothing.

    Attributes
    ----------
    machine : str or None
        A name or a profile.json.
    sizes : mapping of str to number
        Over what the source and configuration files say.
    min_speedup : float or None
        Smaller predicted gains are not shown.
    inlay_hints : bool
    """

    machine: str | None = None
    sizes: Mapping[str, int | float] = field(default_factory=dict)
    min_speedup: float | None = None
    inlay_hints: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen by command in this session; it goes over the settings.

    Attributes
    ----------
    machine : str or None
    sizes : mapping of str to number
    """

    machine: str | None = None
    sizes: Mapping[str, int | float] = field(default_factory=dict)

    def over(self, settings: Settings) -> Settings:
        """Return the settings as they are with these choices."""
        return replace(
            settings,
            machine=self.machine or settings.machine,
            sizes={**settings.sizes, **self.sizes},
        )


class SettingError(ValueError):
    """A value that a setting cannot have; the message is one line."""


def read_settings(given: Any, default: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Return settings from an editor's JSON, and one line for each value that cannot be.

    Parameters
    ----------
    given : JSON
        The section ``advise``, or an object that holds it. Null means nothing is set.
    default : Settings
        Holds for what is not set, or set wrongly.
    """
    if isinstance(given, dict) and isinstance(given.get(SECTION), dict):
        given = given[SECTION]
    if given is None:
        return default, ()
    if not isinstance(given, dict):
        return default, (f"{SECTION}: settings must be an object",)
    settings, problems = default, [
        f"{SECTION}.{name}: unknown setting; known are {', '.join(_KNOWN)}"
        for name in given
        if name not in _KNOWN and not str(name).startswith(("server", "trace"))
    ]  # fmt: skip
    for name, read in _READERS.items():
        if given.get(name) is None:
            continue
        try:
            settings = read(settings, given[name])
        except SettingError as problem:
            problems.append(f"{SECTION}.{problem}")
    return settings, tuple(problems)


def machine_name(value: Any) -> str | None:
    """Return the name of a machine whose profile loads; None for an empty one.

    Raises
    ------
    SettingError
        It is unknown, or its profile is broken.
    """
    from costdb.machines import MachineError, load_machine

    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise SettingError("machine: must be a name or the path of a profile")
    try:
        load_machine(value)
    except MachineError as error:
        raise SettingError(f"machine: {error}") from error
    return value


def size(name: Any, value: Any) -> tuple[str, int | float]:
    """Return a size and its value.

    Raises
    ------
    SettingError
        The name is none, or the value is not a positive number.
    """
    if not (isinstance(name, str) and all(part.isidentifier() for part in name.split("."))):
        raise SettingError(f"sizes: {name!r} is not a name")
    if isinstance(value, bool) or not isinstance(value, int | float) or not _positive(value):
        raise SettingError(f"sizes: {name} = {value!r} is not a positive number")
    return name, int(value) if isinstance(value, float) and value.is_integer() else value


def _positive(value: int | float) -> bool:
    return value > 0 and math.isfinite(value)


def _machine(settings: Settings, value: Any) -> Settings:
    return replace(settings, machine=machine_name(value) or settings.machine)


def _sizes(settings: Settings, value: Any) -> Settings:
    if not isinstance(value, dict):
        raise SettingError('sizes: must be an object such as {"N": 1000}')
    read = dict(size(name, number) for name, number in value.items())
    return replace(settings, sizes={**settings.sizes, **read})


def _min_speedup(settings: Settings, value: Any) -> Settings:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _positive(value):
        raise SettingError(f"minSpeedup: {value!r} is not a positive number")
    return replace(settings, min_speedup=float(value))


def _inlay_hints(settings: Settings, value: Any) -> Settings:
    if not isinstance(value, bool):
        raise SettingError(f"inlayHints: {value!r} is neither true nor false")
    return replace(settings, inlay_hints=value)


_READERS = {
    "machine": _machine,
    "sizes": _sizes,
    "minSpeedup": _min_speedup,
    "inlayHints": _inlay_hints,
}


# What holds for a file: its configuration, and over it what the editor says.

EDITOR = "editor"
"""Named as what bound a size, where others are bound by a line or by ``-D``."""

NO_MACHINE = (
    "no machine chosen: set advise.machine or [tool.advise], or run the command"
    " advise.setMachine, or 'advise calibrate' once in a terminal; known: {known}"
)


class OptionsError(ValueError):
    """Settings or a configuration that cannot be used; the message is one line."""


@dataclass(slots=True)
class OptionsOfFiles:
    """Looks up what holds for files; configuration files are read once.

    Attributes
    ----------
    settings : Settings
        Of the editor.
    """

    settings: Settings
    _resolver: Resolver = field(init=False)
    _has_default: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        layer = Layer(
            machine=self.settings.machine,
            sizes=self.settings.sizes,
            min_speedup=self.settings.min_speedup,
        )
        self._resolver = Resolver(Configurations(layer), None, Observations())

    def of(self, path: str) -> Options | None:
        """Return the options for a file; None for one that its configuration excludes.

        Raises
        ------
        OptionsError
            No machine is chosen, or a configuration is wrong.
        """
        try:
            if self._resolver.configurations.excludes(path):
                return None
            if self._resolver.settings(path).machine is None and not self._has_default:
                _require_default()
                self._has_default = True
            options = self._resolver.effective(path).options
        except (CommandError, ConfigError) as error:
            raise OptionsError(str(error).removeprefix("advise: ")) from error
        ours = dict.fromkeys(self.settings.sizes, EDITOR)
        return replace(options, size_origins={**options.size_origins, **ours})


def _require_default() -> None:
    from costdb.machines import default_machine, machine_names
    from costdb.store.place import StoreError

    try:
        if default_machine() is None:
            raise OptionsError(NO_MACHINE.format(known=", ".join(machine_names())))
    except StoreError as error:
        raise OptionsError(str(error)) from error
