"""How a command says that it was used wrongly: one line."""

from __future__ import annotations


class CommandError(Exception):
    """Wrong use or bad input; its message is the whole line, exit code 2."""


def wrong_use(message: str) -> CommandError:
    """Return the error for a problem that has no place in a file."""
    return CommandError(f"advise: {message}")


def system_error(error: OSError, path: str) -> CommandError:
    """Return the error for a path that the system refused."""
    return wrong_use(f"{path}: {error.strerror or error}")
