"""``advise measure``: kernels with their rewrites and scripts, timed without running them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from advisor.cli.app import main
from advisor.measure.language import sampled_file
from advisor.measure.pieces import Effort, NoPiece, Piece, sample

KERNEL = """\
import numpy as np

# advise: kernel N=300
# advise: a: f8[N, N]
def columns(a):
    out = np.zeros(a.shape[1])
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            out[j] += a[i, j]
    return out

open("ran", "w")
"""

SCRIPT = """\
import numpy as np
N = 400
a = np.random.rand(N, N)
for step in range(20_000):
    a[1:-1] = 0.5 * (a[2:] + a[:-2])
print(a.sum())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def test_kernels_are_timed_with_their_rewrites_and_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["measure", "kernel.py", "--output-format", "json"]
    assert main(command) == 0
    captured = capsys.readouterr()
    first = json.loads(captured.out)["measured"]
    assert "kernel.py columns" in captured.err
    assert [one["code"] for one in first][:1] == [None] and len(first) > 1
    written, *rewrites = first
    assert written["sizes"] == {"N": 300}
    low, mid, high = (written["measured_s"][name] for name in ("low", "mid", "high"))
    # nine hundred thousand elements, interpreted
    assert low <= mid <= high and 1e-3 < mid < 1.0
    assert any(one["measured_s"]["mid"] < 0.2 * mid for one in rewrites if "measured_s" in one)
    assert not (folder / "ran").exists()

    # what was measured is not measured again, unless that is asked for
    assert main(command) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["measured"] == first
    assert "kernel.py columns" not in captured.err


def test_a_script_is_told_by_statement_and_mostly_not_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "script.py", "-D", "N=500"]) == 0
    shown = capsys.readouterr().out
    assert "for step in range(20_000):" in shown and "some were run" in shown
    assert main(["measure", "script.py", "-D", "N=500"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["measure", "script.py", "-D", "N=500", "--again"]) == 0
    assert capsys.readouterr().out != shown


def test_of_a_short_program_all_is_run() -> None:
    """Windows at both ends and in the middle would not see where its work is."""
    text = """\
import numpy as np
a = np.random.rand(2000, 4)
for i in range(4000):
    if 100 < i % 1000 < 190:
        a = np.sort(a * 1.5, axis=0)
print(a.sum())
"""
    (found,) = sample([(sampled_file("f.py", text, {}), {})], Effort(launches=2))
    assert isinstance(found, Piece) and not found.skipped
    space: dict[str, object] = {}
    took = []
    for _ in range(3):
        began = time.thread_time()
        exec(text, space)
        took.append(time.thread_time() - began)
    assert 0.5 * min(took) < found.mid_s < 2 * min(took)


def test_what_takes_longer_than_windows_say_is_not_waited_for() -> None:
    text = """\
import numpy as np
a = np.random.rand(2000, 4)
for i in range(40000):
    if i == 12345:
        for k in range(200000):
            a = np.sort(a, axis=0)
    a = a + 1.0
print(a.sum())
"""
    (found,) = sample([(sampled_file("f.py", text, {}), {})], Effort(launches=1))
    assert isinstance(found, Piece) and found.skipped


def test_what_would_run_is_shown_and_not_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "script.py", "--show"]) == 0
    shown = capsys.readouterr()
    assert "clock.loop" in shown.out and "step" not in shown.out and shown.err == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = np.zeros(10**13)", "takes more memory than there is"),
        ("while True:\n    x = np.ones(3)", "nothing says how often this loop runs"),
        ("x = 10 ** 10 ** 10", "took more than 2 s"),
        ("def f():\n    return f()\nx = f()", "calls itself without end"),
        ("x = np.ones(3)\ny = x[7]", "IndexError"),
    ],
)
def test_what_does_not_end_well_is_one_line(text: str, why: str) -> None:
    program = sampled_file("f.py", f"import numpy as np\n{text}\n", {})
    (found,) = sample([(program, {})], Effort(budget_s=2.0, launches=1))
    assert isinstance(found, NoPiece) and why in found.why
    assert found.line == 1 + text.count("\n") + 1 - (1 if "while" in text else 0)


IN_ORDER = """\
import numpy as np
N = 20
def make(n=N):
    return np.arange(n) * 1.0
TABLE = make()
def twice(a, by=TABLE[2]):
    return a * by + LATER
LATER = len(make(3))
class Base:
    def go(self, a):
        return a + 1
class Derived(Base):
    def run(self, a):
        return self.go(a)
"""


@pytest.mark.parametrize(
    "text",
    [
        f"{IN_ORDER}\n# advise: kernel N=20\n# advise: a: f8[N]\ndef f(a):\n"
        "    return Derived().run(twice(a)) + TABLE[3]\n",
        f"{IN_ORDER}\nif __name__ == '__main__':\n    print(Derived().run(twice(np.ones(N))))\n",
        # elements of `at` are places, behind a name and in a function
        "import numpy as np\n# advise: kernel N=30 M=500\n# advise: a: f8[N]\n"
        "# advise: at: i8[M]\ndef f(a, at):\n    total = 0.0\n    for k in range(len(at)):\n"
        "        j = at[k]\n        total += taken(a, j)\n    return total\n"
        "def taken(a, j):\n    return a[j]\n",
    ],
)
def test_functions_and_constants_are_there_when_they_are_needed(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (folder / "several.py").write_text(text)
    assert main(["measure", "several.py", "--budget", "2"]) == 0
    assert "not measured" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [["measure", "none.py"], ["measure", "kernel.py", "--kernel", "no"]]
)
def test_wrong_use_is_one_line(
    folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
