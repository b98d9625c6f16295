"""Which lines of a file each of its kernels depends on.

An edit within one kernel should not cost the analysis of all. A file is cut into *parts*, its
top-level functions with the comments above them, and the *frame*, all other statements. What a
part says follows from its own text, the frame, the functions that it names, and those that
reach out of themselves; other functions only have to exist under their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from advisor.edits import split_lines
from advisor.frontend.syntax.trees import top_level
from costdb.wording import IDENTIFIER

_IDENTIFIER = re.compile(IDENTIFIER)
_REACHES_OUT = re.compile(r"\bglobal\b")
"""Nothing else that a function says binds a name outside of it; imports bind names within."""
_MAY_HOLD_KERNEL = re.compile(r"@|advise")


@dataclass(frozen=True, slots=True)
class Part:
    """A top-level function, or the whole frame where that may hold a kernel.

    Attributes
    ----------
    name : str
        Empty for the frame.
    first, last : int
        Its lines, from 1, both included; comments above the function are its own.
    head : int
        The line of ``def``.
    """

    name: str
    first: int
    last: int
    head: int


@dataclass(frozen=True)
class Layout:
    """A file cut into parts.

    Attributes
    ----------
    source : str
    lines : tuple of str
        With their ends.
    parts : tuple of Part
        In order, the frame not among them.
    frame : tuple of (int, str)
        Lines of the other statements: number and text, without a comment behind a statement.
    """

    source: str
    lines: tuple[str, ...]
    parts: tuple[Part, ...]
    frame: tuple[tuple[int, str], ...]

    @cached_property
    def _reaching_out(self) -> frozenset[int]:
        return frozenset(
            number for number, part in enumerate(self.parts) if _reaches_out(self.text(part))
        )

    def text(self, part: Part) -> str:
        """Return the lines of a part."""
        return "".join(self.lines[part.first - 1 : part.last])

    def with_kernels(self, named: frozenset[str] = frozenset()) -> Iterator[Part]:
        """Yield the parts that may hold a kernel, and the frame as a part if it may.

        Parameters
        ----------
        named : frozenset of str
            Top-level names that are known to be kernels, or to hold some, whatever they say.
        """
        for part in self.parts:
            if part.name in named or _MAY_HOLD_KERNEL.search(self.text(part)):
                yield part
        frame = "".join(text for _, text in self.frame)
        if named - {part.name for part in self.parts} or _MAY_HOLD_KERNEL.search(frame):
            yield Part("", 0, 0, 0)

    def parts_named(self, name: str) -> Iterator[Part]:
        """Yield the functions of that name, and the frame, where others are nested."""
        yield from (part for part in self.parts if part.name == name)
        yield Part("", 0, 0, 0)

    def excerpt(self, part: Part) -> Excerpt:
        """Return the file without what cannot matter to a part."""
        kept = set(self._reaching_out)
        names = [_identifiers(self.text(one)) for one in self.parts]
        if part.name:
            kept.add(self.parts.index(part))
        known = {one.name for one in self.parts}
        reached: set[str] = set()
        waiting = list(kept)
        while waiting:
            reached |= names[waiting.pop()] & known
            new = [n for n, one in enumerate(self.parts) if one.name in reached and n not in kept]
            kept.update(new)
            waiting += new
        texts = [text for _, text in self.frame]
        lines = [line for line, _ in self.frame]
        own = range(1, len(lines) + 1)
        used = frozenset(_IDENTIFIER.findall("".join(texts))).union(*(names[n] for n in kept))
        for number, one in enumerate(self.parts):
            if one == part:
                own = range(len(lines) + 1, len(lines) + 2 + one.last - one.first)
            if number in kept:
                texts += self.lines[one.first - 1 : one.last]
                lines += range(one.first, one.last + 1)
            elif one.name in used:
                texts.append(f"def {one.name}(): ...\n")
                lines.append(one.head)
        whole = tuple(text if text.endswith(("\n", "\r")) else f"{text}\n" for text in texts)
        return Excerpt("".join(whole), tuple(lines), own, len(self.frame))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What matters to a part, as a text of its own.

    Two excerpts with the same text and the same `own` lines give the same, wherever in a file
    they come from.

    Attributes
    ----------
    source : str
        The frame, then functions: whole, or where only the name matters without their bodies.
    lines : tuple of int
        For each of its lines, the line in the file.
    own : range
        Which of its lines, from 1, are the part itself.
    frame : int
        How many lines, at its start, are the frame.
    """

    source: str
    lines: tuple[int, ...]
    own: range
    frame: int

    @property
    def key(self) -> tuple[str, range]:
        """What the part's kernels follow from."""
        return self.source, self.own

    @property
    def own_text(self) -> str:
        """The lines that are the part itself."""
        return "".join(split_lines(self.source)[self.own.start - 1 : self.own.stop - 1])

    def in_file(self, line: int) -> int:
        """Return the line of the file for a line of the excerpt, from 1."""
        return self.lines[line - 1] if 1 <= line <= len(self.lines) else line


def layout_of(source: str) -> Layout | None:
    """Cut a file into parts; None when it does not parse."""
    statements = top_level(source)
    if statements is None:
        return None
    lines = tuple(split_lines(source))
    parts: list[Part] = []
    frame: dict[int, str] = {}
    for one in statements:
        if one.function:
            first, last = _above(lines, one.first), _below(lines, one.last)
            parts.append(Part(one.function, first, last, one.head))
        elif not one.is_remark:
            within = range(one.first, one.last + 1)
            frame.update((line, lines[line - 1]) for line in within)
            if not one.is_compound:
                frame[one.last] = _without_comment(lines[one.last - 1], one.end_bytes)
    return Layout(source, lines, tuple(parts), tuple(sorted(frame.items())))


def _without_comment(line: str, end_bytes: int) -> str:
    """Return the last line of a simple statement without what only people read."""
    end = len(line.encode()[:end_bytes].decode())
    rest = line[end:].strip()
    return f"{line[:end]}\n" if not rest or rest.startswith("#") else line


def _above(lines: Sequence[str], first: int) -> int:
    """Return the first of the comment lines directly above a line."""
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


def _below(lines: Sequence[str], last: int) -> int:
    """Return the last of the indented comments below a function's last statement."""
    for number in range(last + 1, len(lines) + 1):
        line = lines[number - 1]
        if line.strip() and not (line[:1].isspace() and line.lstrip().startswith("#")):
            break
        if line.strip():
            last = number
    return last


@lru_cache(maxsize=512)
def _identifiers(text: str) -> frozenset[str]:
    return frozenset(_IDENTIFIER.findall(text))


@lru_cache(maxsize=512)
def _reaches_out(text: str) -> bool:
    return _REACHES_OUT.search(text) is not None
