"""Nodes stand where LibCST itself finds them."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from advisor.frontend.trees import tree_of
from advisor.source import Span

ROOT = Path(__file__).parents[3]
SEVERAL = '''\
@one
class C(B, x=1):  # said
\tasync def f(self, /, a: int = (1), *args, **more) -> None:
\t\tasync with (a) as b, c:
\t\t\tawait (yield)
\t\tif ((x := 1)): pass; y = """two
lines"""
\t\telse:
\t\t\tdel (a), [b]
\t\treturn f"{x!r:>{y}} {z=}" 'beside' \\
\t\t\t"below"
'''


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_places_are_those_of_libcst(line_end: str) -> None:
    paths = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "advisor" / "ir").glob("*.py")]
    texts = [SEVERAL, SEVERAL.rstrip(), "", *(path.read_text("utf-8") for path in paths[::4])]
    for text in texts:
        tree = tree_of("f.py", text.replace("\n", line_end))
        wrapper = MetadataWrapper(tree.module, unsafe_skip_copy=True)
        told = wrapper.resolve(PositionProvider)
        assert len(told) > 5 or not text
        comments = []
        for node, place in told.items():
            start, end = place.start, place.end
            span = Span(start.line, start.column, end.line, end.column)
            assert tree.span_of(node) == span
            comments += [span] if isinstance(node, cst.Comment) else []
        assert tree.comments() == tuple(sorted(comments))
