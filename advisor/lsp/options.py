"""What holds for a file: its configuration, and over it what the editor says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from advisor.config.effective import Resolver
from advisor.config.errors import CommandError
from advisor.config.find import Configurations
from advisor.config.layer import ConfigError, Layer
from advisor.engine import Options
from advisor.lsp.settings import Settings
from advisor.observations import Observations

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
