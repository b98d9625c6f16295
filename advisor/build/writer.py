"""One kernel as a function of a rank: owner computes, and what is needed beyond is fetched.

Every rank computes its own part of what a statement stores. What it reads lies in its own block
(then it is a slice of it), or so many elements beside it (then the block has room for neighbours'
elements, which are exchanged), or anywhere (then it is fetched: all ranks know what each needs).
What ranks do together, sums along a distributed axis for instance, becomes an array of its own.

All ranks run a loop, or share out its iterations like the data they store. Where an iteration reads
what an earlier one stored on another rank, ranks work one after another.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from advisor.analysis.arrays import Arrays
from advisor.analysis.halos import Halos
from advisor.analysis.lower import of_rank, pipelined, recurrence_of
from advisor.analysis.placement import Bounds, Facts, least_sizes, local_extents, ranks_of
from advisor.analysis.processes import in_turn, works
from advisor.build.scope import Block, Dealt, NeedsMessages
from advisor.build.text import (
    Axis,
    Frame,
    Module,
    NotBuiltError,
    Spread,
    check,
    definition_of,
    frame_of,
    natural,
    placements,
    spread_of,
    tupled,
    whole_axes,
)
from advisor.build.values import Values
from advisor.build.work import (
    COPIES,
    RIMS,
    Lowered,
    copied,
    count_along,
    lowered,
    packed,
    part_of,
    placed_sums,
    with_scans,
)
from advisor.distribution import CyclicDim
from advisor.ir.dependence import least_index
from advisor.ir.kernel import Kernel, rebuilt, spelled_out, symbols
from advisor.ir.shapes import describe
from advisor.ir.statements import (
    SET,
    Bind,
    Choice,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Scatter,
    Stated,
    Statement,
    Store,
    Unknown,
    mentioned,
    unrolled,
    values_of,
    walk,
    written,
)
from advisor.ir.values import (
    Along,
    Copy,
    Elementwise,
    Expand,
    Flip,
    Point,
    Range,
    Read,
    Strided,
    Subscript,
    Transpose,
    Windows,
    parts_of,
)
from advisor.numpy_table import ROWS, SIGNS, dtype_of
from advisor.source import each_of
from costdb.expr import ONE, ZERO, Expr, ceil_div, free_symbols, substitute, sym
from costdb.records import dataclass, field, only, replace
from costdb.work import Message, ParLoop, Process, SeqLoop, Sequential

_MOST_PASSES = 5
_INDENT = "    "
_WIDTH = 95
_HALVES = frozenset(("float16",))
_Writer = TypeVar("_Writer", bound="Writer")


@dataclass(frozen=True, slots=True)
class Function:
    """A built function.

    Attributes
    ----------
    name : str
    lines : tuple of str
    layouts : dict of str to str
        Who owns what of each parameter that is an array.
    results : tuple of str
        The same of what it returns; empty text of a number.
    work : Process
        What the lines do.
    """

    name: str
    lines: tuple[str, ...]
    layouts: dict[str, str]
    results: tuple[str, ...]
    work: Process


def write(kernel: Kernel, module: Module) -> Function:
    """Return a kernel as a function of a rank; raises as below."""
    return written_by(Writer, kernel, module)[1]


def written_by(
    kind: Callable[..., _Writer], kernel: Kernel, module: Module
) -> tuple[_Writer, Function]:
    """Return what a kind of writer makes of a kernel, and that writer.

    Raises
    ------
    NotBuiltError
        Something has no form: what, and where.
    """
    function = definition_of(kernel)
    check(kernel, function)
    for name, array in kernel.arrays.items():
        if dtype_of(array.dtype).name in _HALVES:
            raise NotBuiltError(f"MPI has no numbers of the type of `{name}`", array.places.whole)
    body = unrolled(kernel.body)
    for statement in walk(body):
        for part in (part for value in values_of(statement) for part in parts_of(value)):
            if isinstance(part, Windows) or (isinstance(part, Along) and not part.exact):
                raise NotBuiltError("windows and ranks of elements have no form", statement.span)
    body = spelled_out(body)
    kernel = kernel.with_body(body)
    for one in only(Unknown, walk(body)):
        raise NotBuiltError(one.reason, one.span)
    room: dict[tuple[str, int], tuple[int, int]] = {}
    for _ in range(_MOST_PASSES):
        # what is read beyond the own part is known when all has been written once
        own = copy.deepcopy(module)
        before = dict(room)
        writer = kind(kernel, own, placements(kernel), {}, room)
        found = writer.function(function)
        writer.share_room()
        if room == before:
            for name in ("used", "meshes", "lines", "known", "taken"):
                setattr(module, name, getattr(own, name))
            return writer, found
    raise NotBuiltError("how far it reads beyond its part does not settle", kernel.span)


@dataclass()
class Writer(Values):
    """Writes statements and loops."""

    given_back: dict[str, tuple[str, str]] = field(default_factory=dict)
    renamed: frozenset[str] = frozenset()
    results: tuple[str, ...] = ()

    def function(self, tree: ast.FunctionDef) -> Function:
        """Return the function."""
        arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
        given = [one.arg for one in arguments]
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.identifiers = frozenset(used.union(given))
        if tree.args.vararg or tree.args.kwarg:
            raise NotBuiltError("it takes any number of arguments", self.kernel.span)
        self.facts = Facts(Bounds(least_sizes(self.kernel.body), {}))
        self.blocks = [Block(frozenset())]
        for name in given:
            self.name(name)
        signature = copy.deepcopy(tree.args)
        for one in [*signature.posonlyargs, *signature.args, *signature.kwonlyargs]:
            one.annotation, one.arg = None, self.names[one.arg]
        arrays = [name for name in given if name in self.kernel.arrays]
        changed = frozenset[str]().union(*map(written, self.kernel.body))
        self.renamed = frozenset(
            n for one in walk(self.kernel.body) if isinstance(one, Rename) for n in one.names
        )
        begun = self.begun(arrays, changed)
        body = self.kernel.body
        bound = {one.name for one in walk(body) if isinstance(one, Bind)}
        # what a rule puts between statements is declared, and made by nobody
        unmade = sorted(self.placed.keys() & changed - bound - set(given))
        begun += [f"{self.name(name)} = {self.made_here(name)}" for name in unmade]
        for part in walk(body):
            if isinstance(part, Return) and part is not body[-1]:
                raise NotBuiltError("it returns from within", part.span)
        self.statements(body)
        if not (body and isinstance(body[-1], Return)):
            self.give_back()
        lines = [*begun, *self.blocks[0].lines] or ["pass"]
        head = self.head(tree.name, signature)
        said = (ast.get_docstring(tree) or tree.name).splitlines()[0].replace('"""', "")
        doc = f'"""{said}"""'
        layouts = {name: self.layout(name) for name in arrays}
        inner = (*textwrap.wrap(doc, _WIDTH), *lines)
        text = (head, *(f"{_INDENT}{line}".rstrip() for line in inner))
        work = Sequential((*self.begun_work(arrays), *self.blocks[0].work))
        return Function(tree.name, text, layouts, self.results, work)

    def begun(self, arrays: Sequence[str], changed: frozenset[str]) -> list[str]:
        """Return the lines that give blocks room, and keep where results are given back."""
        begun = []
        for name in arrays:
            if any(map(any, self.widths(name))):
                own, mine = self.fresh(f"own_{self.name(name)}"), self.name(name)
                begun.append(f"{own}, {mine} = {mine}, padded({mine}, {self.widths(name)})")
                kept = mine
                if name in self.renamed:
                    kept = self.fresh(f"{mine}_given")
                    begun.append(f"{kept} = {mine}")
                if name in changed:
                    self.given_back[name] = own, self.core(name).replace(mine, kept, 1)
                elif name not in self.renamed:
                    self.given_back[name] = own, ""
        return begun

    def head(self, name: str, signature: ast.arguments) -> str:
        """Return the line that begins the function."""
        return f"def {name}({ast.unparse(signature)}):"

    def with_room(self, name: str, text: str) -> tuple[str, str]:
        """Return where a fresh array with room is stored, and what."""
        return self.name(name), f"padded({text}, {self.widths(name)})"

    def made_here(self, name: str) -> str:
        """Return what makes an array that nothing else makes."""
        made = f"np.empty({self.layout(name)}.local(), {self.kernel.dtype(name)!r})"
        room = self.widths(name)
        return f"padded({made}, {room})" if any(map(any, room)) else made

    def begun_work(self, arrays: Sequence[str]) -> Iterator[Process]:
        """Yield the copies of blocks that are given room, and those back."""
        for name in arrays:
            if any(map(any, self.widths(name))):
                yield self.copy_of(name)
        for _, core in self.given_back.values():
            if core:
                yield self.copy_of(next(n for n in arrays if self.name(n) in core), fresh=False)

    def copy_of(self, name: str, *, fresh: bool = True) -> Process:
        """Return the copy of a rank's part of an array."""
        found, placement = self.typed(name), self.placed[name]
        room = [sum(one) for one in self.widths(name)]
        own = part_of(found, placement, self.facts, [0] * len(room))
        wide = part_of(found, placement, self.facts, room)
        return copied(own, wide, found.dtype, COPIES, fresh=fresh)

    def share_room(self) -> None:
        """Give arrays that change names the same room beside their parts."""
        for _ in range(2):
            for one in only(Rename, walk(self.kernel.body)):
                for d in range(len(self.placed[min(one.names)].dims)):
                    sides = [self.room.get((name, d), (0, 0)) for name in one.names]
                    most = max(low for low, _ in sides), max(high for _, high in sides)
                    if any(most):
                        self.room.update(dict.fromkeys(((n, d) for n in one.names), most))

    # statements

    def statements(self, body: Sequence[Statement]) -> None:
        """Write statements one after another."""
        for one in body:
            self.fetched, self.wanted, self.computed = {}, {}, ()
            try:
                self.said(one)
                self.lowered, self.scanned_as = self.lowering(one), ""
                self.statement(one)
                for work in self.lowered.computing:
                    self.does(with_scans(work, self.scanned_as))
                self.lowered = Lowered()
            except NotBuiltError as error:
                raise NotBuiltError(error.why, error.span or one.span) from error

    def lowering(self, one: Statement) -> Lowered:
        """Return a statement's work, and keep which part of an array it reads of a neighbour."""
        found = lowered(one, self.kernel, self.placed, self.facts)
        for name, moved in found.moved.items():
            regions = [w.region for part in moved for w in works(part) if isinstance(w, Message)]
            if regions:
                self.faces[name] = regions[0]
        return found

    def said(self, one: Statement) -> None:
        """Write the source line that a statement comes from, each once."""
        if isinstance(one, Return) or one.span.start_line == self.last_line:
            return
        self.last_line = one.span.start_line
        source = self.kernel.context.lines[self.last_line - 1].strip()
        self.line(f"# {self.last_line}: {source}")

    def statement(self, one: Statement) -> None:
        """Write a statement."""
        match one:
            case Bind():
                self.bind(one)
            case ScalarBind(name, value, _):
                if not name.isidentifier() and not name.startswith("<returned>"):
                    raise NotBuiltError("a condition on what an array holds")
                text = self.value(value, ())
                self.exchange()
                self.line(f"{self.name(name)} = {text}")
            case Store():
                self.store(one)
            case Scatter():
                self.scatter(one)
            case Loop():
                self.loop(one)
            case Rename(names, _):
                if len(names) != 2:
                    raise NotBuiltError("more than two names change places")
                first, second = map(self.name, sorted(names))
                self.line(f"{first}, {second} = {second}, {first}")
                self.changed(names)
            case Return():
                self.returned(one)
            case Choice() | Stated():
                raise NotBuiltError("what it does is stated, and not what it computes")
            case _:
                raise NotBuiltError("it has no form")

    def bind(self, one: Bind) -> None:
        """Write a name that comes to denote a fresh array."""
        extents = self.kernel.extents(one.name)
        frame = frame_of(self.placed[one.name], extents)
        self.may_compute(frame)
        self.computed = frame
        held, self.held = self.held, self.held if self.dealt else []
        text = self.value(one.value, self.fitted(one.value, frame))
        views = Read | Copy | Transpose | Expand | Flip
        if isinstance(one.value, views):
            if text not in self.fetched.values():
                text = f"{text}.copy()"
            else:
                self.lowered = Lowered()
        self.held = held
        target = self.name(one.name)
        if any(map(any, self.widths(one.name))):
            if not isinstance(one.value, views):
                self.does(self.copy_of(one.name))
            target, text = self.with_room(one.name, text.removesuffix(".copy()"))
        self.exchange()
        self.line(f"{target} = {text}")
        self.changed((one.name,))

    def may_compute(self, frame: Frame) -> None:
        """Refuse axes that ranks share out which an iteration's owner is alone with."""
        for axis in frame:
            if axis.spread and any(axis.spread.shares(one.spread) for one in self.dealt):
                raise NeedsMessages

    def store(self, one: Store) -> None:
        """Write elements of an array that change."""
        placement = self.placed.get(one.array)
        if placement is None or (not one.region and self.placed[one.array].dims):
            raise NotBuiltError(f"`{one.array}` is a number that is accumulated")
        frame, guards = self.axes_of(one.array, one.region)
        self.may_compute(frame)
        self.computed = frame
        held = list(self.held)
        self.held += [(spread, at) for spread, at in guards if (spread, at) not in held]
        sign, value = "=", one.value
        match value:
            case Elementwise(operation, (first, second)) if (
                one.in_place
                and operation in SIGNS
                and ROWS[operation].result == "same"
                and first == Read(one.array, one.region)
                and all(axis.step == 1 for axis in frame)
            ):
                sign, value = f"{SIGNS[operation]}=", second
        target = self.target(one.array, one.region, frame)
        if sign == "=" and not guards and self.only_moves(one):
            self.into = one.array, target.removesuffix("[...]")
        text = self.value(value, self.fitted(value, frame))
        self.exchange()
        if self.into and text == self.into[1]:
            self.lowered = Lowered()
        else:
            indent = self.guard(guards, held)
            self.line(f"{indent}{target} {sign} {text}")
        self.held, self.into = held, None
        self.changed((one.array,))

    def only_moves(self, one: Store) -> bool:
        """Return whether a statement stores a range of another array's elements, as they are."""
        value = one.value.operand if isinstance(one.value, Copy) else one.value
        return (
            isinstance(value, Read)
            and value.array != one.array
            and self.typed(value.array).dtype == self.typed(one.array).dtype
            and all(isinstance(part, Range) for part in (*one.region, *value.region))
        )

    def guard(
        self, guards: Sequence[tuple[Spread, Expr]], held: Sequence[tuple[Spread, Expr]]
    ) -> str:
        """Write the condition that the rank owns what a statement stores; return the indent."""
        tests = [
            f"{self.along(spread)}.holds({self.text(at)})"
            for spread, at in guards
            if (spread, at) not in held
        ]
        if tests:
            self.line(f"if {' and '.join(tests)}:")
        return _INDENT if tests else ""

    def axes_of(
        self, array: str, region: Sequence[Subscript]
    ) -> tuple[Frame, list[tuple[Spread, Expr]]]:
        """Return the axes of a region, and the elements that its owner must own."""
        placement = self.placed[array]
        frame: list[Axis] = []
        guards = []
        for d, one in enumerate(region):
            spread, origin = spread_of(placement, d), placement.origin[d]
            match one:
                case Point(at):
                    if spread is not None:
                        guards.append((spread, at + origin))
                case Range(low, high):
                    frame.append(Axis(spread, low + origin, high - low))
                case Strided(start, _, step):
                    if spread is None:
                        frame.append(Axis(None, start, one.count))
                    else:
                        frame.append(Axis(spread, start + origin, one.count, step))
        return tuple(frame), guards

    def target(self, array: str, region: Sequence[Subscript], frame: Frame) -> str:
        """Return where a rank stores."""
        placement = self.placed[array]
        parts = []
        axes = iter(frame)
        stepped = any(axis.step != 1 for axis in frame)
        for d, one in enumerate(region):
            origin = placement.origin[d]
            if isinstance(one, Point):
                part = self.beside(array, d, one, None)
                assert part is not None
            elif not stepped:
                part = self.beside(array, d, one, next(axes))
                assert part is not None
            elif (axis := next(axes)).spread is None:
                part = self.positions(one, axis, "")
            else:
                part = f"{self.along(axis.spread)}.local({self.own(axis, '')})"
                low = self.room.get((array, d), (0, 0))[0]
                away = str(low) if low else ""
                if origin != ZERO:
                    away = f"{low} - {self.along(axis.spread)}.below({self.text(origin)})"
                part = f"moved({part}, {away})" if away else part
            parts.append(part)
        if not parts:
            return f"{self.name(array)}[()]"
        if stepped:
            return f"{self.name(array)}[at({', '.join(parts)})]"
        return f"{self.name(array)}[{'...' if set(parts) == {':'} else ', '.join(parts)}]"

    def scatter(self, one: Scatter) -> None:
        """Write elements at places that only the data know."""
        if self.dealt:
            raise NeedsMessages
        placement = self.placed[one.array]
        if len(placement.dims) != 1 or one.operation == SET:
            raise NotBuiltError("places in an array of several dimensions, or stores to places")
        spread, extents = spread_of(placement, 0), self.extents(one.places)
        natural_ = natural(one.places, self.placed, extents)
        ufunc = f"np.{one.operation}"
        core = self.core(one.array)
        together = (
            spread is not None
            and len(extents) == 1
            and natural_.mesh == placement.mesh
            and all(
                sorted(axis for dim in own.dims for axis in dim.axes)
                == sorted(axis for axis, _ in own.mesh.axes)
                for own in (natural_, placement)
            )
        )
        frame = frame_of(natural_, extents) if together else whole_axes(extents)
        held, self.held = self.held, []
        places = self.value(one.places, frame)
        value = self.value(one.value, self.fitted(one.value, frame))
        self.held = held
        self.exchange()
        self.changed((one.array,))
        if spread is None:
            self.line(f"{ufunc}.at({core}, {places}, {value})")
        elif together:
            layout = self.layout(one.array)
            self.line(f"add_at({core}, {layout}, {places}, {value}, {ufunc})")
            self.does(
                placed_sums(
                    self.typed(one.array),
                    describe(one.places, self.typed),
                    [count_along(axis, self.facts) for axis in frame],
                    local_extents(placement, self.typed(one.array).extents, self.facts),
                    placement.ranks(0),
                    in_blocks=not isinstance(placement.dims[0], CyclicDim),
                )
            )
        else:
            along, where, mine = self.along(spread), self.fresh("where"), self.fresh("mine")
            self.line(f"{where} = {places} % ({self.text(self.typed(one.array).extents[0])})")
            self.line(f"{mine} = {along}.owned({where}, rank)")
            self.line(
                f"{ufunc}.at({core}, {along}.local({where}[{mine}]),"
                f" np.broadcast_to({value}, {where}.shape)[{mine}])"
            )

    # loops

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
        owned = spread.owned(one.low + offset, one.high + offset)
        if dealt.behind:
            handed = [
                packed(self.faces[array], self.typed(array).dtype, RIMS)
                for array, _, _ in dealt.behind
                if array in self.faces
            ]
            self.turn = body, handed
            times = SeqLoop(f"{one.variable}.turn", ONE, ranks - 1, Sequential(tuple(handed)))
            return in_turn(Sequential((SeqLoop(one.variable, one.low, one.high - 1, body), times)))
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

    # the end

    def give_back(self) -> None:
        """Store what was computed in the blocks that were given."""
        for own, core in self.given_back.values():
            if core:
                self.line(f"{own}[...] = {core}")

    def returned(self, one: Return) -> None:
        """Write the end of the function."""
        self.give_back()
        tree = self.returned_tree(one)
        if tree is None:
            return
        parts = each_of(tree)
        texts, results = [], []
        for count, part in enumerate(parts):
            made = f"<returned>{count or ''}"
            name = made if made in one.names else ast.unparse(part)
            if name in self.given_back and name not in self.renamed:
                texts.append(self.given_back[name][0])
            elif name in self.placed:
                texts.append(self.core(name))
            elif name in self.names:
                texts.append(self.names[name])
                results.append("None")
                continue
            else:
                raise NotBuiltError(f"it returns `{ast.unparse(part)}`")
            results.append(self.layout(name))
        self.line(f"return {tupled(texts) if isinstance(tree, ast.Tuple) else texts[0]}")
        self.results = tuple(results)

    def returned_tree(self, one: Return) -> ast.expr | None:
        """Return the syntax of what is returned."""
        for node in ast.walk(definition_of(self.kernel)):
            if isinstance(node, ast.Return) and node.lineno == one.span.start_line:
                return node.value
        raise NotBuiltError("what it returns is not known")
