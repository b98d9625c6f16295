"""The options of every command, as the program prints them."""

from __future__ import annotations

from advisor.cli.app import COMMANDS
from generators.markdown import fence
from generators.sessions import SessionError, Workshop


def pages(shop: Workshop) -> dict[str, str]:
    """Return the page of options."""
    parts = [
        "# Commands and options\n",
        "`advise FILE` is short for `advise check FILE`. Options that say *env var* can be given "
        "in the environment instead; lasting settings belong into `pyproject.toml`, under "
        "[`tool.advise`](schemas/config.md).\n",
    ]
    for command in COMMANDS:
        outcome = shop.run(f"advise {command} --help")
        if outcome.exit_code != 0:
            raise SessionError(f"`advise {command} --help` ended with {outcome.exit_code}")
        parts += [f"## advise {command}\n", fence(outcome.output, "text")]
    return {"options.md": "\n".join(parts)}
