"""Pictures in pages: what commands draw, photographed by a browser without a window."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from generators.sessions import SessionError, Workshop

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_ALONE = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
_LONGEST_S = 120


@dataclass(frozen=True, slots=True)
class Picture:
    """What is photographed.

    Attributes
    ----------
    name : str
        Of the file, without its suffix.
    command : str
        Writes ``page.html``; empty for the home page of the site.
    width, height : int
        Of the window, in pixels.
    figure : str
        How the label of the one figure begins that is shown, where it is not the whole page.
    """

    name: str
    command: str
    width: int
    height: int
    figure: str = ""


_FIRST = "examples/first/pictures.py"
_PAGE = "--output-format html -o page.html"
PICTURES = (
    Picture("report", f"advise {_FIRST} --exit-zero {_PAGE}", 1200, 1000),
    Picture("verify", f"advise verify {_FIRST} {_PAGE}", 800, 830),
    Picture(
        "crossover",
        f"advise {_FIRST} --select ADV201 --exit-zero {_PAGE}",
        620,
        440,
        "Speed-up over width",
    ),
    Picture(
        "machines",
        f"advise choose examples/box_sum.py --over machine=node2026,cluster2026,t3e,sp2 {_PAGE}",
        800,
        500,
    ),
    Picture("home", "", 1300, 900),
)


@dataclass(frozen=True, slots=True)
class Browser:
    """A Chromium that is started anew for each page, with a profile of its own.

    Attributes
    ----------
    program : str
    """

    program: str

    def screenshot(self, page: Path, picture: Path, size: tuple[int, int], *, dark: bool) -> None:
        """Take a picture of a page in a window of so many pixels."""
        self._run(page, size[0], size[1], dark, f"--screenshot={picture}")

    def content(self, page: Path, width: int, *, dark: bool) -> str:
        """Return what a page has become after its scripts ran."""
        return self._run(page, width, 1500, dark, "--virtual-time-budget=3000", "--dump-dom")

    def _run(self, page: Path, width: int, height: int, dark: bool, *options: str) -> str:
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        with TemporaryDirectory() as profile:
            asked = (
                *_ALONE,
                scheme,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
            )
            command = [self.program, *asked, *options, page.resolve().as_uri()]
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=_LONGEST_S, check=True
            )
        return ended.stdout


def browser() -> Browser | None:
    """Return a browser, where one is installed."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    return None if found is None else Browser(found)


def photograph(chromium: Browser, shop: Workshop, home: Path, folder: Path) -> None:
    """Make every picture.

    Parameters
    ----------
    chromium : Browser
    shop : Workshop
        Where commands run.
    home, folder : Path
        The home page of the site, and where pictures go.

    Raises
    ------
    SessionError
        When a command fails.
    CalledProcessError
        When the browser does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shop.run(f"advise run --output-format none {_FIRST}")
    for picture in PICTURES:
        page = home
        if picture.command:
            page = shop.folder / "page.html"
            page.unlink(missing_ok=True)
            done = shop.run(picture.command)
            if done.exit_code != 0 or not page.is_file():
                raise SessionError(
                    f"`{picture.command}` ended with {done.exit_code}: {done.output}"
                )
            if picture.figure:
                text = one_figure(page.read_text(encoding="utf-8"), picture.figure)
                page.write_text(text, encoding="utf-8")
        size = (picture.width, picture.height)
        chromium.screenshot(page, folder / f"{picture.name}.png", size, dark=False)


def one_figure(page: str, label: str) -> str:
    """Return a page with the styles of another one, and one figure of it."""
    (styles,) = re.findall(r"<style>.*?</style>", page, re.DOTALL)
    found = [one for one in re.findall(r"<figure>.*?</figure>", page, re.DOTALL) if label in one]
    if not found:
        raise SessionError(f"no figure is called {label!r}")
    return f"<!doctype html><meta charset=utf-8>{styles}<main>{found[0]}</main>"
