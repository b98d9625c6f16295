"""Make anew what pages show: ``python docs/render.py [--record] [PAGE ...]``.

Without pages, all are made anew. Sessions that measure run and are held to what the page says of
them; what they printed is kept, under the day on which it was recorded, unless ``--record`` asks
for today's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from generators import committed_pages, rendered
from generators.sessions import SessionError

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Render the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    parser.add_argument("--record", action="store_true", help="record what measuring prints")
    asked = parser.parse_args()
    failed = 0
    for page in asked.pages or committed_pages(ROOT):
        try:
            text = rendered(page, ROOT, record=asked.record)
        except SessionError as error:
            print(f"{page}: {error}", file=sys.stderr)
            failed = 1
            continue
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(page)
    return failed


if __name__ == "__main__":
    sys.exit(main())
