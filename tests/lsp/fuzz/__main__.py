"""Random typing against the real server: ``python -m tests.lsp.fuzz --edits 10000``.

A driver edits one file as a user might: half-typed code, emoji, astral letters, tabs, line ends
of all kinds, jumps, pastes, undone changes. A reference model keeps the text as bytes of the
editor's encoding, so that it shares no arithmetic of positions with the server, and says for
every answer what it must be: for a text that can be read, exactly what the engine says of it; for
any other, only findings known from the last text that could, on lines that nobody touched.

Every answer names its version; one about a text that had changed before it was asked for is a
stale answer. Nothing may be lost: each checked version gets its answer.

Three files are typed at: a kernel, kernels with a plan of several steps, and a program for MPI. The
editor of every other run can be told to ask again: it gets findings first, and the plan may come
with a second answer, which must follow where the first one lacks it. What answers must be is asked
of a fresh engine for every text.
"""

from __future__ import annotations

import argparse
import sys

from tests.lsp.fuzz.editor import CODECS
from tests.lsp.fuzz.files import FILES
from tests.lsp.fuzz.session import run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20_261_121)
    parser.add_argument("--burst", type=int, default=10, help="most edits between two checks")
    parser.add_argument("--file", action="append", choices=FILES, help="only these files")
    parser.add_argument("--staged", action="store_true", help="findings first in every run")
    given = parser.parse_args()
    runs = [(name, encoding) for name in given.file or FILES for encoding in CODECS]
    share = -(-given.edits // len(runs))
    for number, (name, encoding) in enumerate(runs):
        staged = given.staged or bool(number % 2)
        tally = run(
            share,
            given.seed + number,
            encoding,
            given.burst,
            start=FILES[name],
            staged=staged,
        )
        way = "findings first" if staged else "all at once"
        print(f"{name}, {encoding}, {way}: {tally}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
