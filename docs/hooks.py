"""Hooks of MkDocs: adds the generated pages, runs the sessions of the others, fills the menu."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

from generators import generated_pages
from generators.sessions import SessionError, has_sessions, with_output, workshop
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated files; in the menu, replace a folder by its pages."""
    try:
        with workshop(ROOT) as shop:
            pages = generated_pages(ROOT, shop)
    except SessionError as error:
        raise PluginError(f"examples: {error}") from error
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    known = sorted(file.src_uri for file in files.documentation_pages())
    config.nav = _filled(config.nav, known)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Run the sessions of a page."""
    if not has_sessions(markdown):
        return markdown
    with ExitStack() as stack:
        shop = stack.enter_context(workshop(ROOT))
        try:
            return with_output(markdown, shop)
        except SessionError as error:
            raise PluginError(f"{page.file.src_uri}: {error}") from error


def _filled(nav: Any, known: list[str]) -> Any:
    """Return the menu with each entry that ends in ``/`` replaced by the pages of that folder.

    ``./`` stands for the pages at the top that the menu does not name; a folder without pages
    leaves no entry.
    """
    named = frozenset(_targets(nav))

    def filled(entry: Any) -> Any:
        if isinstance(entry, list):
            return [inner for part in entry for inner in _as_list(filled(part))]
        if isinstance(entry, dict):
            found = {title: filled(target) for title, target in entry.items()}
            return {title: target for title, target in found.items() if target} or []
        if entry == "./":
            return [path for path in known if "/" not in path and path not in named]
        if entry.endswith("/"):
            return sorted((path for path in known if path.startswith(entry)), key=_place)
        return entry

    return filled(nav)


def _targets(nav: Any) -> list[str]:
    """Return every page or folder that a menu names."""
    if isinstance(nav, list):
        return [target for entry in nav for target in _targets(entry)]
    if isinstance(nav, dict):
        return [target for entry in nav.values() for target in _targets(entry)]
    return [nav]


def _as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _place(path: str) -> tuple[bool, str]:
    """Sort an index before the rest, and those by name."""
    stem = PurePosixPath(path).stem
    return (stem != "index", stem)
