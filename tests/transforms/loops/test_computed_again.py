"""ADV506: what is computed again is the same value, whatever is stored, bound or left out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.finding import Applicability
from advisor.source import apply_edits
from tests.transforms.checks import only_kernel
from transforms.loops.computed_again import TRANSFORM

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of empty arrays
HEAD = """\
import numpy as np

# advise: kernel
# advise: x: f8[N]
# advise: y: f8[N]
# advise: a: f8[N, N]
# advise: c: float
def f(x, y, a, c):
"""
WRITTEN = [
    (
        "return np.exp(x) / np.exp(x).sum()",
        "exp_x = np.exp(x)\nreturn exp_x / exp_x.sum()",
    ),
    ("s = x[x > c].sum()\nreturn s + y[x > c].sum()",
     "mask = x > c\ns = x[mask].sum()\nreturn s + y[mask].sum()"),
    ("s = np.exp(x).sum()\nreturn s + np.exp(x).sum()", "s = np.exp(x).sum()\nreturn s + s"),
    ("t = np.exp(x)\nreturn t + np.exp(x)", "t = np.exp(x)\nreturn t + t"),
    ("for k in range(len(x)):\n    y += np.exp(x)",
     "exp_x = np.exp(x)\nfor k in range(len(x)):\n    y += exp_x"),
    ("y /= np.linalg.norm(y - x) + np.linalg.norm(y - x)",
     "norm_y_x = np.linalg.norm(y - x)\ny /= norm_y_x + norm_y_x"),
    (
        "s = np.exp(x).sum()\ns = s + 1\nreturn s + np.exp(x).sum()",
        "exp_x = np.exp(x)\ns = exp_x.sum()\ns = s + 1\nreturn s + exp_x.sum()",
    ),
    # what is long keeps its lines, and a name needs no parentheses
    (
        "for k in range(len(x)):\n    y += k * (\n        np.exp(x) * c + np.cos(x) * 2.0\n"
        "        - np.log(x * x + 1.0) * 4.0\n            + np.sin(x) * 3.0\n    )",
        "total = (\n    np.exp(x) * c + np.cos(x) * 2.0\n    - np.log(x * x + 1.0) * 4.0\n"
        "        + np.sin(x) * 3.0\n)\nfor k in range(len(x)):\n    y += k * total",
    ),
    (
        "for k in range(len(x)):\n    y += k * (\n        np.exp(x)\n        * c\n    )",
        "product = np.exp(x) * c\nfor k in range(len(x)):\n    y += k * product",
    ),
    # not the same value, or not surely computed
    ("s = np.exp(x).sum()\nx[0] = 1.0\nreturn s + np.exp(x).sum()", None),
    ("s = np.exp(x * c).sum()\nc = c + 1\nreturn s + np.exp(x * c).sum()", None),
    ("for k in range(len(x)):\n    x += np.exp(x)", None),
    ("for k in range(len(x)):\n    y += np.exp(x * k)", None),
    ("for k in range(len(x)):\n    c = c / 2\n    y += np.exp(x * c)", None),
    ("for k in range(len(x)):\n    if y[k] > 0:\n        y += np.exp(x)", None),
    ("for k in range(len(x)):\n    if y[k] > 0:\n        break\n    y += np.exp(x)", None),
    ("if c > 0:\n    y += np.exp(x)\nreturn y + np.exp(x)", None),
    ("s = c > 0 and np.exp(x).sum()\nreturn np.exp(x).sum()", None),
    ("u = x[1:]\ns = np.exp(x).sum()\nu[:] = 0\nreturn s + np.exp(x).sum()", None),
    ("s = np.exp(x).sum()\nexec('x[0] = 1')\nreturn s + np.exp(x).sum()", None),
    # what gets a name may be stored to
    ("t = np.exp(x)\nt[0] = 1.0\nreturn t + np.exp(x)", None),
    ("t = np.exp(x)\nu = t[1:]\nu[0] = 1.0\nreturn t + np.exp(x)", None),
    ("t = np.exp(x)\nu = np.exp(x)\nt[0] = 1.0\nreturn t, u", None),
    ("return x + y", None),
    ("for k in range(9):\n    c, s = x[x > c].mean(), x[x > c].std()",
     "for k in range(9):\n    x_c = x[x > c]\n    c, s = x_c.mean(), x_c.std()"),
    (
        "t = np.exp(x)\nfor k in range(3):\n    y += np.exp(x) * 2\n    t[0] = 5.0\nreturn t",
        "t = np.exp(x)\nproduct = np.exp(x) * 2\nfor k in range(3):\n    y += product\n"
        "    t[0] = 5.0\nreturn t",
    ),
    # a name that nothing stores to may stand for the same array each time
    ("for k in range(3):\n    t = np.exp(x)\n    y += t * k",
     "t = np.exp(x)\nfor k in range(3):\n    y += t * k"),
    ("for k in range(3):\n    t = np.exp(x)\n    t[0] = k\n    y += t", None),
    ("for k in range(3):\n    t = np.exp(x)\n    t[:1] += 1.0\n    y += t * k",
     "t = np.exp(x)\nt[:1] += 1.0\nfor k in range(3):\n    y += t * k"),
    ("for k in range(3):\n    t = np.exp(x)\n    t += y\n    y += t", None),
    ("for k in range(3):\n    t = np.exp(x)\n    y += t * k\n    t[t > 1] = 0.0\n    y += t", None),
    ("for k in range(3):\n    t = np.exp(x)\n    u = t[1:]\n    u[0] = k\n    y += t", None),
    ("for k in range(3):\n    t = np.exp(x)\n    if c > k:\n        t[0] = k\n    y += t", None),
    ("r = []\nfor k in range(3):\n    t = np.exp(x)\n    r.append(t)\nreturn r", None),
    ("r = {}\nfor k in range(3):\n    t = np.exp(x)\n    r[k] = t\nreturn r", None),
    ("for k in range(3):\n    t = np.exp(x)\n    np.add.at(t, [k], 1.0)\n    y += t", None),
    ("for k in range(3):\n    t = np.exp(x)\n    t.sort()\n    y += t", None),
    # over several lines; a comment among them would be lost
    ("for k in range(3):\n    y += (x * c /\n          (c + 2))",
     "quotient = x * c / (c + 2)\nfor k in range(3):\n    y += quotient"),
    ("for k in range(3):\n    y += x /\\\n        (c + 2)",
     "quotient = x / (c + 2)\nfor k in range(3):\n    y += quotient"),
    ("for k in range(3):\n    y += (x /  # all\n          (c + 2))", None),
    # drawn numbers are others each time
    ("s = np.random.rand(9)\nt = np.random.rand(9)\nreturn s + t", None),
    ("for k in range(4):\n    t = np.random.rand(9)\n    y[:9] += t", None),
]  # fmt: skip


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(("body", "wanted"), WRITTEN)
def test_what_is_computed_again_gets_a_name(body: str, wanted: str | None) -> None:
    source = HEAD + indented(body)
    found = [one for one in TRANSFORM.propose(only_kernel(source)) if one.edits()]
    texts = [apply_edits(source, one.edits()) for one in found]
    assert texts == ([] if wanted is None else [HEAD + indented(wanted)])


VALUES = [
    *("np.exp(x)", "np.sqrt(x * x + y * y)", "np.where(x > c, x, y)", "x * y + c", "np.exp(x) * y"),
    *("a @ x", "np.linalg.norm(x)", "np.exp(y)", "x[x > c].sum()", "np.abs(x).max()", "t * 2"),
    *("np.exp(x) / np.exp(x).sum()", "np.cumsum(y)", "x * y", "np.exp(t) + np.exp(x)"),
]


def statements(chance: random.Random, depth: int) -> Iterator[str]:
    for _ in range(chance.randint(2, 5)):
        value, other = (chance.choice(VALUES) for _ in range(2))
        choice = chance.randint(0, 17)
        if choice == 0 and depth < 2:
            bound = chance.choice(["len(x)", "3", "k" if depth else "2"])
            yield f"for {'kj'[depth]} in range({bound}):"
            yield from (f"    {one}" for one in statements(chance, depth + 1))
        elif choice == 1 and depth < 2:
            yield "if c > 0:"
            yield from (f"    {one}" for one in statements(chance, depth + 1))
        else:
            yield from [
                f"y[:] = {value}",
                f"y += {value}",
                f"x[0] = ({value}).sum()",
                f"c = ({value}).sum()",
                f"c = c + ({value}).sum() * ({other}).max()",
                f"t = {value} + x",
                f"t = {value} * y + {other}",
                "t[0] = c",
                "x = x + 1",
                f"u = {value} + {other} + x",
                f"y[1:] = t[1:] * ({value}).sum()",
                f"t = {value} + np.zeros_like(x)",
                f"v = {value} + x\nv[:1] += 1.0\ny += v * c",
                f"v = {value} + x\ny += v * c\nv[v > 0.5] = 0.0\ny += v * c",
                f"v = {value} + x\nu = v[1:]\ny += v * c\nu[:1] += 1.0\ny += v * c",
                f"t = {chance.choice(['np.exp(x)', 'x * y', 'np.cumsum(y)'])}",
                f"c, t = ({value}).mean(), x * ({value}).std()",
                f"c, x[0] = ({value}).sum(), ({value}).sum() + ({other}).max()",
            ][choice].splitlines()


def result(text: str, *, shared: bool, size: int, c: float) -> Any:
    names = dict[str, Any]()
    exec(compile(text, "program.py", "exec"), names)
    given = np.random.default_rng(3)
    memory = given.random(size + 1)
    x, y = (memory[:-1], memory[1:]) if shared else (given.random(size), given.random(size))
    with np.errstate(all="ignore"):
        try:
            return [names["f"](x, y, given.random((size, size)), c), x, y]
        except Exception as error:
            return type(error)


def test_programs_come_to_the_same() -> None:
    """Bit for bit: the safe edits for all that is passed, others on their conditions."""
    proposed = 0
    for seed in range(80):
        body = "t = np.zeros_like(x)\n" + "\n".join(statements(random.Random(seed), 0))
        source = f"{HEAD}{indented(body)}    return x, y, t, c\n"
        for one in TRANSFORM.propose(only_kernel(source)):
            after = apply_edits(source, one.edits())
            proposed += 1
            safe = one.legality.applicability is Applicability.SAFE
            for shared, size, c in (
                *((False, 5, 0.5), (False, 1, -0.5)),
                *([(True, 4, 0.5), (False, 0, -1.0)] if safe else []),
            ):
                case = {"shared": shared, "size": size, "c": c}
                before, then = result(source, **case), result(after, **case)
                np.testing.assert_equal(then, before, err_msg=f"{source}\n{after}\n{case}")
    assert proposed > 40


def test_what_is_stored_in_a_branch_may_share_memory() -> None:
    body = "s = np.exp(x).sum()\nif c > 0:\n    y[0] = c\n    s = s + np.exp(x).sum()\nreturn s"
    source = HEAD + indented(body)
    (one,) = TRANSFORM.propose(only_kernel(source))
    assert one.legality.applicability is Applicability.UNSAFE and "overlap" in one.legality.argument


def test_products_of_complex_numbers_may_be_rounded_otherwise() -> None:
    source = (
        "import numpy as np\n\n# advise: kernel\n# advise: z: c16[N]\n"
        "def f(z):\n    a = np.exp(z) * (1 + z)\n    b = np.exp(z) * (2 - z)\n    return a, b\n"
    )
    for text, kind in ((source, Applicability.UNSAFE), (source.replace("c16", "f8"), None)):
        kernel = only_kernel(text)
        (one,) = TRANSFORM.propose(kernel)
        assert one.legality.applicability is (kind or Applicability.SAFE)


def test_what_another_step_has_taken_out_is_no_work() -> None:
    """A plan has done without the mask that two sums of each group share."""
    source = """
import numpy as np

def sums(kind, w):
    a, b = np.zeros(20), np.zeros(20)
    for k in range(20):
        m = kind == k
        a[k] = w[m].sum()
        b[k] = (w[m] ** 2).sum()
    return a, b

sums(np.arange(200) % 20, np.ones(200))
"""
    options = Options("node2026", {}, (), (), 1.0, everything=True)
    found = check_source("program.py", source, options).findings
    assert "replace the loop over `k` by array statements" in [one.title for one in found]
