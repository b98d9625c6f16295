"""Runs kernels whose time is the interpreter's, and holds predictions against the clock.

    python -m benchmarks.interpreted_kernels [--machine here] [--keep FILE]
    python -m benchmarks.interpreted_kernels --from FILE

The kernels were written before any of them was timed, and no model was changed for one of them:
loops over elements with functions of Python and of the library, numbers of Python, elements as
subscripts, variables; and loops of array statements on small parts. ``--keep`` stores what was
measured; ``--from`` predicts the same kernels anew and measures nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from statistics import median

from advisor.cli.common import text_style
from advisor.frontend.kernels import read_kernels
from advisor.ranking.compare import bind_sizes
from advisor.report.style import duration, table
from advisor.verify.cases import case_of
from advisor.verify.running import Effort, Measured, measure
from costdb.machines import load_machine

_EFFORT = Effort(launches=3, repetitions=9, seconds=0.15)
_COLUMNS = ("kernel", "inside", "predicted over measured", "low", "high", "measured")
_MATRIX, _VECTOR, _ROWS = "float64[N, M]", "float64[M]", "float64[N]"


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Arrays by name, further parameters, the body, and sizes."""

    arrays: Mapping[str, str]
    body: str
    sizes: Mapping[str, int]
    more: str = ""

    @property
    def source(self) -> str:
        """The file."""
        stated = "".join(f"# advise: {name}: {dtype}\n" for name, dtype in self.arrays.items())
        parameters = ", ".join((*self.arrays, *([self.more] if self.more else [])))
        lines = [f"    {line}\n" for line in self.body.strip("\n").split("\n")]
        head = "import math\n\nimport numpy as np\n\n\n# advise: kernel\n"
        return f"{head}{stated}def program({parameters}):\n{''.join(lines)}"


_KERNELS: Mapping[str, _Kernel] = {
    "clip": _Kernel(
        {"a": _MATRIX, "b": _MATRIX},
        """\
for i in range(a.shape[0]):
    for j in range(a.shape[1]):
        b[i, j] = min(max(a[i, j], lo), hi)
""",
        {"N": 40, "M": 60},
        "lo: float, hi: float",
    ),
    "blend": _Kernel(
        {"a": _MATRIX, "b": _MATRIX, "c": _MATRIX},
        """\
for i in range(a.shape[0]):
    for j in range(a.shape[1]):
        c[i, j] = (1.0 - t) * a[i, j] + t * b[i, j]
""",
        {"N": 50, "M": 50},
        "t: float",
    ),
    "gather": _Kernel(
        {"v": _VECTOR, "w": _ROWS, "k": "int64[N]"},
        """\
for i in range(w.shape[0]):
    w[i] = v[k[i]] * 2.0 + w[i]
""",
        {"N": 3000, "M": 500},
    ),
    "scatter": _Kernel(
        {"v": _VECTOR, "w": _ROWS, "k": "int64[N]"},
        """\
for i in range(w.shape[0]):
    v[k[i]] += w[i]
""",
        {"N": 2500, "M": 300},
    ),
    "norms": _Kernel(
        {"a": _MATRIX, "w": _ROWS},
        """\
for i in range(a.shape[0]):
    s = 0.0
    for j in range(a.shape[1]):
        s += a[i, j] * a[i, j]
    w[i] = math.sqrt(s)
""",
        {"N": 40, "M": 70},
    ),
    "matvec": _Kernel(
        {"a": _MATRIX, "v": _VECTOR, "w": _ROWS},
        """\
for i in range(a.shape[0]):
    s = 0.0
    for j in range(a.shape[1]):
        s += a[i, j] * v[j]
    w[i] = s
""",
        {"N": 60, "M": 40},
    ),
    "jacobi": _Kernel(
        {"a": _MATRIX, "b": _MATRIX},
        """\
for i in range(1, a.shape[0] - 1):
    for j in range(1, a.shape[1] - 1):
        b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
""",
        {"N": 40, "M": 45},
    ),
    "lcs": _Kernel(
        {"a": _MATRIX, "b": _MATRIX},
        """\
for i in range(1, a.shape[0]):
    for j in range(1, a.shape[1]):
        a[i, j] = max(a[i - 1, j], a[i, j - 1]) + b[i, j]
""",
        {"N": 50, "M": 44},
    ),
    "sqrt each": _Kernel(
        {"v": _VECTOR, "w": _VECTOR},
        """\
for i in range(v.shape[0]):
    w[i] = np.sqrt(v[i]) + np.exp(v[i])
""",
        {"M": 2000},
    ),
    "least np": _Kernel(
        {"v": _VECTOR, "w": _VECTOR, "x": _VECTOR},
        """\
for i in range(v.shape[0]):
    x[i] = np.minimum(v[i], w[i])
""",
        {"M": 1500},
    ),
    "cube": _Kernel(
        {"v": _VECTOR, "w": _VECTOR},
        """\
for i in range(v.shape[0]):
    x = v[i]
    w[i] = x * x * x + 2.0 * x - 1.0
""",
        {"M": 3000},
    ),
    "ints": _Kernel(
        {"a": "int64[N, M]", "b": "int64[N, M]"},
        """\
for i in range(a.shape[0]):
    for j in range(a.shape[1]):
        b[i, j] = 3 * a[i, j] + i
""",
        {"N": 40, "M": 50},
    ),
    "ints2float": _Kernel(
        {"a": "int64[N, M]", "b": _MATRIX},
        """\
for i in range(a.shape[0]):
    for j in range(a.shape[1]):
        b[i, j] = a[i, j] * b[i, j]
""",
        {"N": 45, "M": 45},
    ),
    "absdiff": _Kernel(
        {"a": _MATRIX, "b": _MATRIX, "w": _ROWS},
        """\
for i in range(a.shape[0]):
    w[i] = 0.0
    for j in range(a.shape[1]):
        w[i] += abs(a[i, j] - b[i, j])
""",
        {"N": 35, "M": 60},
    ),
    "relu": _Kernel(
        {"a": _MATRIX, "b": _MATRIX},
        """\
for i in range(a.shape[0]):
    for j in range(a.shape[1]):
        b[i, j] = a[i, j] if a[i, j] > 0.5 else 0.0
""",
        {"N": 50, "M": 40},
    ),
    "prefix": _Kernel(
        {"v": _VECTOR},
        """\
for i in range(1, v.shape[0]):
    v[i] = v[i] + v[i - 1] * 0.5
""",
        {"M": 4000},
    ),
    "short inner": _Kernel(
        {"a": "float64[N, 3]", "b": "float64[N, 3]"},
        """\
for i in range(a.shape[0]):
    for j in range(3):
        b[i, j] = a[i, j] * 2.0
""",
        {"N": 800},
    ),
    "row means": _Kernel(
        {"a": _MATRIX, "w": _ROWS},
        """\
for i in range(a.shape[0]):
    w[i] = np.mean(a[i])
""",
        {"N": 500, "M": 40},
    ),
    "row sums": _Kernel(
        {"a": _MATRIX, "w": _ROWS},
        """\
for i in range(a.shape[0]):
    w[i] = a[i, :].sum()
""",
        {"N": 600, "M": 30},
    ),
    "row scale": _Kernel(
        {"a": _MATRIX, "w": _ROWS},
        """\
for i in range(a.shape[0]):
    a[i, :] = a[i, :] * w[i]
""",
        {"N": 600, "M": 24},
    ),
    "row shift": _Kernel(
        {"a": _MATRIX, "b": _MATRIX},
        """\
for i in range(1, a.shape[0]):
    b[i, 1:] = a[i, 1:] + a[i - 1, :-1]
""",
        {"N": 500, "M": 50},
    ),
    "row add in place": _Kernel(
        {"a": _MATRIX, "v": _VECTOR},
        """\
for i in range(a.shape[0]):
    a[i] += v
""",
        {"N": 700, "M": 32},
    ),
    "column sub": _Kernel(
        {"a": _MATRIX, "v": _VECTOR},
        """\
for j in range(a.shape[1]):
    v[j] = a[0, j] - a[1:, j].max()
""",
        {"N": 40, "M": 500},
    ),
    "two dim views": _Kernel(
        {"a": "float64[N, N]", "b": "float64[N, N]"},
        """\
for t in range(T):
    b[1:-1, 1:-1] = a[2:, 1:-1] - a[:-2, 1:-1]
""",
        {"N": 12, "T": 400},
        "T: int",
    ),
}


def main() -> int:
    """Predict and measure, or predict what was measured; print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", default="here")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--from", dest="given", type=Path, metavar="FILE")
    given = parser.parse_args()
    machine = load_machine(given.machine)
    kept = {} if given.given is None else json.loads(given.given.read_text("utf-8"))
    rows, inside, off = [], 0, []
    for name, one in _KERNELS.items():
        (kernel,) = read_kernels(f"{name}.py", one.source)
        sizes = bind_sizes(kernel, one.sizes).values
        case = case_of(f"{name}.py", one.source, kernel, sizes, machine, ())
        predicted = case.variants[0].predicted
        if given.given is None:
            kept[name] = asdict(measure(case, _EFFORT)[0])
        found = Measured(**kept[name])
        if predicted is None or found.failure:
            rows.append((name, found.failure or "no price", "", "", "", ""))
            continue
        holds = predicted.low <= found.seconds <= predicted.high
        inside += holds
        ratios = [t / found.seconds for t in (predicted.mid, predicted.low, predicted.high)]
        off.append(abs(log(ratios[0])))
        shown = (f"{ratio:.2f}" for ratio in ratios)
        rows.append((name, "yes" if holds else "NO", *shown, duration(found.seconds)))
    print(table(_COLUMNS, rows, 2, text_style(None)), end="")
    print(f"{inside} of {len(off)} inside, half of them within a factor of {1 + median(off):.2f}")
    if given.keep is not None:
        given.keep.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
