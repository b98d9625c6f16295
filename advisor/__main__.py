"""Lets ``python -m advisor`` stand for ``advise``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts the current folder first, whose files are to be read and never imported: a
    # string.py there would stand for the standard library's.
    if not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parents[1]:
        del sys.path[0]
    from costdb.launch.start import advise

    advise()
