"""What pages of the documentation show of the project itself: sessions, tables, pictures.

Pages are committed with what they show, so that a clone has it; ``python docs/render.py`` makes it
anew, and the build of the site fails where a page shows something else. Nothing here needs MkDocs.
"""

from __future__ import annotations

import re
from pathlib import Path

from generators.sessions import has_sessions, with_output, workshop
from generators.tables import rule_pages, with_tables

__all__ = ["committed_pages", "generated_pages", "rendered"]

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def committed_pages(root: Path) -> list[Path]:
    """Return every page that is kept with what it shows, the README among them."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def generated_pages(root: Path) -> dict[str, str]:
    """Return the pages of the site that are not kept below ``docs``, by their paths there."""
    guides = ("ARCHITECTURE.md", "CONTRIBUTING.md")
    return {
        **rule_pages(),
        **{name.lower(): for_site((root / name).read_text(encoding="utf-8")) for name in guides},
    }


def rendered(page: Path, root: Path, *, again: bool = True, record: bool = False) -> str:
    """Return a page with its tables and sessions made anew.

    Parameters
    ----------
    page, root : Path
        The page, and the project's directory.
    again, record : bool
        As for :func:`generators.sessions.with_output`.

    Raises
    ------
    SessionError
        When a session does not go as the page says.
    """
    text = with_tables(page.read_text(encoding="utf-8"))
    if not has_sessions(text):
        return text
    with workshop(root) as shop:
        return with_output(text, shop, again=again, record=record)


def for_site(markdown: str) -> str:
    """Return Markdown whose links to files that are not on the site are text."""

    def turned(match: re.Match[str]) -> str:
        text, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match[0]
        if target.startswith("docs/"):
            return f"[{text}]({target.removeprefix('docs/')})"
        guide = target.removeprefix("../")
        if guide in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
            return f"[{text}]({guide.lower()})"
        return text if target.startswith("../") or guide.startswith("README.md") else match[0]

    return _LINK.sub(turned, markdown)
