"""Pictures of the pages that commands write, taken by a browser without a window.

``python -m generators.pictures FOLDER [NAME...]``, in ``docs``, writes the pages of a report, of a
verification and of machines side by side into the folder, and pictures of each and of pages that
are named by their files: wide and narrow, light and dark. Numbers of the verification are those of
the machine that it runs on.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_ALONE = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
_LONGEST_S = 120

PAGES = {
    "report": ("check", "examples/adi.py", "examples/spectral.py", "examples/box_sum.py"),
    "crossover": ("check", "examples/box_sum.py", "--machine", "t3e"),
    "machines": ("choose", "examples/box_sum.py", "--over", "machine"),
    "verify": ("verify", "examples/box_sum.py", "examples/adi.py", "examples/fft2d.py"),
}
"""What makes each page; a report's exit code 1 says that there are findings."""
WIDTHS = {"wide": 1300, "narrow": 400}
HEIGHT, HEIGHTS = 1500, {"machines": 560, "verify": 960}


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


def make_page(name: str, page: Path) -> None:
    """Write one of `PAGES`.

    Raises
    ------
    CalledProcessError
        The command failed.
    """
    asked = (*PAGES[name], "--output-format", "html", "--output-file", str(page))
    ended = subprocess.run(
        [Path(sys.executable).with_name("advise"), *asked], cwd=ROOT, check=False, timeout=600
    )
    if ended.returncode > 1:
        raise subprocess.CalledProcessError(ended.returncode, asked)


def main() -> int:
    """Write all pages and their pictures into a folder."""
    folder, chromium = Path(sys.argv[1]).resolve(), browser()
    if chromium is None:
        print(f"no browser: none of {', '.join(_BROWSERS)} is installed", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PAGES:
        page = Path(name)
        if name in PAGES:
            page = folder / f"{name}.html"
            make_page(name, page)
        for size, width in WIDTHS.items():
            for dark in (False, True):
                picture = folder / f"{page.stem}-{size}-{'dark' if dark else 'light'}.png"
                pixels = width, HEIGHTS.get(name, HEIGHT)
                chromium.screenshot(page, picture, pixels, dark=dark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
