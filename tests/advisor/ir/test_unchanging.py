"""What loops and blocks compute again, by what their statements may change."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from advisor.ir.unchanging import computed_again
from advisor.source import with_keys

HEAD = """\
import numpy as np
from numpy.linalg import inv

SCALE = 2.0
TABLE = [1.0, 2.0]


def wave(n, a=1.0):
    made = np.zeros(n)
    for i in range(n):
        made[i] = a * np.sin(i * SCALE)
    return made


def weighted(n):
    return np.arange(n) * TABLE[0]


def scaled(x):
    x *= SCALE
    return x


def learned(value):
    TABLE.append(value)


class Model:
    @property
    def weights(self):
        return self.err * 2

    def update(self, values):
        values *= 2

    def f(self, x, y, z, rng, other):
        out, n = [], len(y)
        u = np.zeros(n)
        v, t = x[1:], y + 1 + z
        total, count = np.zeros(n), 0

        def add(value):
            nonlocal count
            total[0] += value
            count += 1

"""
LOOPS = [
    ("u[k] = np.exp(y).sum()", ["np.exp(y).sum()"]),
    ("x[k] = np.exp(y).sum()", ["np.exp(y)"]),
    ("a = np.exp(y)\nout.append(a.sum() * k)", ["a = np.exp(y)", "a.sum()"]),
    # what is bound or stored to in the loop, by any name
    ("x[k] = np.exp(x).sum()", []),
    ("v[k] = np.exp(x).sum()", []),
    ("x[k] = np.exp(v).sum()", []),
    ("y = y + np.exp(y)", []),
    ("u[k] = np.exp(y * k).sum()", []),
    ("np.add.at(x, k, np.exp(x).sum())", []),
    ("np.exp(x, out=y)\nu += np.log(y)", []),
    ("scaled(y)\nu += np.log(y)", []),
    ("u[k] += np.log(u.size) * np.log(u)", ["np.log(u.size)"]),
    # unknown code may change what it is given, what that leads to, and what functions change
    ("other(x)\nu += np.exp(y)", ["np.exp(y)"]),
    ("other(x)\nu += np.exp(x)", []),
    ("other(v)\nu += np.exp(x)", []),
    ("self.step()\nu += np.exp(self.y)", []),
    ("self.rng.step()\nu += np.exp(self.y)", ["np.exp(self.y)"]),
    ("z = other\nz.step()\nu += np.exp(other.y)", []),
    ("other.y = k\nu += np.exp(other.y)", []),
    ("other.w = k\nu += np.exp(other.y)", ["np.exp(other.y)"]),
    ("exec('y = 1')\nu += np.exp(y)", []),
    ("u += rng.normal(size=n) * np.exp(y)", ["np.exp(y)"]),
    # methods and properties of the file
    ("other.update(y)\nu += np.exp(y)", []),
    ("self.err = k\nu += np.exp(self.weights)", []),
    ("u += np.exp(self.weights)", ["np.exp(self.weights)"]),
    ("np.fromfunction(other, self)\nu += np.exp(self.weights)", []),
    # functions of the file
    ("u += wave(n)", ["wave(n)"]),
    ("u += weighted(n)", ["weighted(n)"]),
    ("learned(k)\nu += weighted(n)", []),
    ("u += scaled(y)", []),
    ("u += other(n)", []),
    ("add(k)\nu += np.exp(total)", []),
    ("add(k)\nu += np.exp(count)", []),
    ("u += np.exp(total) + np.exp(count)", ["np.exp(total) + np.exp(count)"]),
    # others get hold of what is made, and might change it
    ("out.append(np.exp(y))", []),
    ("a = np.exp(y)\nout.append(a)", []),
    ("a = np.exp(y)\na[0] = k\nu += a", []),
    ("a = np.exp(y)\nb = a[1:]\nb[0] = k\nu += a", []),
    ("a = np.exp(y)\nother(a)\nu += a", []),
    ("a = (y * 2)[1:]\na[0] = k\nu[1:] += a", []),
    ("a = (y * 2)[y > 1]\na[0] = k\nu += a[0]", ["y > 1"]),
    ("out[k] = np.exp(y)", []),
    ("a = sorted(y)\nout.append(a[k])", ["a = sorted(y)"]),
    ("a = sorted(y)\na[k].append(k)\nu += np.exp(y)", []),
    # an array of its own, which every iteration makes and changes alike
    (
        "a = np.exp(y)\na[a > 1] = 1\nb = a / a.sum()\nu += b * k",
        ["a = np.exp(y)", "a[a > 1] = 1", "b = a / a.sum()"],
    ),
    ("a = np.exp(y)\na[k] = 1\nu += a", []),
    ("u += t\na = y[1:]\na[0] = 1", []),
    # what an iteration needs from the one before, or may not compute
    ("u += a\na = np.exp(y)", []),
    ("z = np.exp(y).sum()\nu += z", ["np.exp(y)"]),
    ("n = len(np.exp(y))\nu += n * k", ["np.exp(y)"]),
    ("a = np.exp(y)\nu += a\na = k", []),
    ("if k > 3:\n    u += np.exp(y)", []),
    ("if k > 3:\n    break\nu += np.exp(y)", []),
    ("u += np.exp(y) if k else 0", []),
    ("u += [np.exp(y) for one in x][0]", ["[np.exp(y) for one in x][0]"]),
    ("u += np.random.rand(3)", []),
    ("for j in range(3):\n    u[j] += np.exp(y).sum()", ["np.exp(y).sum()"]),
    ("yield np.exp(y).sum() + k", []),
    ("def g():\n    return y\nu += np.exp(y)", []),
]


def texts(body: str) -> list[str]:
    """Return what comes before the loop of a method."""
    source = HEAD + indent(f"for k in range(n):\n{indent(body, '    ')}", "        ")
    found = computed_again(source).get((HEAD.count("\n") + 1, 8), ())
    of_loop = [one for one in found if all(len(uses) == 1 for uses in one.values)][:1]
    return [
        with_keys(ast.unparse(part))
        for one in of_loop
        for part in (*one.moved, *(uses[0] for uses in one.values))
    ]


def test_what_a_loop_goes_through_comes_first() -> None:
    source = HEAD + "        for k in other(y):\n            u[k] = np.exp(y).sum()\n"
    assert not computed_again(source)


BLOCKS = [
    ("p = np.exp(y) / np.exp(y).sum()", ["np.exp(y)"]),
    ("p = other(y) + np.exp(y) / np.exp(y).sum()", []),
    ("p = other(x) + np.exp(y) / np.exp(y).sum()", ["np.exp(y)"]),
    ("p = np.exp(y)\nother(y)\nq = np.exp(y) + 1", []),
    ("p = np.exp(y)\nother(p)\nq = np.exp(y) + 1", []),
    ("p = np.exp(y)\nother(x)\nq = np.exp(y) + 1", ["np.exp(y)"]),
    ("p = np.exp(y)\nwith other:\n    q = np.exp(y) + 1", []),
    ("p = [np.exp(v) + np.exp(v) for v in x]", []),
]


@pytest.mark.parametrize(("body", "wanted"), BLOCKS)
def test_what_nothing_in_between_changes_is_computed_once(body: str, wanted: list[str]) -> None:
    found = computed_again(HEAD + indent(body, "        "))
    uses = [uses for each in found.values() for one in each for uses in one.values]
    assert [ast.unparse(places[0]) for places in uses] == wanted
    assert all(len(places) == 2 for places in uses)


@pytest.mark.parametrize(("body", "wanted"), LOOPS)
def test_what_nothing_in_a_loop_changes_is_the_same(body: str, wanted: list[str]) -> None:
    assert texts(body) == wanted
