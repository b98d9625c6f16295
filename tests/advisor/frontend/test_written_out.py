"""Loops over values that are written out do what their iterations do, written one by one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Loop, Unknown, Unrolled, unrolled, walk
from advisor.transform_registry import transforms
from costdb.expr import to_text

HEADER = """\
import itertools
import numpy as np
{module}
# advise: kernel N=100 T=3 P=4
# advise: u: f8[N, N] over ({first}, {second}) on mesh(p=P)
# advise: v: f8[N, N] over ({first}, {second}) on mesh(p=P)
# advise: w: f8[N, N] over ({first}, {second}) on mesh(p=P)
def f(u, v, w, N: int, T: int):
"""

BODIES = (
    "v[3:-3, 3:-3] += {a} * u[3 + {a}:N - 3 + {a}, 3 + {b}:N - 3 + {b}]",
    "v[{a} + 3, :] = u[{b} + 3, :]",
    "v += np.roll(u, {a}, axis=0)",
    "s = u * 2\nv -= s * {b}",
    "for i in range(3, N - 3):\n    v[i, {b} + 3] = u[i + {a}, 3]",
)
SMALL = st.integers(-2, 2)
NUMBERS = st.floats(-9, 9).filter(lambda one: abs(one) > 1e-2) | st.sampled_from([0.1, 0.3, -0.7])
ENDS = ("{a}", "{a}, {b}", "{a}, {b}, {c}", "0.1, {b}, step", "{a}, {b}, STEP")
STYLES = ("tuple", "list", "local", "local list", "module", "numbered", "beside", "places", "keyed")


def kernel_of(body: str, module: str = "", dims: tuple[str, str] = ("none", "block(p)")) -> Kernel:
    header = HEADER.format(module=module, first=dims[0], second=dims[1])
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (kernel,) = read_kernels("k.py", header + lines)
    return kernel


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=4),
    st.sampled_from(BODIES),
    st.sampled_from(STYLES),
    st.sampled_from([("none", "block(p)"), ("block(p)", "none"), ("none", "none")]),
)
def test_iterations_cost_what_they_cost_one_by_one(
    pairs: list[tuple[int, int]], body: str, style: str, dims: tuple[str, str]
) -> None:
    written = repr(tuple(pairs))
    firsts, seconds = (repr(tuple(column)) for column in zip(*pairs, strict=True))
    keyed = {f"{number}": pair for number, pair in enumerate(pairs)}
    tables = {"module": written, "keyed": keyed}
    module = f"OFFSETS = {tables[style]}\n" if style in tables else ""
    heads = {
        "tuple": f"for a, b in {written}:\n",
        "list": f"for a, b in {pairs!r}:\n",
        "local": f"offsets = {written}\nfor a, b in offsets:\n",
        "local list": f"offsets = {pairs!r}\nfor a, b in offsets:\n",
        "module": "for a, b in OFFSETS:\n",
        "keyed": "for name, (a, b) in OFFSETS.items():\n",
        "numbered": f"for number, (a, b) in enumerate({written}):\n",
        "beside": f"for a, b in zip({firsts}, {seconds}):\n",
        "places": f"xs, ys = {firsts}, {seconds}\nfor at in range({len(pairs)}):\n"
        "    a, b = xs[at], ys[at]\n",
    }
    looped = kernel_of(heads[style] + indented(body.format(a="a", b="b")), module, dims)
    apart = kernel_of("\n".join(body.format(a=f"({a})", b=f"({b})") for a, b in pairs), "", dims)
    assert not [s for s in walk(looped.body) if isinstance(s, Unknown)], looped.body
    assert lower(looped) == lower(apart)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=5), st.booleans())
def test_sums_of_neighbours_are_sums_of_elements(
    pairs: list[tuple[int, int]], skipped: bool
) -> None:
    skip = "            if (a, b) == (0, 0):\n                continue\n" if skipped else ""
    loops = "for i in range(2, N - 2):\n    for j in range(2, N - 2):\n"
    looped = kernel_of(
        f"{loops}        s = 0.5\n        for a, b in {tuple(pairs)!r}:\n{skip}"
        "            s += u[i + a, j + b]\n        v[i, j] = s\n"
    )
    kept = [pair for pair in pairs if not skipped or pair != (0, 0)]
    total = "".join(f" + u[i + ({a}), j + ({b})]" for a, b in kept)
    apart = kernel_of(f"{loops}        v[i, j] = 0.5{total}\n")
    if kept:
        assert lower(looped) == lower(apart)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("d = [(0, 1)]\nd[0] = (2, 2)\nfor a, b in d:\n    v[a] = u[b]", "value of `a` is not"),
        ("d = [(0, 1)]\nd.append((2, 2))\nfor a, b in d:\n    v[a] = u[b]", "value of `a` is not"),
        ("for a in (1, 3, 2):\n    a = 2\n    v[a] = u[a]", "changes what it goes through"),
        ("for a, b in ((1, 2), 3):\n    v[a] = u[b]", "do not fit its names"),
        ("for a in (u.sum(), 2.0):\n    v += a", "values that are computed"),
        (f"for a in {tuple(i * i for i in range(70))}:\n    v += a", "more than 64"),
    ],
)
def test_what_is_not_followed_is_said(body: str, reason: str) -> None:
    kernel = kernel_of(body)
    reasons = [s.reason for s in walk(kernel.body) if isinstance(s, Unknown)]
    assert any(reason in said for said in reasons), reasons


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(1, N):\n        for j in range(N):\n            v[i, j] = u[i, j] * {c}",
        "for j in range(1, N):\n        v[:, j] = v[:, j - 1] + {c}",
        "for i in range(N):\n        for j in range(N):\n            s += u[i, j] * {c}",
        "w = u.copy()\n    for k in range(1, 5):\n        w += np.roll(u, k, axis=1)\n"
        "    v += w * {c}",
    ],
)
def test_no_rule_rewrites_what_stands_for_several_iterations(body: str) -> None:
    looped = kernel_of(f"s = 0.0\nfor c in (2, 5, 3):\n    {body.format(c='c')}\nreturn s")
    (place,) = [s for s in looped.body if isinstance(s, Unrolled)]
    alone = kernel_of(f"s = 0.0\nif N > 0:\n    {body.format(c=2)}\nreturn s")
    assert re.search("Loop|Store", repr(alone.body))
    assert any(isinstance(s, Loop) for s in unrolled(looped.body))
    for rule in transforms():
        for proposal in rule.propose(looped):
            for edit in proposal.edits():
                assert not place.span.contains(edit.span), (rule.code, edit)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(ENDS))
def test_as_many_numbers_are_made_as_numpy_makes(a: float, b: float, c: float, form: str) -> None:
    values = {"step": c, "STEP": abs(c)}
    ends = form.format(a=a, b=b, c=c)
    source = f"import numpy as np\nSTEP = {abs(c)}\n# advise: kernel\ndef f():\n    step = {c}\n"
    (kernel,) = read_kernels("k.py", f"{source}    x = np.arange({ends})\n    return x\n")
    count = len(eval(f"np.arange({ends})", {"np": np, **values}))
    assert [to_text(one) for one in kernel.extents("x")] == [str(count)]
