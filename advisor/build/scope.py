"""Where a line of a built function stands: blocks, names, who is known to own what, rims."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from advisor.analysis.placement import Facts, Placement
from advisor.analysis.processes import ranks_together
from advisor.build.text import Frame, Module, NotBuiltError, Spread, python, tidy
from advisor.build.work import Lowered, interpreted, rim
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ArrayType
from advisor.ir.statements import Loop, written
from advisor.source import fresh_name
from costdb.expr import ZERO, Expr, free_symbols
from costdb.expr.nodes import Num
from costdb.work import Process, Region

_WIDTH: Final = 100
_DIMENSIONS: Final = {1: ("cells",), 2: ("rows", "columns")}


_STATE = (
    "names", "own_names", "exchanged", "fetched", "held", "dealt", "placed", "types", "room",
    "last_line", "wanted", "computed", "faces", "turn", "lowered", "scanned_as",
)  # fmt: skip


class NeedsMessages(Exception):  # it is no error, but where another way is tried
    """What is to be written by one rank alone needs others."""


@dataclass(slots=True)
class Block:
    """Lines of one level of indentation, what they do, and what holds there."""

    bound: frozenset[str]
    loop: Loop | None = None
    lines: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    work: list[Process] = field(default_factory=list)


@dataclass(slots=True)
class Dealt:
    """A loop whose iterations are shared out: iteration ``v`` is that of the owner of `at`.

    Attributes
    ----------
    grows : bool
        Whether later iterations store further on.
    behind : dict
        Arrays, dimensions and sides whose rims hold what earlier iterations stored, with the
        part of them that is read; None: all of it.
    ahead : dict
        Arrays whose rims hold what iterations did not store yet.
    """

    loop: Loop
    spread: Spread
    at: Expr
    grows: bool
    behind: dict[tuple[str, int, int], tuple[str, ...] | None] = field(default_factory=dict)
    ahead: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Scope:
    """The state of a function that is being written."""

    kernel: Kernel
    module: Module
    placed: dict[str, Placement]
    types: dict[str, ArrayType]
    room: dict[tuple[str, int], tuple[int, int]]
    blocks: list[Block] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    own_names: set[str] = field(default_factory=set)
    held: list[tuple[Spread, Expr]] = field(default_factory=list)
    dealt: list[Dealt] = field(default_factory=list)
    alone: int = 0
    """How many reasons there are to write nothing that all ranks do together."""
    computed: Frame = ()
    """The axes of what the statement at hand stores."""
    identifiers: frozenset[str] = frozenset()
    wanted: dict[str, frozenset[int]] = field(default_factory=dict)
    """Arrays whose rims the statement at hand reads, along which dimensions."""
    exchanged: dict[str, tuple[frozenset[int], ...]] = field(default_factory=dict)
    """The exchanges of rims after which nothing was stored."""
    fetched: dict[str, str] = field(default_factory=dict)
    into: tuple[str, str] | None = None
    """Where the statement at hand stores what it fetches, if it does nothing else."""
    facts: Facts = field(default_factory=Facts)
    lowered: Lowered = field(default_factory=Lowered)
    """The statement at hand."""
    scanned_as: str = ""
    """The type of running sums over ranks that the statement at hand makes."""
    last_line: int = 0
    """Of the source, up to which statements were written."""
    faces: dict[str, Region] = field(default_factory=dict)
    """Which part of an array is read of a neighbour."""
    turn: tuple[Process, list[Process]] | None = None
    """What ranks do one after another within the loop at hand, and what they hand on."""

    def save(self) -> tuple[object, ...]:
        """Return the state of what is written."""
        blocks = [
            (block, len(block.lines), dict(block.known), len(block.work)) for block in self.blocks
        ]
        rims = [(one, dict(one.behind), dict(one.ahead)) for one in self.dealt]
        return blocks, rims, {name: copy.copy(getattr(self, name)) for name in _STATE}

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Return to a state."""
        blocks, rims, state = kept
        for one, behind, ahead in rims:
            one.behind, one.ahead = dict(behind), dict(ahead)
        self.blocks = [block for block, *_ in blocks]
        for block, count, known, work in blocks:
            del block.lines[count:]
            del block.work[work:]
            block.known = dict(known)
        room = state["room"]
        for name, value in state.items():
            if name != "room":
                setattr(self, name, copy.copy(value))
        self.room.clear()  # which passes share
        self.room.update(room)

    # names and lines

    def fresh(self, wish: str, *, own: bool = False) -> str:
        """Return a name that the function does not have yet, nor its source but for its own."""
        avoided = frozenset() if own else self.identifiers
        name = fresh_name(wish, avoided | self.own_names | self.module.taken)
        self.own_names.add(name)
        return name

    def name(self, name: str) -> str:
        """Return the name of an array or a number of the kernel."""
        return self.names.get(name) or self._named(name)

    def _named(self, name: str) -> str:
        wish = name if name.isidentifier() else "".join(filter(str.isidentifier, name)) or "made"
        self.names[name] = self.fresh(wish, own=True)
        return self.names[name]

    def line(self, text: str) -> None:
        """Write a line where the function has come to."""
        self.blocks[-1].lines += tidy(text, _WIDTH - 4 * len(self.blocks))
        self.calls(text)

    def calls(self, text: str, level: int = -1) -> None:
        """Take note of what an interpreter does in a line."""
        if "(" in text and not text.startswith("#"):
            self.does(*interpreted(text, ranks_together(self.placed.values())), level=level)

    def does(self, *work: Process, level: int = -1) -> None:
        """Take note of what lines do where the function has come to, or in a block around it."""
        self.blocks[level].work += work

    def text(self, expr: Expr) -> str:
        """Return a whole number as Python has it here."""
        for symbol in free_symbols(expr):
            if symbol in self.names:
                continue
            if symbol in self.module.sizes:
                self.module.used.add(symbol)
            else:
                raise NotBuiltError(f"the value of `{symbol}` is not known: pass -D {symbol}=...")
        return python(expr, self.names)

    def define(self, text: str, wish: Callable[[], str], *needed: Expr) -> str:
        """Return the name of a value, computed where what it depends on is first known."""
        symbols = frozenset[str]().union(*map(free_symbols, needed))
        level = len(self.blocks) - 1
        while level > 0 and not symbols & self.blocks[level].bound:
            level -= 1
        for block in self.blocks[level:]:
            if text in block.known:
                return block.known[text]
        name = wish()
        self.blocks[level].known[text] = name
        self.blocks[level].lines.append(f"{name} = {text}")
        self.calls(text, level)
        return name

    # who owns what

    def typed(self, name: str) -> ArrayType:
        """Return the type of an array, of those made on the way too."""
        found = self.types.get(name)
        return found or ArrayType(self.kernel.dtype(name), self.kernel.extents(name))

    def layout(self, name: str) -> str:
        """Return the name of an array's layout."""
        placement, extents = self.placed[name], self.typed(name).extents
        text = partial(self.module.layout_text, placement, extents)
        return self._of_array(name, text, "", "_layout")

    def _of_array(
        self, name: str, text: Callable[[Mapping[str, str]], str], shared: str, own: str
    ) -> str:
        """Return the name of what is made for an array: in the module, if sizes alone tell it."""
        placement, wish = self.placed[name], self.name(name)
        parts = (*placement.template, *placement.origin, *self.typed(name).extents)
        if self.module.is_own(parts):
            return self.module.define(text({}), f"{wish}{shared}".upper())
        return self.define(text(self.names), lambda: self.fresh(f"{wish}{own}"), *parts)

    def along(self, spread: Spread) -> str:
        """Return the name of how a dimension is dealt out."""
        for name, placement in self.placed.items():
            for d, dim in enumerate(placement.dims):
                found = (placement.template[d], dim, placement.mesh)
                if found == (spread.extent, spread.dim, spread.mesh):
                    names = _DIMENSIONS.get(len(placement.dims), ())
                    wish = names[d] if names else f"axis{d}"
                    parts = (*placement.template, *placement.origin, *self.typed(name).extents)
                    text = f"{self.layout(name)}.dims[{d}]"
                    return self.define(text, partial(self.fresh, wish), *parts)
        raise NotBuiltError("nothing is distributed so")

    def part(self, spread: Spread, low: Expr, count: Expr, origin: Expr) -> tuple[str, str]:
        """Return the names of where the rank's part of a range begins and ends in its block."""
        along = self.along(spread)
        more = "" if origin == ZERO else f", {self.text(origin)}"
        text = f"{along}.part({self.text(low)}, {self.text(low + count)}{more})"
        return self._pair(text, low, count, origin, spread.extent)

    def range_of(self, spread: Spread, low: Expr, high: Expr) -> tuple[str, str]:
        """Return the names of the ends of the rank's part of a range, of which it owns a piece."""
        text = f"{self.along(spread)}.range({self.text(low)}, {self.text(high)})"
        return self._pair(text, low, high, spread.extent)

    def turns(
        self, spread: Spread, low: Expr, high: Expr, step: int, offset: Expr, grows: bool
    ) -> str:
        """Return the iterations in which the rank stores elements of a range that it owns."""
        more = f", step={step}" if step != 1 else ""
        more += f", by={self.text(ZERO - offset)}" if grows and offset != ZERO else ""
        own = f"np.array({self.along(spread)}.own({self.text(low)}, {self.text(high)}{more}), int)"
        return f"{own}.tolist()" if grows else f"({self.text(offset)} - {own}[::-1]).tolist()"

    def _pair(self, text: str, *needed: Expr) -> tuple[str, str]:
        """Return the names of two values, computed where what they depend on is first known."""

        def names() -> str:
            letter = "ijkl"[len([n for n in self.own_names if n.endswith("_low")]) % 4]
            name = self.fresh(f"{letter}_low")
            self.own_names.add(end := name.replace("_low", "_high"))
            return f"{name}, {end}"

        first, last = self.define(text, names, *needed).split(", ")
        return first, last

    def local(self, spread: Spread, at: Expr, origin: Expr) -> str:
        """Return the name of where an element that the rank owns lies in its block."""
        along = self.along(spread)
        text = f"{along}.local({self.text(at)})"
        if origin != ZERO:
            text += f" - {along}.below({self.text(origin)})"
        return self.define(text, lambda: self.fresh("here"), at, origin, spread.extent)

    # rims

    def widths(self, name: str) -> list[tuple[int, int]]:
        """Return the room that an array has on either side of each dimension."""
        return [self.room.get((name, d), (0, 0)) for d in range(len(self.placed[name].dims))]

    def core(self, name: str) -> str:
        """Return the text of an array's own elements."""
        widths = self.widths(name)
        if not any(map(any, widths)):
            return self.name(name)
        parts = [f"{low or ''}:{-high if high else ''}" for low, high in widths]
        return f"{self.name(name)}[{', '.join(parts)}]"

    def halo(self, name: str) -> str:
        """Return the name of the exchange of an array's rim."""
        text = f"Halo({self.layout(name)}, {self.widths(name)})"
        return self._of_array(name, lambda _: text, "_HALO", "_halo")

    def reach(self, name: str, d: int, shift: Expr) -> int:
        """Have an array hold elements of neighbours so far away, exchanged; return how far."""
        assert isinstance(shift, Num)
        by = int(shift.value)
        low, high = self.room.get((name, d), (0, 0))
        self.room[name, d] = max(low, -by), max(high, by)
        inside = [one for one in self.dealt if name in written(one.loop)]
        if inside:
            self._in_turn(inside, name, d, by)
        else:
            self.wanted[name] = self.wanted.get(name, frozenset()) | {d}
        return by

    def _in_turn(self, inside: list[Dealt], name: str, d: int, by: int) -> None:
        """Have ranks wait for what earlier iterations store, or keep what later ones will."""
        one = inside[0]
        placement = self.placed[name]
        own = Spread(placement.template[d], placement.dims[d], placement.mesh)
        if len(self.dealt) > 1 or one.spread != own:
            raise NeedsMessages
        if (by < 0) == one.grows:
            one.behind.setdefault((name, d, int(by > 0)), ())
        else:
            one.ahead[name] = None

    def exchange(self) -> None:
        """Fill the rims that the next line reads, as early as they have their elements."""
        for name, dims in self.wanted.items():
            before = self.exchanged.get(name, ())
            if not any(done >= dims for done in before):
                self.exchanged[name] = (*before, dims)
                level = len(self.blocks) - 1
                while level > 0 and not _changes(self.blocks[level].loop, name):
                    level -= 1
                some = [d for d, width in enumerate(self.widths(name)) if any(width)]
                only = "" if some == sorted(dims) else f", {', '.join(map(str, sorted(dims)))}"
                self.exchanged_at(level, name, sorted(dims), only)
        self.wanted = {}

    def exchanged_at(self, level: int, name: str, dims: Iterable[int], only: str = "") -> None:
        """Write the exchange of an array's rim along some dimensions."""
        text = f"{self.halo(name)}({self.name(name)}{only})"
        self.blocks[level].lines.append(text)
        self.calls(text, level)
        for d in dims:
            found = rim(self.typed(name), self.placed[name], self.facts, self.widths(name), d)
            self.does(found, level=level)

    def changed(self, names: Iterable[str]) -> None:
        """Take note that rims of arrays no longer hold what neighbours do."""
        for name in names:
            self.exchanged.pop(name, None)


def _changes(loop: Loop | None, name: str) -> bool:
    return loop is not None and name in written(loop)
