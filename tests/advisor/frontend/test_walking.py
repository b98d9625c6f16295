"""Nodes come in the order in which LibCST shows them, but for blanks, punctuation and imports."""

import libcst as cst

from advisor.frontend.syntax import trees

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
    """Notes every node that is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.nodes.append(node)
        return True


def test_every_kind_of_node_is_shown_in_order() -> None:
    tree = cst.parse_module(EVERYTHING)
    recorded = Recorded()
    tree.visit(recorded)
    ours, theirs = list(trees.nodes_in(tree)), recorded.nodes
    shown = set(map(id, ours))
    assert [id(node) for node in ours] == [id(node) for node in theirs if id(node) in shown]
    left_out = {type(node).__name__ for node in theirs} - {type(node).__name__ for node in ours}
    assert left_out <= {
        "AssignEqual", "Colon", "Comma", "Comment", "Dot", "EmptyLine", "LeftCurlyBrace",
        "LeftParen", "LeftSquareBracket", "Newline", "ParenthesizedWhitespace",
        "RightCurlyBrace", "RightParen", "RightSquareBracket", "Semicolon", "SimpleWhitespace",
        "TrailingWhitespace", "BitOr", "ImportAlias",
    }  # fmt: skip
