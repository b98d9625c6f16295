"""How a user types: what is changed, one step after another."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from tests.lsp.fuzz.editor import Editor

TYPED = (
    *"abN=(),:.[]\"' #\\0",
    "\n", "\r\n", "\r", "    ", "\t", "#", "pass", "if x:\n", "def f(", '"""', "'''",
    "😀", "𝑓", "ä", "漢", "e\u0301", "\u200d", "# 👩‍🚀 \f \u2028 \x85 #", "🏳️‍🌈 = 1",
    "# advise: ignore[ADV101]", "# advise: kernel N=", "N = 50\n", "x = 1  # ok\n", "\n\n",
    "return above\n", "above[1:, :]", "@kernel(N=10)\n", "Block(", 'Mesh(rank=4)', "\ufeff", "\0",
)  # fmt: skip

Step = tuple[int, int, str]


def wild(source: random.Random, editor: Editor) -> Iterator[Step]:
    """Yield a user's action as changes (start, end, new), one after another; most break a file."""
    text = editor.text
    kind = source.random()
    here = _boundary(text, source.randint(0, len(text)))
    if kind < 0.45:  # type something
        yield here, here, source.choice(TYPED)
    elif kind < 0.6:  # type it letter by letter
        for key in source.choice(("x = 1\n", "# 😀 𝑓\r", "if N:\n    pass\n")):
            here = _boundary(editor.text, here)
            yield here, here, key
            here += 1
    elif kind < 0.9:  # delete a little
        yield here, _boundary(text, min(len(text), here + source.randint(1, 6))), ""
    else:  # paste over a stretch of lines
        end = _boundary(text, min(len(text), here + source.randint(0, 200)))
        yield here, end, source.choice((editor.start, "", "\n" * 3, "z = '😀'\n", "\t"))


def gentle(source: random.Random, editor: Editor) -> Iterator[Step]:
    """Yield a change that leaves a readable file readable, and moves what it says."""
    text = editor.text
    here = source.randint(0, len(text))
    end = text.find("\n", here)
    kind = source.random()
    if kind < 0.15:  # another number, such as a size: what is known of its kernel is gone
        places = [*re.finditer(r"(?<![\w.])[1-9]\d*(?![\w.])", text)]
        if places:
            chosen = source.choice(places)
            yield chosen.start(), chosen.end(), str(int(chosen[0]) + source.randint(1, 3))
    elif kind < 0.3 and end > 0:  # another end of the line
        start = end - (text[end - 1] == "\r")
        yield start, end + 1, source.choice(("\r\n", "\n", "\r"))
    elif kind < 0.7:  # a blank before a word, behind letters of several units
        places = [
            word.start()
            for line in re.finditer(r"𝑓ä.*", text)
            for word in re.compile(r"(?<=[ (\[,])\w").finditer(text, *line.span())
        ]
        if places:
            here = source.choice(places)
            yield here, here, source.choice((" ", "  ", "\t"))
    else:  # comments and blank lines
        end = len(text) if end < 0 else end - (text[end - 1 : end] == "\r")
        yield end, end, source.choice(("  # 👩‍🚀", "\t# 漢字", " ", "\n", "\r\n\r\n", "\r"))


def _boundary(text: str, offset: int) -> int:
    """No editor puts its cursor between the two characters of a line end."""
    return offset + 1 if text[offset - 1 : offset + 1] == "\r\n" else offset
