"""Edits that rest on what a run showed of local names, attributes and names from around.

Each program is run while it is looked at, read with what was seen, and every edit that is offered
is put in by itself. The edited program then gives the same as the original: in the calls of the
run, whose kinds an edit must hold for, results and what is left in arguments, attributes and
module-level arrays. Calls of `LATER`, which no run saw, may only differ where the edit says so.
"""

from __future__ import annotations

import linecache
import sys
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from advisor.finding import Applicability
from advisor.observe.calls import Calls
from advisor.observed import Seen
from advisor.source import apply_edits
from tests.transforms.test_plain_functions import fixes, precision_of, same

HEAD = "import numpy as np\n\nRNG = np.random.default_rng(5)\n\n\n"
LOOP = "    for i in range(len(y)):\n        out[i] = y[i] * 2.0 + 1.0\n    return out\n"

OFFERED = {
    "a shape that changes as a loop runs": "def made(n):\n    return np.arange(n) * 0.5\n\n\n"
    "def told(n, out):\n    for step in range(3):\n        y = made(n - step)\n"
    "        for i in range(len(y)):\n            out[i] += y[i]\n    return out\n\n\n"
    "def run():\n    return told(40, np.zeros(40))\n",
    "a result of another function": "def made(n):\n    return np.arange(n) * 0.5\n\n\n"
    "def told(n):\n    y = made(n)\n    out = np.zeros(len(y))\n" + LOOP
    + "\n\ndef run():\n    return told(40)\n",
    "results of a function of NumPy": "def told(x):\n    lo, y = np.frexp(x)\n"
    "    out = np.zeros(len(y))\n" + LOOP + "\n\ndef run():\n    return told(RNG.random(40))\n",
    "an array that an instance holds": "class Grid:\n    def __init__(self, u):\n"
    "        self.u = u\n        self.k = 2.5\n\n    def told(self):\n"
    "        out = np.zeros(len(self.u))\n        for i in range(len(self.u)):\n"
    "            out[i] = self.u[i] * self.k\n        return out\n\n\n"
    "def run():\n    return Grid(RNG.random(40)).told()\n",
    "an array of an instance that changes": "class Grid:\n    def __init__(self, u):\n"
    "        self.u = u\n\n    def told(self, v):\n        for i in range(len(v)):\n"
    "            self.u[i] = v[i] + 1.0\n\n\n"
    "def run():\n    grid = Grid(np.zeros(40))\n    grid.told(RNG.random(40))\n"
    "    return grid.u\n",
    "slots": "class Grid:\n    __slots__ = ('u',)\n\n    def __init__(self, u):\n"
    "        self.u = u\n\n    def told(self, v):\n        for i in range(len(v)):\n"
    "            v[i] = v[i] + self.u[i]\n        return v\n\n\n"
    "def run():\n    return Grid(np.ones(40)).told(RNG.random(40))\n",
    "an array of the module": "TABLE = np.linspace(0.0, 1.0, 40)\n\n\ndef told(y):\n"
    "    out = np.zeros(len(y))\n    for i in range(len(y)):\n        out[i] = y[i] + TABLE[i]\n"
    "    return out\n\n\ndef run():\n    return told(RNG.random(40))\n",
    "a tuple of sizes": "def told(shape):\n    out = np.zeros(shape[0])\n"
    "    y = RNG.random(shape[0])\n    for i in range(shape[0]):\n        out[i] = y[i] * 2.0\n"
    "    return out\n\n\ndef run():\n    return told((40, 3))\n",
    "parts of arrays side by side": "def told(x, y):\n    s = 0.0\n"
    "    for a, b in zip(x[1:], y[:-1]):\n        s += a * b\n    return s\n\n\n"
    "def run():\n    return told(RNG.random(40), RNG.random(40))\n",
    "a nest in a loop that is left": "def told(x, y):\n    for step in range(20):\n"
    "        for i in range(len(x)):\n            y[i] = x[i] + step\n"
    "        if y[0] > 5.0:\n            break\n        x[0] += 1.0\n    return x, y\n\n\n"
    "def run():\n    return told(RNG.random(40), np.zeros(40))\n",
    "numbers of a list": "def told(ws, x, y):\n    for k, w in enumerate(ws):\n"
    "        for i in range(len(x)):\n            y[i] = y[i] + x[i] * 2.0\n"
    "        y[0] = y[0] * w\n    return y\n\n\n"
    "def run():\n    return told([0.5, 2.0, 4.0], RNG.random(40), np.zeros(40))\n",
    "nothing to report of errors": "def told(x):\n    out = np.zeros(len(x))\n"
    "    with np.errstate(divide='ignore', invalid='ignore'):\n        for i in range(len(x)):\n"
    "            out[i] = 1.0 / x[i]\n    return out\n\n\n"
    "def run():\n    return told(np.arange(40.0))\n",
}  # fmt: skip

NOT_OFFERED = {
    "a local name of two types": "def made(n, whole):\n"
    "    return np.arange(n) if whole else np.arange(n) * 0.5\n\n\n"
    "def told(n, whole):\n    y = made(n, whole)\n    out = np.zeros(len(y))\n" + LOOP
    + "\n\ndef run():\n    return told(40, True), told(40, False)\n",
    "a type that changes as a loop runs": "def made(n, step):\n"
    "    return np.arange(n) if step else np.arange(n) * 0.5\n\n\n"
    "def told(n, out):\n    for step in range(3):\n        y = made(n, step)\n"
    "        for i in range(n):\n            out[i] += y[i] * y[i]\n    return out\n\n\n"
    "def run():\n    return told(40, np.zeros(40))\n",
    "a property": "class Grid:\n    reads = 0\n\n    @property\n    def u(self):\n"
    "        self.reads += 1\n        return np.arange(40.0) * self.reads\n\n"
    "    def told(self, v):\n        for i in range(len(v)):\n            v[i] = self.u[i]\n"
    "        return v\n\n\ndef run():\n    return Grid().told(np.zeros(40))\n",
    "two attributes of one array": "class Grid:\n    def __init__(self, u):\n"
    "        self.u, self.v = u[:-1], u[1:]\n\n    def told(self):\n"
    "        for i in range(len(self.u)):\n            self.v[i] = self.u[i] + 1.0\n"
    "        return self.v\n\n\ndef run():\n    return Grid(RNG.random(41)).told()\n",
    "an attribute and an argument": "class Grid:\n    def __init__(self, u):\n"
    "        self.u = u\n\n    def told(self, v):\n        for i in range(1, len(v)):\n"
    "            self.u[i] = v[i - 1] + 1.0\n        return v\n\n\n"
    "def run():\n    u = RNG.random(40)\n    return Grid(u).told(u)\n",
    "a number of an instance that a loop changes": "class Tally:\n    def __init__(self):\n"
    "        self.n = 0.0\n\n    def told(self, x):\n        for i in range(len(x)):\n"
    "            self.n = self.n * 0.5 + x[i]\n            x[i] = self.n\n        return x\n\n\n"
    "def run():\n    tally = Tally()\n    return tally.told(RNG.random(40)), tally.n\n",
    "an attribute that a method binds anew": "class Grid:\n    def __init__(self, n):\n"
    "        self.u = np.arange(n) * 1.0\n\n    def step(self):\n"
    "        self.u = self.u[1:].astype(int)\n\n    def told(self, out):\n        self.step()\n"
    "        for i in range(len(self.u)):\n            out[i] = self.u[i] / 2\n"
    "        return out\n\n\ndef run():\n    return Grid(40).told(np.zeros(40))\n",
    "a number that a method changes": "class Grid:\n    def __init__(self):\n"
    "        self.k = 1.0\n\n    def step(self):\n        self.k *= 2.0\n\n"
    "    def told(self, x):\n        for i in range(len(x)):\n            x[i] = x[i] * self.k\n"
    "            self.step()\n        return x\n\n\n"
    "def run():\n    return Grid().told(np.ones(40))\n",
    "errors that are raised": "def told(x):\n    out = np.zeros(len(x))\n"
    "    try:\n        with np.errstate(all='raise'):\n            for i in range(len(x)):\n"
    "                out[i] = 1.0 / x[i]\n    except FloatingPointError:\n        pass\n"
    "    return out\n\n\ndef run():\n    return told(np.arange(40.0)[::-1].copy())\n",
}  # fmt: skip

HARMLESS = {
    "an array through a list": "def told(x):\n    held = []\n    held.append(x)\n    y = held[0]\n"
    "    for i in range(1, len(y)):\n        y[i] = x[i - 1] + 1.0\n    return x\n\n\n"
    "def run():\n    return told(RNG.random(40))\n",
    "a view that another function makes": "def part(x):\n    return x[:-1]\n\n\n"
    "def told(x):\n    y = part(x)\n    for i in range(len(y)):\n        x[i + 1] = y[i] + 1.0\n"
    "    return x\n\n\ndef run():\n    return told(RNG.random(40))\n",
    "what a called function changes": "TABLE = np.zeros(40)\n\n\ndef change():\n"
    "    TABLE[:] += 1.0\n\n\ndef told(out):\n    for step in range(3):\n"
    "        a = TABLE * 2.0\n        change()\n        for i in range(len(out)):\n"
    "            out[i] += a[i] + TABLE[i]\n    return out\n\n\n"
    "def run():\n    return told(np.zeros(40)), TABLE\n",
    "a number of each item of a list": "def told(ws, x, y):\n    for w in ws:\n"
    "        for i in range(len(x)):\n            y[i] = y[i] * w + x[i]\n    return y\n\n\n"
    "def run():\n    return told([0.5, 2.0, 4.0], RNG.random(40), np.zeros(40))\n",
    "a list that grows as it is gone through": "def told(ws, x):\n    for w in ws:\n"
    "        for i in range(len(x)):\n            x[i] = x[i] * 2.0\n"
    "        if len(ws) < 5:\n            ws.append(w)\n    return x, ws\n\n\n"
    "def run():\n    return told([0.5, 2.0], np.ones(40))\n",
    "numbers that are used after their loop": "def told(x, y):\n    k = 0\n"
    "    for i in range(len(x)):\n        t = x[i] * 2.0\n        y[i] = t\n        k = i + 1\n"
    "    return y, t, k, i\n\n\ndef run():\n    return told(RNG.random(40), np.zeros(40))\n",
    "a counter besides": "def told(x, y):\n    k = 0\n    for i in range(len(x)):\n"
    "        y[i] = x[i] * k\n        if x[i] > 0.5:\n            k += 1\n"
    "            print(end='')\n    return y, k\n\n\n"
    "def run():\n    return told(RNG.random(40), np.zeros(40))\n",
    "lengths that differ": "def told(x, y):\n    out = np.zeros(len(x))\n"
    "    for i, (a, b) in enumerate(zip(x, y)):\n        out[i] = a + b\n    return out\n\n\n"
    "def run():\n    return told(RNG.random(40), RNG.random(30))\n",
    "lengths that differ the other way": "def told(x, y):\n    s = 0.0\n"
    "    for a, b in zip(x, y):\n        s += a * b\n    return s\n\n\n"
    "def run():\n    return told(RNG.random(30), RNG.random(40)), told(np.ones(9), np.ones(9))\n",
    "a loop that is left in the middle": "def told(x):\n    s = 0.0\n    for v in x:\n"
    "        if v > 0.9:\n            break\n        s += v\n    return s\n\n\n"
    "def run():\n    return told(RNG.random(400))\n",
    "a function that is left in a loop": "def told(x, y):\n    for i in range(len(x)):\n"
    "        if x[i] > 0.9:\n            return y\n        y[i] = x[i]\n    return x\n\n\n"
    "def run():\n    return told(RNG.random(40), np.zeros(40))\n",
    "small whole numbers that wrap": "def told(x):\n    acc = np.uint8(0)\n"
    "    with np.errstate(over='ignore'):\n        for v in x:\n            acc = acc + v\n"
    "    return acc\n\n\ndef run():\n    return told(np.arange(90, dtype=np.uint8))\n",
    "an array bound anew, and kept elsewhere": "class Grid:\n    def __init__(self, u):\n"
    "        self.u = u\n\n    def told(self, f):\n        kept = self.u\n"
    "        self.u = self.u + f * 2.0\n        for i in range(len(f)):\n"
    "            self.u[i] = self.u[i] - f[i]\n        return kept, self.u\n\n\n"
    "def run():\n    return Grid(np.ones(40)).told(RNG.random(40))\n",
    "filled with a number": "def told(n, k):\n    out = np.full(n, k)\n    y = np.full(n, -1)\n"
    "    for i in range(n):\n        out[i] = out[i] + y[i] * 2\n    k = 3\n    return out, k\n\n\n"
    "def run():\n    return told(40, 0.5), told(40, 7)\n",
}  # fmt: skip
PROGRAMS = OFFERED | NOT_OFFERED | HARMLESS

LATER = {
    "a result of another function": "def made(n):\n    return np.arange(n)[::-1] * 0.5\n",
}


@pytest.fixture(autouse=True)
def of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this process for one that imported no MPI: of ranks, other things are looked at."""
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)


def executed(source: str, path: Path) -> dict[str, Any]:
    path.write_text(source)
    linecache.checkcache(str(path))
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, str(path), "exec"), space)
    return space


def looked_at(source: str, folder: Path) -> tuple[Any, tuple[Seen, ...]]:
    """Return what a program gives, and what was seen of it."""
    space, calls = executed(source, folder / "seen.py"), Calls(str(folder.resolve()))
    with calls.watching():
        result = space["run"]()
    return result, tuple(seen for _, seen in calls.gathered())


def given(space: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return deepcopy(space["run"]())


@pytest.mark.parametrize("title", PROGRAMS)
def test_edits_leave_what_programs_do(title: str, tmp_path: Path) -> None:
    source = HEAD + PROGRAMS[title]
    plain = given(executed(source, tmp_path / "plain.py"))
    result, seen = looked_at(source, tmp_path)
    assert same(plain, result, None), "looking changes nothing"
    told = tuple(one for one in seen if one.function.endswith("told"))
    assert told
    offered = [
        (code, fix)
        for code, fix in fixes(source, *told)
        if fix.applicability is not Applicability.DISPLAY
    ]
    for code, fix in offered:
        edited = apply_edits(source, fix.edits)
        after = given(executed(edited, tmp_path / "edited.py"))
        assert same(plain, after, precision_of(fix)), f"{code}: {fix.legality}\n{edited}"
    if title in OFFERED:
        assert offered
        assert all(fix.applicability is Applicability.UNSAFE for _, fix in offered)
    if title in NOT_OFFERED:
        assert not offered, [(code, fix.legality) for code, fix in offered]
