"""Functions as textbooks have them, without a word on their arguments.

What is assumed of each lets it run on arrays of that rank, and each is read as a whole.
"""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source, seen_functions
from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Unknown, walk
from advisor.observed import Seen, SeenArray, SeenNumber
from advisor.source import apply_edits

EXTENT = 6

FUNCTIONS = {
    "heat": """
        def heat(u, steps, nu):
            nx = len(u)
            for step in range(steps):
                un = u.copy()
                for i in range(1, nx - 1):
                    u[i] = un[i] + nu * (un[i + 1] - 2 * un[i] + un[i - 1])
            return u
        u 1 steps i nu f
    """,
    "heat_until": """
        def heat_until(u0, x, t_end, dt, nu):
            if len(u0) != len(x):
                raise ValueError("one value a point")
            r = nu * dt / (x[1] - x[0]) ** 2
            steps = int(np.ceil(t_end / dt))
            u = np.zeros((steps + 1, len(x)))
            u[0] = u0.copy()
            for n in range(steps):
                u[n + 1][0] = u[n][0]
                for i in range(1, len(x) - 1):
                    u[n + 1][i] = u[n][i] + r * (u[n][i + 1] - 2 * u[n][i] + u[n][i - 1])
            return u
        u0 1 x 1 t_end f dt f nu f
    """,
    "bordered": """
        def bordered(old, top):
            n, m = old.shape
            new = np.zeros((n, m))
            for i in range(n):
                for j in range(m):
                    if i == 0:
                        new[i][j] = top
                    elif j == 0 or j == m - 1 or i == n - 1:
                        new[i][j] = old[i][j]
                    else:
                        new[i][j] = 0.5 * (old[i - 1][j] + old[i + 1][j])
            return new
        old 2 top f
    """,
    "eliminate": """
        def eliminate(a, b):
            n = a.shape[0]
            both = np.hstack((a.astype(float), b.reshape(-1, 1)))
            for i in range(n):
                both[i] = both[i] / both[i, i]
                for j in range(i + 1, n):
                    both[j] -= both[j, i] * both[i]
            return both
        a 2 b 1
    """,
    "cyclic": """
        def cyclic(a, b, first, by):
            c = np.zeros((a.shape[0], len(b[0])))
            for i in range(first, len(a), by):
                for j in range(len(b[0])):
                    for k in range(b.shape[0]):
                        c[i][j] += a[i][k] * b[k][j]
            return c
        a 2 b 2 first i by i
    """,
    "jacobi": """
        def jacobi(u, f, h):
            new = u.copy()
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    around = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1]
                    new[i, j] = 0.25 * (around - h ** 2 * f[i, j])
            return new
        u 2 f 2 h f
    """,
    "distances": """
        def distances(a, b):
            n = len(a)
            m = len(b)
            d = np.zeros((n, m))
            for i in range(n):
                for j in range(m):
                    d[i, j] = np.sqrt(np.sum((a[i] - b[j]) ** 2))
            return d
        a 2 b 2
    """,
    "nearest": """
        def nearest(points, centres):
            labels = np.zeros(len(points), dtype=int)
            for i in range(len(points)):
                labels[i] = np.argmin(np.linalg.norm(centres - points[i], axis=1))
            return labels
        points 2 centres 2
    """,
    "cluster_sizes": """
        def cluster_sizes(x, labels, k, noise):
            sizes = np.zeros(k)
            for j in range(k):
                sizes[j] = np.sum(labels == j)
            loud = np.sum(x[labels > noise])
            return sizes, loud
        x 1 labels 1 k i noise f
    """,
    "grey_levels": """
        def grey_levels(img):
            h = np.zeros(256)
            for r in range(img.shape[0]):
                for c in range(img.shape[1]):
                    h[img[r, c]] += 1
            return h
        img 2w
    """,
    "binned": """
        def binned(x, low, width, bins):
            counts = np.zeros(bins)
            for v in x:
                k = int((v - low) / width)
                if 0 <= k < bins:
                    counts[k] += 1
            return counts
        x 1 low f width f bins i
    """,
    "smooth": """
        def smooth(img, kernel):
            out = np.zeros(img.shape)
            for i in range(1, img.shape[0] - 1):
                for j in range(1, img.shape[1] - 1):
                    out[i, j] = np.sum(img[i - 1:i + 2, j - 1:j + 2] * kernel)
            return out
        img 2 kernel 2 kernel:3
    """,
    "convolve": """
        def convolve(x, w):
            n = len(x)
            m = len(w)
            y = np.zeros(n + m - 1)
            for i in range(n):
                for j in range(m):
                    y[i + j] += x[i] * w[j]
            return y
        x 1 w 1
    """,
    "moving_average": """
        def moving_average(x, w):
            out = []
            for i in range(len(x) - w + 1):
                out.append(np.mean(x[i:i + w]))
            return np.array(out)
        x 1 w i
    """,
    "median_filter": """
        def median_filter(x, k):
            out = np.zeros_like(x)
            for i in range(k, len(x) - k):
                out[i] = np.median(x[i - k:i + k + 1])
            return out
        x 1 k i
    """,
    "forces": """
        def forces(pos, mass, g, eps):
            n = pos.shape[0]
            acc = np.zeros((n, 3))
            for i in range(n):
                for j in range(n):
                    if i != j:
                        dx = pos[j, 0] - pos[i, 0]
                        dy = pos[j, 1] - pos[i, 1]
                        dz = pos[j, 2] - pos[i, 2]
                        r3 = (dx ** 2 + dy ** 2 + dz ** 2 + eps ** 2) ** 1.5
                        acc[i, 0] += g * mass[j] * dx / r3
                        acc[i, 1] += g * mass[j] * dy / r3
                        acc[i, 2] += g * mass[j] * dz / r3
            return acc
        pos 2 mass 1 g f eps f
    """,
    "energy": """
        def energy(pos, vel, mass):
            total = 0.0
            for i in range(len(mass)):
                total += 0.5 * mass[i] * np.sum(vel[i] ** 2)
                for j in range(i + 1, len(mass)):
                    total -= mass[i] * mass[j] / np.linalg.norm(pos[i] - pos[j])
            return total
        pos 2 vel 2 mass 1
    """,
    "viterbi": """
        def viterbi(obs, start, trans, emit):
            n = len(start)
            t_max = len(obs)
            delta = np.zeros((t_max, n))
            back = np.zeros((t_max, n), dtype=int)
            for s in range(n):
                delta[0, s] = start[s] * emit[s, obs[0]]
            for t in range(1, t_max):
                for s in range(n):
                    scores = delta[t - 1] * trans[:, s]
                    back[t, s] = np.argmax(scores)
                    delta[t, s] = np.max(scores) * emit[s, obs[t]]
            return delta
        obs 1w start 1 trans 2 emit 2
    """,
    "markov": """
        def markov(p, start, steps):
            x = start.copy()
            for t in range(steps):
                new = np.zeros(len(x))
                for i in range(len(x)):
                    for j in range(len(x)):
                        new[j] += x[i] * p[i, j]
                x = new
            return x
        p 2 start 1 steps i
    """,
    "matmul": """
        def matmul(a, b):
            n, m = a.shape
            p = b.shape[1]
            c = np.zeros((n, p))
            for i in range(n):
                for j in range(p):
                    for k in range(m):
                        c[i, j] += a[i, k] * b[k, j]
            return c
        a 2 b 2
    """,
    "matvec": """
        def matvec(a, x):
            y = np.zeros(a.shape[0])
            for i in range(a.shape[0]):
                y[i] = np.dot(a[i], x)
            return y
        a 2 x 1
    """,
    "lu": """
        def lu(a):
            n = a.shape[0]
            for k in range(n - 1):
                for i in range(k + 1, n):
                    a[i, k] = a[i, k] / a[k, k]
                    for j in range(k + 1, n):
                        a[i, j] -= a[i, k] * a[k, j]
            return a
        a 2
    """,
    "back_substitution": """
        def back_substitution(u, b):
            n = len(b)
            x = np.zeros(n)
            for i in range(n - 1, -1, -1):
                x[i] = (b[i] - np.dot(u[i, i + 1:], x[i + 1:])) / u[i, i]
            return x
        u 2 b 1
    """,
    "lagrange": """
        def lagrange(x, y, at):
            n = len(x)
            total = 0.0
            for i in range(n):
                term = y[i]
                for j in range(n):
                    if j != i:
                        term = term * (at - x[j]) / (x[i] - x[j])
                total += term
            return total
        x 1 y 1 at f
    """,
    "trapezoid": """
        def trapezoid(x, y):
            area = 0.0
            for i in range(1, len(x)):
                area += 0.5 * (y[i] + y[i - 1]) * (x[i] - x[i - 1])
            return area
        x 1 y 1
    """,
    "inside_circle": """
        def inside_circle(n, radius):
            x = np.random.rand(n)
            y = np.random.rand(n)
            hits = 0
            for i in range(n):
                if x[i] ** 2 + y[i] ** 2 < radius ** 2:
                    hits += 1
            return 4 * hits / n
        n i radius f
    """,
    "walk": """
        def walk(steps, sigma):
            x = np.zeros(steps)
            jumps = np.random.normal(0, sigma, steps)
            for i in range(1, steps):
                x[i] = x[i - 1] + jumps[i]
            return x
        steps i sigma f
    """,
    "row_means": """
        def row_means(img):
            out = np.zeros(img.shape[0])
            for i, row in enumerate(img):
                out[i] = row.mean()
            return out
        img 2
    """,
    "grey": """
        def grey(rgb):
            rows, columns, colours = rgb.shape
            out = np.zeros((rows, columns))
            for r in range(rows):
                for c in range(columns):
                    out[r, c] = 0.3 * rgb[r, c, 0] + 0.6 * rgb[r, c, 1] + 0.1 * rgb[r, c, 2]
            return out
        rgb 3
    """,
    "threshold": """
        def threshold(img, level):
            out = np.zeros_like(img)
            for r in range(img.shape[0]):
                for c in range(img.shape[1]):
                    if img[r, c] > level:
                        out[r, c] = 255
            return out
        img 2 level f
    """,
    "exponential_smoothing": """
        def exponential_smoothing(series, alpha):
            out = np.empty(len(series))
            out[0] = series[0]
            for t in range(1, len(series)):
                out[t] = alpha * series[t] + (1 - alpha) * out[t - 1]
            return out
        series 1 alpha f
    """,
    "autocorrelation": """
        def autocorrelation(x, lags):
            mean = np.mean(x)
            out = np.zeros(lags)
            for k in range(lags):
                s = 0.0
                for t in range(len(x) - k):
                    s += (x[t] - mean) * (x[t + k] - mean)
                out[k] = s / len(x)
            return out
        x 1 lags i
    """,
    "columns": """
        def columns(path):
            data = np.loadtxt(path)
            n, m = data.shape
            means = np.zeros(m)
            for j in range(m):
                total = 0.0
                for i in range(n):
                    total += data[i, j]
                means[j] = total / n
            return means
        data 2
    """,
    "doubled": """
        def doubled(path):
            data = load(path)
            n = data.shape[0]
            out = np.zeros(n)
            for i in range(n):
                out[i] = data[i] * 2
            return out
        data 1
    """,
    "squares": """
        def squares(values):
            out = []
            for v in values:
                out.append(v ** 2)
            return np.array(out)
        values 1
    """,
    "shapes": """
        def shapes(shape, value):
            out = np.zeros(shape)
            for i in range(out.shape[0]):
                for j in range(out.shape[1]):
                    out[i, j] = value * i + j
            return out
        value f
    """,
    "gradient_step": """
        def gradient_step(x, y, w, rate):
            grad = np.zeros(len(w))
            for i in range(len(y)):
                error = np.dot(x[i], w) - y[i]
                for j in range(len(w)):
                    grad[j] += error * x[i, j]
            return w - rate * grad
        x 2 y 1 w 1 rate f
    """,
    "periodic": """
        def periodic(u, c):
            n = u.size
            new = np.empty(n)
            for i in range(n):
                new[i] = u[i] - c * (u[i] - u[(i - 1) % n])
            return new
        u 1 c f
    """,
    "swapped": """
        def swapped(u, steps):
            new = u.copy()
            for step in range(steps):
                for i in range(1, u.shape[0] - 1):
                    for j in range(1, u.shape[1] - 1):
                        new[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                u, new = new, u
            return u
        u 2 steps i
    """,
}


def given(name: str) -> tuple[str, dict[str, str], dict[str, int]]:
    """Return source, what is to be assumed, and extents that are not the usual one."""
    *lines, last = dedent(FUNCTIONS[name]).strip().splitlines()
    words = last.split()
    small = dict(one.split(":") for one in words if ":" in one)
    words = [one for one in words if ":" not in one]
    source = "import numpy as np\nfrom files import load\n\n" + "\n".join(lines) + "\n"
    said = dict(zip(words[::2], words[1::2], strict=True))
    return source, said, {one: int(extent) for one, extent in small.items()}


def seen_in(name: str) -> tuple[str, Seen]:
    source = given(name)[0]
    options = Options("node2026", {}, (), (), None)
    (seen,) = (one for one in seen_functions("a.py", source, options) if one.function == name)
    return source, seen


def told(seen: Seen, source: str) -> dict[str, Any]:
    made = "load(" in source or "loadtxt(" in source
    found: dict[str, Any] = {one.name: one for one in (*seen.arrays, *seen.numbers)}
    return found | {one.name: one.what for one in seen.bindings if made and one.name == "data"}


def word(one: SeenArray | SeenNumber) -> str:
    whole = one.dtype in ("int64", "int")
    if isinstance(one, SeenNumber):
        return "i" if whole else "f"
    return f"{one.ndim}w" if whole else str(one.ndim)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_assumed(name: str) -> None:
    source, seen = seen_in(name)
    assert {one: word(what) for one, what in told(seen, source).items()} == given(name)[1]


def value(one: SeenArray | SeenNumber, extent: int) -> Any:
    rng, whole = np.random.default_rng(7), one.dtype in ("int64", "int")
    if isinstance(one, SeenNumber):
        return 2 if whole else 0.5
    shape = (extent,) * one.ndim
    return rng.integers(0, 3, shape) if whole else rng.random(shape) + np.arange(1, extent + 1)


def run(name: str, source: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Return what a function gives for arguments as they are assumed."""
    extents = given(name)[2]
    values = {
        one: value(what, extents.get(one, EXTENT)) for one, what in told(seen, source).items()
    }
    space: dict[str, Any] = {"load": lambda path: values["data"]}
    monkeypatch.setattr(np, "loadtxt", space["load"])
    np.random.seed(1)
    exec(compile(source.replace("from files import load\n", "\n"), "a.py", "exec"), space)
    with np.errstate(all="ignore"):
        found = space[name](**({"path": ""} if "data" in values else values))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", [one for one in FUNCTIONS if one != "shapes"])
def test_what_is_assumed_lets_it_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, seen = seen_in(name)
    assert all(np.all(np.isfinite(one)) for one in run(name, source, seen, monkeypatch))


@pytest.mark.parametrize("name", [one for one in FUNCTIONS if one != "shapes"])
def test_it_is_read_whole(name: str) -> None:
    source, seen = seen_in(name)
    (kernel,) = (one for one in read_kernels("a.py", source, (seen,)) if one.name == name)
    loads = [k for k, line in enumerate(source.splitlines(), 1) if "(path)" in line]
    gaps = [one for one in walk(kernel.body) if isinstance(one, Unknown)]
    assert not [one.reason for one in gaps if one.span.start_line not in loads]


@pytest.mark.parametrize("name", [one for one in FUNCTIONS if one != "shapes"])
def test_edits_give_what_the_text_gave(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, seen = seen_in(name)
    found = check_source("a.py", source, Options("node2026", {}, (), (), None)).findings
    offered = [one.fix.edits for one in found if one.fix is not None and one.fix.edits]
    if not offered:
        return
    made = [
        run(name, text, seen, monkeypatch) for text in (source, apply_edits(source, offered[0]))
    ]
    for one, other in zip(*made, strict=True):
        assert np.allclose(one, other, rtol=1e-9, equal_nan=True)


def test_most_of_them_can_be_faster() -> None:
    options = Options("node2026", {}, (), (), None)
    told = [name for name in FUNCTIONS if check_source("a.py", given(name)[0], options).findings]
    assert set(FUNCTIONS) - set(told) <= {
        # as many centres as points: distances by products need no less
        "nearest",
        # iterations wait for one another, and what each does goes by its index
        *("viterbi", "back_substitution", "lagrange"),
    }


OPAQUE = {
    "a call": "out[i] = mystery(x, i)",
    "an attribute": "out[i] = mystery(x, i).value",
    "an entry": "out[i] = table['key'][i] * 2",
    "a method": "out[i] = x[i].whatever()",
    "an element that grows": "seen[i] = 1; out[i] = seen.get(i - 1, 0)",
}


@pytest.mark.parametrize("opaque", OPAQUE)
@pytest.mark.parametrize("loop", ["for i in range(n):", "for i in range(len(x)):"])
def test_what_is_not_read_in_a_loop_is_never_fine(opaque: str, loop: str) -> None:
    lines = ["import numpy as np", "", "", "def f(x, n, table, seen):", "    out = np.zeros(n)"]
    source = "\n".join([*lines, f"    {loop}", f"        {OPAQUE[opaque]}", "    return out", ""])
    coverage = check_source("a.py", source, Options("node2026", {}, (), (), None)).coverage
    assert not coverage.fine and not coverage.complete
    assert any(gap.line in (4, 6, 7) for gap in coverage.not_understood) or coverage.unpriced


def test_what_is_read_whole_and_has_no_loop_is_fine() -> None:
    source = "import numpy as np\n\n\ndef f(n: int):\n    x = np.ones(n)\n    for i in range(3):\n"
    source += "        x[1:] += x[:-1]\n    return x\n"
    coverage = check_source(
        "a.py", source, Options("node2026", {"n": 50_000}, (), (), None)
    ).coverage
    assert coverage.complete and coverage.fine == ("f",)
