"""What people get wrong: a line each that says what, where, and what to do next."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.advisor.cli.commands import EXAMPLES, Program

KERNEL = (EXAMPLES / "box_sum.py").read_text()
OPEN_SIZE = KERNEL.replace("@kernel(N=1000, b=3)", "@kernel(b=3)")

FILES: dict[str, str | bytes] = {
    "k.py": KERNEL,
    "open.py": OPEN_SIZE,
    "ignored.py": KERNEL.replace("def box_sum", "def box_sum", 1) + "# advise: ignore[ADV299]\n",
    "binary.py": b"\0\1numpy\xff\xfe",
    "empty.py": "",
    "old.py": "import numpy\n# advise: kernel\nprint 'x'\n",
    "wrong.py": "# advise: kernel N=8\ndef f(:\n",
    "cupy.py": "import cupy\nx = cupy.zeros(3)\n",
    "profile.json": "{}",
    "model.toml": "",
    "old.ipynb": '{"worksheets": ["numpy"]}',
    "half.ipynb": '{"cells": [{"source": "import numpy',
    "broken.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": "# advise: kernel\ndef f(:\n"}]}
    ),
    "bad.toml": "[tool.advise\n",
    "typo.toml": '[tool.advise]\nmachin = "t3e"\n',
    "other.toml": '[tool.other]\nmachine = "t3e"\n',
    "gone.toml": '[tool.advise]\n\nmachine = "profiles/gone.json"\n',
    "rule.toml": '[tool.advise]\nselect = ["repeated-shift"]\n',
    "nothing/notes.txt": "",
}

MISTAKES: list[tuple[str, str, str]] = [
    # what was typed; what of it, and where; the next step
    ("chekc k.py", "chekc: there is no such command or file", "`advise check`"),
    ("Verfy k.py", "Verfy: there is no such command or file", "`advise verify`"),
    ("list", "list: there is no such command", "`advise machine list`"),
    ("fix k.py", "fix: there is no such command", "`advise check --fix`"),
    ("machine shw t3e", "no such command 'shw'", "'show'"),
    ("k.py --machin t3e", "no such option: --machin", "--machine"),
    ("k.py -m t3f", 'unknown machine "t3f"', "nearest is t3e"),
    ("k.py -m gone.json", "gone.json: No such file", ""),
    ("k.py -m profile.json", "profile.json: /: schema_version is missing", ""),
    ("", "", ""),
    ("k.py -m t3e -D", "option '-D' requires an argument", "advise check --help"),
    ("k.py -m t3e -D N", "-D N: expected NAME=VALUE", "-D N=1000"),
    ("k.py -m t3e -D N=", "-D N=: a value is missing", "-D N=1000"),
    ("k.py -m t3e -D N=-5", "-D N=-5: must be positive", ""),
    ("k.py -m t3e -D N=many", "-D N=many: 'many' is not a number", ""),
    ("k.py -m t3e -P many", "'-P' / '--ranks': 'many' is not a whole number", "--help"),
    ("k.py -m t3e -P 0", "'-P' / '--ranks': 0 is less than 1", "--help"),
    ("k.py -m t3e --output-format xml", "'xml' is not one of 'full', 'concise'", "--help"),
    ("k.py -m t3e -o gone/report.txt", "gone/report.txt: No such file or directory", ""),
    ("k.py -m t3e --color blue", "--color blue", "auto, always, never"),
    ("k.py -m t3e --select ADV29", "unknown rule 'ADV29'", "nearest"),
    ("k.py -m t3e --ignore repeated-shift", "unknown rule", "nearest are repeated-shifts"),
    ("k.py -m t3e --unsafe-fixes", "--unsafe-fixes changes nothing by itself", "--fix or --diff"),
    ("k.py -m t3e --fail-above much", "--fail-above: 'much' is not a number", ""),
    ("k.py -m t3e --baseline gone.json", "gone.json: No such file", ""),
    ("k.py --config bad.toml", "bad.toml:1:13: not TOML", "]"),
    ("k.py --config typo.toml", "typo.toml:2: tool.advise.machin", "nearest is machine"),
    ("k.py --config other.toml", "other.toml: has no table [tool.advise]", ""),
    ("k.py --config gone.toml", "gone.toml:3: machine", "profiles/gone.json"),
    ("k.py --config rule.toml -m t3e", "rule.toml:2: unknown rule", "nearest are repeated-shifts"),
    ("k.py --config nothing", "nothing: Is a directory", ""),
    ("kk.py -m t3e", "kk.py: No such file or directory", "nearest are K.py, k.py"),
    ("nothing -m t3e", "nothing: no Python files or notebooks", ""),
    ("binary.py -m t3e", "binary.py:1:8: byte 0xff is not utf-8", "coding: latin-1"),
    ("old.py -m t3e", "old.py:3:9: does not parse", "Python 2"),
    ("wrong.py -m t3e", "wrong.py:2:", "does not parse as Python 3"),
    ("old.ipynb -m t3e", "old.ipynb:1:1: not a notebook of format 4", "nbconvert"),
    ("half.ipynb -m t3e", "half.ipynb:1:23: not a notebook: not JSON", ""),
    ("broken.ipynb -m t3e", "broken.ipynb:cell 1:", "does not parse as Python 3"),
    ("explain k.py -m t3e", "k.py: expected FILE:LINE", "kernel.py:35"),
    ("explain k.py:3 -m t3e", "k.py: no finding at line 3", "21, 35"),
    ("explain empty.py:1 -m t3e", "no finding at line 1", "nor anywhere else in the file"),
    ("rule shifts", "unknown rule 'shifts'", "repeated-shifts"),
    ("run gone.py", "gone.py: no such file", "--module gone.py"),
    ("run --output-format odd k.py", "'odd' is not one of 'none', 'full'", "--help"),
    ("run -m json", "no program given", "--module NAME"),
    ("run -m t3f k.py", 'unknown machine "t3f"', "nearest is t3e"),
    ("annotate gone.py", "gone.py: No such file", ""),
    ("measure k.py --kernel box", "there is no kernel `box`", "box_sum"),
    ("measure broken.ipynb", "broken.ipynb: notebooks are for", "jupyter nbconvert"),
    ("verify k.py -m t3f", 'unknown machine "t3f"', "nearest is t3e"),
    ("predict model.txt", "model.txt: expected", "annotated Python (.py)"),
    ("choose k.py -m t3e", "--over is missing", "--over PX,PY"),
    ("machine export t3f", 'unknown machine "t3f"', "nearest is t3e"),
    ("machine import gone.json", "gone.json: No such file", ""),
    ("calibrate --only nothing", 'no section "nothing"', "messages, arrays"),
    ("validate --only nothing", "--only nothing", "lines, smp"),
]

TOLD: list[tuple[str, str]] = [
    # not wrong, but not what one may think: the exit code is not 2, and a line says so
    ("empty.py -m t3e", r"Nothing to check in 1 file"),
    (
        "k.py -m t3e -m sp2",
        r"--machine is given more than once: the last one counts .*ranks of sp2",
    ),
    ("profile.json -m t3e", r"profile.json: programs in Python .*`advise machine validate FILE`"),
    ("model.toml -m t3e", r"model.toml: programs in Python .*`advise predict --validate FILE`"),
    ("open.py -m t3e", r"nothing binds N, so no time is predicted: pass -D N=\.\.\."),
    ("k.py -m t3e -D Q=1 -q", r"-D Q changes nothing: .* known are N, b"),
    ("ignored.py -m t3e", r"ADV901 unused suppression: there is no rule ADV299: nearest .*ADV20"),
    ("cupy.py -m t3e", r"uses cupy, which is not supported"),
    ("k.py --named-machine", r"no machine is named here: .*`advise machine export NAME -o"),
    ("K.py -m T3E --select Repeated-Shifts", r"ADV201"),
    ("annotate empty.py", r"nothing is known of .*`advise run empty.py`"),
]


@pytest.fixture
def folder(program: Program, tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    (tmp_path / "K.py").write_text(KERNEL)
    return tmp_path


@pytest.mark.parametrize(("typed", "what", "next_step"), MISTAKES)
def test_a_mistake_is_one_line(
    program: Program, folder: Path, typed: str, what: str, next_step: str
) -> None:
    ended = program(*typed.split())
    assert ended.code == 2
    if not typed:
        assert "Every day:" in ended.out and ended.err == ""
        return
    assert ended.err.count("\n") == 1, ended.err
    assert what in ended.err and next_step in ended.err, ended.err
    assert "Traceback" not in ended.err
    # what was checked is summed up on the other stream, where anything could be
    assert ended.out in ("", "Nothing could be read, so nothing was checked.\n")


@pytest.mark.parametrize(("typed", "told"), TOLD)
def test_what_is_no_mistake_is_said(program: Program, folder: Path, typed: str, told: str) -> None:
    ended = program(*typed.split())
    assert ended.code in (0, 1)
    assert re.search(told, " ".join((ended.err + ended.out).split())), ended


def test_a_cache_that_cannot_be_written_is_said(
    program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.access
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK and usual(path, how))
    ended = program("k.py", "-m", "t3e", "--cache-dir", "kept", "--exit-zero")
    assert ended.code == 0 and "ADV201" in ended.out
    assert ended.err == "advise: kept: cannot be written to: no answers are kept; name another\n"
