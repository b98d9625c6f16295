"""What loops do one by one: told where that is all they do, and no iteration waits."""

from __future__ import annotations

import pytest

from advisor.engine import Options, check_source
from advisor.ir.one_by_one import one_by_one
from advisor.ranking.findings import words

TOLD = {
    "s = 0\nfor i in range(1, n):\n    s += f(a + i * h)\nreturn s": "`a + i * h`",
    "ys = []\nfor i in range(n):\n    x = a + i * h\n    ys.append(2 * f(x))\nreturn ys": "`x`",
    "return h * sum(f(a + i * h) for i in range(n))": "`a + i * h`",
    "xs = np.linspace(a, h, n)\nreturn [f(x) for x in xs[1:]]": "`x`",
    "xs = np.linspace(a, h, n)\nfor i in range(n):\n    y[i] = f(xs[i])\nreturn y": "`xs[i]`",
    "return sum(map(f, np.arange(n)))": "`np.arange(n)`",
    "return np.apply_along_axis(f, 1, y).sum()": "vectors of `y`",
}
DRAWN = "for i in range(n):\n    x = y.random()\n    if x * x < a:\n        h += 1\nreturn h"
TOLD |= {
    DRAWN: "`y.random()` of all iterations",
    DRAWN.replace("y.random()", "np.random.rand()"): "`np.random.rand()` of all iterations",
    "for i in range(n):\n    if y.random() < a: n += 1\nreturn n": "`y.random()` of all",
    "for i in range(n):\n    h.append(np.random.choice(y))": "`np.random.choice(y)` of all",
    "return [[np.random.rand(), np.random.choice(y)] for _ in range(n)]": "and `np.random",
    "k = y.split()\nreturn [k.index(i) for i in h]": "`i` up in a dictionary of `k`",
    "k = list(y)\nfor i in h:\n    if i not in k: a += i\nreturn a": "`i` up in a set of `k`",
}
# functions of arrays, called with one number, point or row at a time
SCIPY = "import scipy.stats as st\nfrom scipy.interpolate import interp1d\n"
SCIPY += "from scipy.spatial import cKDTree\n"
INTERP = "for i in range(n):\n    x = a + i * h\n    s += np.interp(x, y, {data})\nreturn s"
QUERY = "t = cKDTree(y)\nfor p in h:\n    for q in a:\n        n += t.query({point})[0]\nreturn n"
ROWS = "return [st.mannwhitneyu({one}, y).pvalue for row in h]"
TOLD |= {
    INTERP.format(data="h"): "`np.interp` once, with an array of all `x`",
    "for i in a:\n    for k in h:\n        s += np.interp(i * n, y, y[k])\nreturn s": "each `k`",
    "return [np.digitize(row[i], h) for row in y for i in range(n)]": "all `row[i]`",
    "return {i: np.searchsorted(y, i + a) for i in h}": "all `i + a`",
    "return [np.digitize(i, h) for i in np.linspace(1, 5, n)]": "all `i`",
    "return [st.poisson.pmf(i, a) for i in range(n)]": "`st.poisson.pmf` once",
    "d = st.norm(a, h)\nreturn [d.cdf(i) for i in y]": "`d.cdf` once",
    "g = interp1d(h, y)\nreturn [g(x) for x in a]": "`g` once",
    QUERY.format(point="[p, q]"): "points of all `[p, q]`",
    QUERY.format(point="h[q]"): "points of all `h[q]`",
    ROWS.format(one="row"): "`axis=` and an array of all `row`",
    ROWS.format(one="row[a > 0]"): "all `row[a > 0]`",
}
# arrays that grow
GROWN = "for i in h:\n    for k in i:\n        y = {join}\nreturn y"
JOINED = ("np.append(y, k)", "np.vstack([y, k])", "np.concatenate((y, k, k))", "np.r_[y, k]")
TOLD |= {GROWN.format(join=one): "what `y` grows by in a list" for one in JOINED}
TOLD |= {
    "while len(y) < n:\n    y = np.hstack((y, a))\nreturn y": "what `y` grows by",
    "for i in h:\n    y = np.append(y, i)\n    a = np.append(a, n)\nreturn a, y": "`y` and `a`",
    # arrays that are searched
    "k = np.unique(y)\nreturn [i for i in h if i in k]": "`i` up in a set of `k.tolist()`",
    "k = y.integers(0, n, n)\nfor i in h:\n    a += i not in k\nreturn a": "`k.tolist()`",
}
MASKED = "for k in range(n):\n    m = {test}\n    h[k] = a[m].sum()\n{more}return h"
TOLD |= {
    MASKED.format(test="y == k", more=""): "`a[m]` of all groups",
    MASKED.format(test="(y >= k) & (y < k + 1)", more=""): "`a[m]` of all groups",
}
# equations with one matrix
SOLVED = "for i in range(n):\n    y = np.linalg.solve({matrix}, y)\n{more}return y"
TOLD |= {
    SOLVED.format(matrix="a", more=""): "`a` once, before the loop, by `scipy.linalg.lu_factor`",
    SOLVED.format(matrix="a - n * h", more=""): "factorise `a - n * h` once",
    "m = a + h\nwhile f:\n    y = np.linalg.solve(m, y)\nreturn y": "factorise `m` once",
    "return [np.linalg.lstsq(a, i, rcond=None)[0] for i in y]": "by `np.linalg.pinv`",
    "from scipy.sparse.linalg import spsolve\nfor i in range(1, n):\n"
    "    y[i] = spsolve(a, h @ y[i - 1])\nreturn y": "by `scipy.sparse.linalg.splu`",
}
SPARSE = "import scipy.sparse as sp\nfrom scipy.sparse.linalg import spsolve\nfor i in range(n):\n"
SPARSE += "    m = {made}\n    y = spsolve(m, y)\nreturn y"
TOLD[SPARSE.format(made="sp.csr_matrix(a)")] = "by `scipy.sparse.linalg.splu`"
# vectors that nobody uses
TOLD |= {
    "k, _ = np.linalg.eig(y)\nreturn k": "values alone, by `np.linalg.eigvals`",
    "k, v = np.linalg.eigh(y)\nreturn k.max()": "values alone, by `np.linalg.eigvalsh`",
    "return max(np.linalg.eigh(y)[0])": "values alone, by `np.linalg.eigvalsh`",
    "u, k, v = np.linalg.svd(y, full_matrices=False)\nreturn k": "svd(..., compute_uv=False)`",
}
# matrices that are seen to be symmetric
EIG = "{made}\nk, v = np.linalg.eig(m)\nreturn k, v"
TOLD |= {
    EIG.format(made="m = h.T @ h / n"): "take `np.linalg.eigh`: `m` is symmetric",
    EIG.format(made="m = np.cov(h, rowvar=False)"): "take `np.linalg.eigh`: `m` is symmetric",
    EIG.format(made="m = 2 * h.dot(h.T)"): "take `np.linalg.eigh`: `m` is symmetric",
    EIG.format(made="m = np.cov(h)").replace("return k, v", "return k"): "`np.linalg.eigvalsh`",
}
QUIET = [
    EIG.format(made="m = 2 / np.cov(h)"),
    EIG.format(made="m = h.T @ a"),
    EIG.format(made="m = np.cov(h)\nif n: m = a"),
    EIG.format(made="m = h + np.cov(h)"),
    EIG.format(made="m = y"),
    "k, v = np.linalg.eigh(y)\nreturn k, lambda: v",
    "global v\nk, v = np.linalg.eigh(y)\nreturn k",
    "k, v = np.linalg.eigh(np.zeros((3, 3)))\nreturn k",
    "u, k, _ = np.linalg.svd(y)\nreturn u, k",
    "return np.linalg.eigh(y)[1]",
    SPARSE.format(made="sp.random(n, n)"),
    SPARSE.format(made="sp.load_npz(a)"),
    SOLVED.format(matrix="a - i * h", more=""),
    SOLVED.format(matrix="a", more="    a[0] = y[0]\n"),
    SOLVED.format(matrix="a", more="    a = a * y\n"),
    SOLVED.format(matrix="a", more="").replace("range(n)", "range(3)"),
    "a = np.eye(4)\n" + SOLVED.format(matrix="a", more=""),
    "return [np.linalg.solve(i, y) for i in a]",
    MASKED.format(test="y == 3", more=""),
    MASKED.format(test="[i for i in range(n) if y[i] == k][0]", more=""),
    MASKED.format(test="y == k", more="    a[k] = h[k]\n"),
    MASKED.format(test="y == k", more="    y = y - h[k]\n"),
    # of what an earlier iteration left, other data each time, or what is no number
    INTERP.format(data="h").replace("x = a", "x = s"),
    INTERP.format(data="h").replace("x = a", "a += h; x = a"),
    INTERP.format(data="h[i]"),
    INTERP.format(data="h").replace("x = a + i * h", "x, k = k, i"),
    INTERP.format(data="h").replace("return s", "    if s > a: return s"),
    INTERP.format(data="h").replace("range(n)", "range(9)"),
    INTERP.format(data="h").replace("a + i * h", "y[:, i]"),
    INTERP.format(data="h").replace("a + i * h", "h[i]").replace("s +=", "x[0] ="),
    INTERP.format(data="h").replace("x, y", "x, y[i:]"),
    "for i in range(1, n):\n    y[i] = np.interp(y[i - 1], h, a)\nreturn y",
    "for i, k in enumerate(h):\n    s += np.interp(i, y, k)\nreturn s",
    "for i in range(n):\n    y[i, :] = np.interp(h[i], y, a)\nreturn y",
    "return all(np.digitize(i, h) for i in y)",
    "g = [np.polyval, np.interp][n]\nreturn [g(x) for x in a]",
    QUERY.format(point="h[q:]"),
    QUERY.format(point="[p, q]").replace("    n +=", "    t = cKDTree(q)\n        n +="),
    ROWS.format(one="row[row > 0]"),
    ROWS.format(one="row").replace("y)", "y, axis=0)"),
    ROWS.format(one="h[a == row]"),
    # arrays that are read while they grow, seen by others, or joined few times
    GROWN.format(join="np.append(y, y[-1])"),
    GROWN.format(join="np.append(y, k)\n        n += y[0]"),
    GROWN.format(join="np.append(k, y)"),
    GROWN.format(join="np.append(y, k)\n        if n: y = h"),
    GROWN.format(join="np.append(y, k)")
    .replace("in h", "in range(3)")
    .replace("in i", "in (1, 2)"),
    GROWN.format(join="np.append(y, k)") + "\ndef g(): return y",
    "for i in np.zeros((4, 1)):\n    y = np.append(y, i)\nreturn y",
    # what is searched may be no array
    "k = np.load(y)\nreturn [i for i in h if i in k]",
    "k = y.integers(n)\nreturn [i for i in h if i in k]",
    "k = np.array([1, 2])\nreturn [i for i in h if i in k]",
    # not in each iteration, or others each time; arrays take longer; it may end before
    DRAWN.replace("h += 1", "h += y.random()").replace("x = y.random()", "x = a"),
    DRAWN.replace("y.random()", "y.normal(h, 1)"),
    "for i in range(n):\n    y = y + [np.random.choice(y)]\nreturn y",
    "for i in range(n):\n    y.append(np.random.choice(y))\nreturn y",
    "return [np.random.choice(i) for i in y]",
    "return [np.random.rand() for i in range(9)]",
    # a generator of Python's own draws one number at a time
    "y = random.Random(n)\n" + DRAWN,
    DRAWN.replace("x * x", "a[i:] @ a[i:]"),
    DRAWN.replace("h += 1", "break"),
    # what is searched may be no list, changes, or is short; what is sought stays the same
    "for i in h:\n    if i in y:\n        a += i\nreturn a",
    "return [y.index(i) for i in h]",
    "y = list(y)\nfor i in h:\n    y.append(i)\n    a += y.index(i)\nreturn a",
    "y = ['a', 'b']\nreturn [y.index(i) for i in h]",
    "y = list(y)\nfor i in h:\n    a += y.index(n)\nreturn a",
    # one waits for the one before; each may end it; it is called for what it does
    "x = a\nfor i in range(n):\n    x = x - f(x + i * h)\nreturn x",
    "for i in range(n):\n    if f(a + i * h) < 0:\n        return i\nreturn n",
    "for i in range(n):\n    f(a + i * h)",
    # what it is given is no number, or nobody tells; or another function by then
    "return [f(i) for i in range(n)]",
    "return [f(y[i]) for i in range(n)]",
    "return [f(a, *y) for a in range(n)]",
    "f = abs\nreturn sum(f(a + i * h) for i in range(n))",
    "return sum(f(a + i * h) for i in range(3))",
]


def function(body: str) -> str:
    inside = body.replace("\n", "\n    ")
    return f"import random\nimport numpy as np\n{SCIPY}\ndef rule(f, a, h, n, y):\n    {inside}\n"


@pytest.mark.parametrize("body", TOLD)
def test_what_is_done_one_by_one_is_told(body: str) -> None:
    (one,) = one_by_one(function(body))
    assert one.function == "rule" and TOLD[body] in words(one)[0]


@pytest.mark.parametrize("body", QUIET)
def test_what_waits_or_is_something_else_is_not(body: str) -> None:
    assert not [*one_by_one(function(body))]


def test_it_is_a_finding_without_a_price_or_an_edit() -> None:
    source = function(next(iter(TOLD)))
    (one,) = check_source("program.py", source, Options("node2026", {}, (), (), 1.0)).findings
    assert (one.code, one.span.start_line, one.fix, one.prediction) == ("ADV401", 10, None, None)


@pytest.mark.parametrize("annotated", [True, False])
def test_an_array_that_grows_is_told_once_with_its_price_where_it_has_one(annotated: bool) -> None:
    marks = "# advise: kernel\n# advise: a: f8[N]\n" if annotated else ""
    piece = "a[i]" if annotated else "a.of(i)"
    loop = f"    for i in range(len(a)):\n        x = np.append(x, {piece})\n    return x\n"
    source = f"import numpy as np\n\n{marks}def f(a):\n    x = np.zeros(0)\n{loop}"
    options = Options("node2026", {"N": 1000} if annotated else {}, (), (), 1.0)
    (one,) = check_source("program.py", source, options).findings
    assert (one.code, one.prediction is not None) == ("ADV507", annotated)


def test_of_what_a_gather_receives_at_once_nothing_is_told_to_be_joined() -> None:
    source = """
import numpy as np
from lib import smooth
from mpi4py import MPI

comm = MPI.COMM_WORLD
for step in range(100):
    own = smooth(step)
    if comm.rank == 0:
        h = own
        for i in range(1, comm.size):
            h = np.concatenate((h, {piece}))
    else:
        comm.send(own, dest=0)
"""
    options = Options("node2026", {}, (), (), 1.0)
    told = {
        piece: {
            one.code for one in check_source("a.py", source.format(piece=piece), options).findings
        }
        for piece in ("comm.recv(source=i)", "own[:i]")
    }
    assert told["comm.recv(source=i)"] == {"ADV607"} and "ADV507" in told["own[:i]"]
