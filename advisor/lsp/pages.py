"""Pages of the rules as files, for the link on a diagnostic.

They are written from the rules that are installed, so they need no network, fit this version,
and exist for rules of other packages too.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from inspect import cleandoc
from pathlib import Path

_log = logging.getLogger(__name__)


@cache
def rule_pages() -> Mapping[str, str]:
    """Return a ``file:`` URI for each code; empty where no file can be written."""
    from platformdirs import user_cache_dir

    return write_pages(Path(user_cache_dir("kernel-advisor", appauthor=False)) / "rules")


def write_pages(folder: Path) -> Mapping[str, str]:
    """Write the page of every rule to a folder and return their URIs by code."""
    from advisor.files import replace_file
    from advisor.transform_registry import rules

    pages: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for rule in rules():
            text = cleandoc(rule.documentation).strip() + "\n"
            if not text.startswith("# "):
                text = f"# {rule.code} {rule.name}\n\n{text}"
            path = folder / f"{rule.code}.md"
            data = text.encode()
            if not (path.is_file() and path.read_bytes() == data):
                replace_file(str(path), data)
            pages[rule.code] = path.resolve().as_uri()
    except (OSError, LookupError) as error:
        _log.warning("no rule pages: %s", error)
    return pages
