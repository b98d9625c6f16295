"""Loops of a built program: all ranks run them, or share them out like the data they store.

Where an iteration reads what an earlier one stored on another rank, ranks work one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.analysis.arrays import Arrays
from advisor.analysis.halos import Halos
from advisor.analysis.lower import of_rank, pipelined, recurrence_of, side_by_side
from advisor.analysis.placement import Along, ranks_of
from advisor.analysis.processes import in_turn
from advisor.build.scope import Block, Dealt, NeedsMessages
from advisor.build.text import NotBuiltError, Spread, spread_of
from advisor.build.values import Values
from advisor.build.work import (
    RIMS,
    packed,
)
from advisor.ir.dependence import least_index
from advisor.ir.kernel import rebuilt, symbols
from advisor.ir.statements import (
    Bind,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Scatter,
    Statement,
    Store,
    mentioned,
    walk,
    written,
)
from advisor.ir.values import (
    Point,
)
from costdb.expr import ONE, ZERO, Expr, ceil_div, free_symbols, substitute, sym
from costdb.records import replace
from costdb.work import ParLoop, Process, Region, SeqLoop, Sequential

_INDENT = "    "


class Loops(Values):
    """Writes loops."""

    __slots__ = ("faces", "turn")
    faces: dict[str, Region]
    turn: tuple[Process, list[Process]] | None

    def statements(self, body: Sequence[Statement]) -> None:
        """Write statements one after another."""
        raise NotImplementedError

    def loop(self, one: Loop) -> None:
        """Write a loop: shared out like what it stores, or run by all ranks."""
        if one.stated:
            raise NotBuiltError("how often it runs is stated, and not what it runs over")
        plain = one.variable.partition(".")[0]
        kept_name = self.names.get(plain)
        for spread, grows, offset in self.owners(one):
            kept = self.save()
            try:
                self.shared_out(one, spread, grows, offset)
            except NeedsMessages:
                self.restore(kept)
            else:
                break
        else:
            self.header_and_body(one, "")
        self.names.pop(one.variable, None)
        if kept_name is not None:
            self.names[plain] = kept_name

    def shared_out(self, one: Loop, spread: Spread, grows: bool, offset: Expr) -> None:
        """Write a loop whose iterations are shared out like what they store."""
        variable = sym(one.variable)
        at = offset + variable if grows else offset - variable
        dealt = Dealt(one, spread, at, grows)
        low, high = one.low, one.high
        ends = (low + offset, high + offset) if grows else (offset - high + 1, offset - low + 1)
        if one.step != 1 and not grows:
            raise NeedsMessages
        if spread.is_block and one.step == 1:
            pair = self.range_of(spread, *ends)
            by = self.text(offset)
            away = [e if offset == ZERO else f"{e} - ({by})" for e in pair]
            if not grows:
                away = [f"{by} - {pair[1]} + 1", f"{by} - {pair[0]} + 1"]
            header = f"range({away[0]}, {away[1]})"
        else:
            header = self.turns(spread, *ends, one.step, offset, grows)
        self.alone += 1
        self.dealt.append(dealt)
        self.held.append((spread, at))
        try:
            self.header_and_body(one, header, dealt)
        finally:
            self.alone -= 1
            if self.dealt and self.dealt[-1] is dealt:
                self.dealt.pop()
                self.held.pop()

    def header_and_body(self, one: Loop, header: str, dealt: Dealt | None = None) -> None:
        """Write a loop."""
        plain = one.variable.partition(".")[0]
        base = "step" if plain == "_" else plain
        name = self.names[one.variable] = self.names[plain] = self.fresh_loop(base)
        if not header:
            low = "" if one.low == ZERO and one.step == 1 else f"{self.text(one.low)}, "
            by = f", {one.step}" if one.step != 1 else ""
            header = f"range({low}{self.text(one.high)}{by})"
        changed = written(one)
        self.changed(changed)
        self.blocks.append(Block(frozenset({one.variable}), one))
        least = least_index(one.low, self.facts.minima)
        with self.facts.within(one.variable, least, one.high - 1):
            self.statements(one.body)
        inner = self.blocks.pop()
        self.changed(changed)
        if dealt is not None:
            for array in dealt.ahead:
                some = [d for d, width in enumerate(self.widths(array)) if any(width)]
                self.exchanged_at(-1, array, some)
            for key, part in dealt.behind.items():
                self.line(self.handed_on("receive", key, part))
        self.line(f"for {name} in {header}:")
        self.blocks[-1].lines += [_INDENT + line for line in inner.lines or ["pass"]]
        for key, part in dealt.behind.items() if dealt is not None else ():
            self.line(self.handed_on("send", key, part))
        self.does(self.iterations(one, Sequential(tuple(inner.work)), dealt))

    def iterations(self, one: Loop, body: Process, dealt: Dealt | None) -> Process:
        """Return what a loop does: all iterations, a rank's own, or those of all ranks in turn."""
        arrays = Arrays(self.kernel, self.placed, self.facts, Halos())
        last_turn, self.turn = self.turn, None
        if dealt is None:
            inner = recurrence_of(one, arrays) if last_turn else None
            if inner is not None and last_turn is not None:
                each, handed = last_turn
                piped = pipelined(one, inner, each, arrays)
                if isinstance(piped, SeqLoop):
                    return replace(piped, body=Sequential((piped.body, *handed)))
            if one.step == 1:
                return SeqLoop(one.variable, one.low, one.high - 1, body)
            at = one.low + sym(one.variable) * one.step
            body = rebuilt(body, lambda part: substitute(part, {one.variable: at}))
            return SeqLoop(one.variable, ZERO, ceil_div(one.high - one.low, one.step) - 1, body)
        spread = dealt.spread
        offset = dealt.at - sym(one.variable) if dealt.grows else ZERO
        ranks = ranks_of(spread.mesh, spread.dim.axes)
        owned = Along(one.low + offset, one.high + offset, spread.extent, ranks, spread.dim)
        if dealt.behind:
            handed = [
                packed(self.faces[array], self.typed(array).dtype, RIMS)
                for array, _, _ in dealt.behind
                if array in self.faces
            ]
            self.turn = body, handed
            times = SeqLoop(f"{one.variable}.turn", ONE, ranks - 1, Sequential(tuple(handed)))
            return in_turn(Sequential((SeqLoop(one.variable, one.low, one.high - 1, body), times)))
        shared = side_by_side(one, body, arrays) if one.step == 1 else None
        if shared is not None:
            return shared
        if one.variable not in symbols(body) or one.step != 1:
            body = rebuilt(body, lambda part: substitute(part, {one.variable: one.low}))
            trips = owned.count(self.facts)
            trips = trips if one.step == 1 else ceil_div(trips, one.step)
            return SeqLoop(one.variable, ONE, trips, body)
        rank = f"{one.variable}.owner"
        return ParLoop(rank, ZERO, ranks - 1, of_rank(one, body, owned, sym(rank)))

    def handed_on(self, what: str, key: tuple[str, int, int], part: tuple[str, ...] | None) -> str:
        """Return the line in which a rank waits for a rim, or sends what is another's."""
        array, d, side = key
        text = f"{self.halo(array)}.{what}({self.name(array)}, {d}, {side}"
        if part is None or all(one == ":" for one in part):
            return f"{text})"
        return f"{text}, *np.s_[{', '.join(part)}])"

    def fresh_loop(self, wish: str) -> str:
        """Return a name for a loop's index; loops one after another may have the same."""
        active = {self.names.get(b.loop.variable) for b in self.blocks if b.loop is not None}
        if wish in self.own_names and wish not in active and wish in self.names.values():
            taken = [n for n, own in self.names.items() if own == wish and n != wish]
            if not taken and wish not in self.kernel.arrays and wish not in self.kernel.locals:
                return wish
        return self.fresh(wish, own=True)

    def owners(self, one: Loop) -> Iterator[tuple[Spread, bool, Expr]]:
        """Yield the dimensions whose owners may share out a loop's iterations.

        With whether later iterations store further on, and the offset of what they store.
        """
        inner = tuple(walk(one.body))
        stores = [s for s in inner if isinstance(s, Store)]
        private = self.private(one)
        if any(isinstance(s, Scatter | Return | Rename) for s in inner) or private is None:
            return
        moving = {s.variable for s in inner if isinstance(s, Loop)}
        options: list[list[tuple[Spread, bool, Expr]]] = []
        for store in stores:
            if store.array in private:
                continue
            placement = self.placed.get(store.array)
            if placement is None:
                return
            found = []
            for d, part in enumerate(store.region):
                spread = spread_of(placement, d)
                if spread is None or not isinstance(part, Point):
                    continue
                at = part.at + placement.origin[d]
                for grows, offset in (
                    (True, at - sym(one.variable)),
                    (False, at + sym(one.variable)),
                ):
                    if not free_symbols(offset) & {one.variable, *moving}:
                        found.append((spread, grows, offset))
            options.append(found)
        if not options:
            return
        for option in options[0]:
            if all(option in others for others in options) and not any(
                option[0].shares(dealt.spread) for dealt in self.dealt
            ):
                yield option

    def private(self, one: Loop) -> frozenset[str] | None:
        """Return what a loop binds for itself; None where others need what it binds."""
        inner = tuple(walk(one.body))
        bound = {s.name for s in inner if isinstance(s, Bind | ScalarBind)}
        others = [s for s in walk(self.kernel.body) if s not in inner and s != one]
        used = frozenset[str]().union(*(mentioned(s) for s in others if not isinstance(s, Loop)))
        texts = " ".join(str(s) for s in others if isinstance(s, Store | Bind | ScalarBind))
        if any(name in used or f"'{name}'" in texts for name in bound):
            return None
        return frozenset(bound)
