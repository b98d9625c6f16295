"""Hooks of MkDocs: add the generated pages, and fail where a page shows what is no longer so."""

from __future__ import annotations

import logging
from pathlib import Path

from generators import for_site, generated_pages, rendered
from generators.pictures import browser, photograph
from generators.sessions import SessionError, workshop
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent


def on_pre_build(config: MkDocsConfig) -> None:
    """Hold the README, which is no page of the site, to what its commands print."""
    _hold(ROOT / "README.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated files."""
    for path, content in generated_pages(ROOT).items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Run the sessions of a page, and leave links into the source out."""
    if page.file.abs_src_path is not None:
        _hold(Path(page.file.abs_src_path))
    return for_site(markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Make the site's pictures anew; ``docs/pictures`` keeps those of a day for a clone."""
    chromium = browser()
    if chromium is None:
        logging.getLogger("mkdocs").info("no browser: pictures are those of docs/pictures")
        return
    site = Path(config.site_dir)
    try:
        with workshop(ROOT) as shop:
            photograph(chromium, shop, site / "index.html", site / "pictures")
    except SessionError as error:
        raise PluginError(f"pictures: {error}") from error


def _hold(page: Path) -> None:
    try:
        made = rendered(page, ROOT)
    except SessionError as error:
        raise PluginError(f"{page.name}: {error}") from error
    if made != page.read_text(encoding="utf-8"):
        raise PluginError(f"{page} is not what its commands print: python docs/render.py {page}")
