"""The text as an editor holds it, which shares no arithmetic of positions with the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.lsp.fuzz.files import START
from tests.lsp.wire import ProtocolError

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class Wrong(ProtocolError):
    """An answer was stale, or named a wrong place."""


@dataclass
class Editor:
    """The text as an editor holds it, in the encoding of its columns.

    Lines end at a line feed, a carriage return, or both, as the protocol says. `told` are the texts
    that the server was told of since it last answered about one that can be read.
    """

    encoding: str
    start: str = START
    text: str = ""
    version: int = 1
    told: tuple[str, ...] = ()
    codec: str = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.codec, self.width = CODECS[self.encoding]
        self.text = self.text or self.start

    def place(self, offset: int) -> dict[str, int]:
        """The position of a code point, by splitting encoded text at encoded line ends."""
        before = self.text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        if self.text[offset - 1 : offset + 1] == "\r\n":
            raise Wrong("the driver cut a line end in half")
        rest = before.rpartition("\n")[2]
        return {
            "line": before.count("\n"),
            "character": len(rest.encode(self.codec)) // self.width,
        }

    def covered(self, start: dict[str, int], end: dict[str, int]) -> str:
        """The text between two positions, found by slicing encoded lines."""
        lines = lines_of(self.text)
        chosen = lines[start["line"] : end["line"] + 1]
        encoded = [line.encode(self.codec, "surrogatepass") for line in chosen]
        for number, place in ((0, start), (-1, end)):
            if place["character"] * self.width > len(encoded[number]):
                raise Wrong(f"column {place} lies behind the end of its line")
        last = encoded[-1][: end["character"] * self.width]
        encoded[-1] = last
        encoded[0] = encoded[0][start["character"] * self.width :]
        return "\n".join(part.decode(self.codec) for part in encoded)

    def edit(self, start: int, end: int, new: str) -> dict[str, Any]:
        """Replace code points and return the change as the protocol has it."""
        change = {"range": {"start": self.place(start), "end": self.place(end)}, "text": new}
        self.text = self.text[:start] + new + self.text[end:]
        return change


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, wherever an editor ends them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
