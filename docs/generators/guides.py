"""Guides that live at the top of the project, where people who read the source look for them."""

from __future__ import annotations

import re
from pathlib import Path

# Where the site has what a guide links to. Other files are not on the site: their links go.
_TARGETS = {
    "README.md#tests": "install.md#tests",
    "README.md": "install.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "docs/annotations.md": "annotations.md",
    "docs/models": "models/index.md",
}
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_MARKER = re.compile(r"^<!-- [a-z-]+ -->\n", re.MULTILINE)


def pages(root: Path) -> dict[str, str]:
    """Return the pages made from README, CONTRIBUTING and ARCHITECTURE."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    parts = [_section(readme, "First run"), _section(readme, "Tests")]
    return {
        "install.md": _MARKER.sub("", on_site("# Install\n\n" + "\n".join(parts))),
        "contributing.md": on_site((root / "CONTRIBUTING.md").read_text(encoding="utf-8")),
        "architecture.md": on_site((root / "ARCHITECTURE.md").read_text(encoding="utf-8")),
    }


def on_site(markdown: str) -> str:
    """Return Markdown with links to project files turned into links to pages of the site."""

    def turned(match: re.Match[str]) -> str:
        text, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match[0]
        if target in _TARGETS:
            return f"[{text}]({_TARGETS[target]})"
        return f"[{text}]({target.removeprefix('docs/')})" if target.startswith("docs/") else text

    return _LINK.sub(turned, markdown)


def _section(markdown: str, title: str) -> str:
    """Return the section with a title, its heading included."""
    found = re.search(
        rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", markdown, re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise LookupError(f'README.md has no section "{title}"')
    return found[0]
