"""Settings given in several places, later ones over earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.config.places import Keys, line_of

Number = int | float


class ConfigError(ValueError):
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
