"""What the user chose in the editor: machine, sizes, the least gain shown, inlay hints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from advisor.config.effective import Resolver
from advisor.config.files import Configurations, Layer
from advisor.engine import Options
from advisor.observed import Observations
from costdb.records import dataclass, field, replace

SECTION = "advise"


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

    def with_chosen(self, chosen: Settings) -> Settings:
        """Return the settings with the machine and the sizes that a command chose over them."""
        machine, sizes = chosen.machine or self.machine, {**self.sizes, **chosen.sizes}
        return replace(self, machine=machine, sizes=sizes)


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
    read, problems = dict[str, Any](), list[str]()
    for name, value in given.items():
        if name not in _READERS and not str(name).startswith(("server", "trace")):
            known = ", ".join(_READERS)
            problems.append(f"{SECTION}.{name}: unknown setting; known are {known}")
        elif name in _READERS and value is not None:
            key, reader = _READERS[name]
            try:
                read[key] = reader(value)
            except SettingError as problem:
                problems.append(f"{SECTION}.{problem}")
    machine = read.pop("machine", None) or default.machine
    sizes = {**default.sizes, **read.pop("sizes", {})}
    return replace(default, machine=machine, sizes=sizes, **read), tuple(problems)


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
    number = _positive(value, f"sizes: {name} =")
    return name, int(number) if isinstance(number, float) and number.is_integer() else number


def _positive(value: Any, what: str) -> int | float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not value > 0 or not math.isfinite(value):
        raise SettingError(f"{what} {value!r} is not a positive number")
    found: int | float = value
    return found


def _sizes(value: Any) -> Mapping[str, int | float]:
    if not isinstance(value, dict):
        raise SettingError('sizes: must be an object such as {"N": 1000}')
    return dict(size(name, number) for name, number in value.items())


def _inlay_hints(value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"inlayHints: {value!r} is neither true nor false")
    return value


_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "machine": ("machine", machine_name),
    "sizes": ("sizes", _sizes),
    "minSpeedup": ("min_speedup", lambda value: float(_positive(value, "minSpeedup:"))),
    "inlayHints": ("inlay_hints", _inlay_hints),
}


# What holds for a file: its configuration, and over it what the editor says.

EDITOR = "editor"
"""Named as what bound a size, where others are bound by a line or by ``-D``."""


class OptionsOfFiles:
    """Looks up what holds for files; configuration files are read once.

    Parameters
    ----------
    settings : Settings
        Of the editor.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        layer = Layer(
            machine=settings.machine, sizes=settings.sizes, min_speedup=settings.min_speedup
        )
        self._resolver = Resolver(Configurations(layer), None, Observations())

    def of(self, path: str) -> Options | None:
        """Return the options for a file; None for one that its configuration excludes.

        Raises
        ------
        CommandError
            A configuration is wrong.
        """
        if self._resolver.configurations.excludes(path):
            return None
        options = self._resolver.effective(path).options
        ours = dict.fromkeys(self.settings.sizes, EDITOR)
        return replace(options, size_origins={**options.size_origins, **ours})
