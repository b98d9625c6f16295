"""Visitors see the nodes that LibCST shows them, in its order, but for blanks and punctuation."""

from pathlib import Path

import libcst as cst
import pytest

from advisor.frontend.syntax import walking

ROOT = Path(__file__).parents[3]
SOURCES = [
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted((ROOT / "advisor" / "frontend" / "spmd").rglob("*.py")),
]

EVERYTHING = '''\
"""All kinds of statements and expressions."""
from __future__ import annotations
from a.b import (c as d, e)
import x.y as z, w
@first
@second(1, *a, k=2, **b)
async def f(p, /, q: int = 1, *args: T, r, s=2, **kw: U) -> V:
    async for i in aiter(): await g(i)
    else: pass
    async with open(p) as h, k: yield h
    return [u async for u in v if u if w for t in s]
class A(B, metaclass=M):
    x: int = 1; y: list[int]
    def g(self): global n; nonlocal_ = lambda a, *b, c=1, **d: a if b else c
def h(a, *, b):
    def inner():
        nonlocal a
        a = b
    try: raise E from a
    except (X, Y) as e: del a, b[0]
    except Z: continue_ = 1
    else: assert a, b
    finally: a.b.c[1:2, ::3, ..., None] = -a ** ~b @ c // d % e << f >> g & h | i ^ j
    try: pass
    except* V as group: pass
    while (n := next(a)) and not b or c in d and e not in f is g is not h: break
    else: a += b; a -= c; a @= d
    with (a as b, c): pass
    match a:
        case {"k": 1, **rest} | [x, *ys] | (A(1, k=y) as z) | None: pass
        case "s" if a > b >= c != d == e: pass
        case -1 | 1+2j | a.b | _: pass
    return {**a, "k": v, **{i: j for i, j in c}}, {*s, t}, (yield)
    return (yield from g), f"{a!r:>{w}}" "b", 1.5, 2j
if a: pass
elif b: x = y = z
else: [p, *q], (r, s) = t
'''


class Recorded(cst.CSTVisitor):
    """Notes every node that is entered and left."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, int]] = []
        self.kinds: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.events.append(("in", id(node)))
        self.kinds.append(type(node).__name__)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.events.append(("out", id(original_node)))


def compared(source: str) -> tuple[Recorded, list[tuple[str, int]]]:
    """Return what `show` shows, and what LibCST shows of the same nodes."""
    tree = cst.parse_module(source)
    ours, theirs = Recorded(), Recorded()
    walking.show(tree, ours)
    tree.visit(theirs)
    shown = {place for _, place in ours.events}
    return ours, [event for event in theirs.events if event[1] in shown]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_order_is_that_of_libcst(path: Path) -> None:
    ours, theirs = compared(path.read_text())
    assert ours.events == theirs


def test_every_kind_of_node_is_shown_in_order() -> None:
    ours, theirs = compared(EVERYTHING)
    assert ours.events == theirs
    tree = cst.parse_module(EVERYTHING)
    everything = Recorded()
    tree.visit(everything)
    left_out = set(everything.kinds) - set(ours.kinds)
    assert left_out <= {
        "AssignEqual", "Colon", "Comma", "Comment", "Dot", "EmptyLine", "LeftCurlyBrace",
        "LeftParen", "LeftSquareBracket", "Newline", "ParenthesizedWhitespace",
        "RightCurlyBrace", "RightParen", "RightSquareBracket", "Semicolon", "SimpleWhitespace",
        "TrailingWhitespace", "BitOr",
    }  # fmt: skip
