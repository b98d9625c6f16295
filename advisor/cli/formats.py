"""Text or JSON: what the commands have in common that show one result."""

from __future__ import annotations

import os
import sys

from advisor.config.errors import wrong_use
from advisor.report.style import Style, detect_style

TEXT, JSON = "text", "json"


def require_format(name: str) -> None:
    """Refuse a format that there is not.

    Raises
    ------
    CommandError
        With those that there are.
    """
    if name not in (TEXT, JSON):
        raise wrong_use(f"--output-format {name}: expected {TEXT} or {JSON}")


def text_style(output: str | None) -> Style:
    """Return how text may look on standard output, or plain for a file."""
    return detect_style(sys.stdout, os.environ) if output is None else Style()
