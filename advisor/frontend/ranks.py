"""Numbers of dimensions and kinds of elements, inferred from what has to hold between them.

Each part of a text has bounds on its rank, and marks. A rule takes parts, and narrows the bounds of
some by those of others; :func:`solve` applies them until nothing changes. What is left open then is
as little as it can be: nothing has more dimensions than the text needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from costdb.records import dataclass, field, grouped

MOST = 6
"""Nothing has more dimensions."""

_USUAL = 2
"""What has more is shown to."""


_State: TypeAlias = tuple[int, int, bool, bool, bool, bool, bool]


class Contradiction(Exception):  # it is no error: a text may say anything
    """Nothing has the rank that a part needs."""


@dataclass(eq=False, slots=True)
class Part:
    """An expression, a name, or all that a name denotes in turn.

    Attributes
    ----------
    least, most : int
        Bounds on the number of dimensions.
    number : bool
        Whether it is a number or an array of them, by what is done with it.
    whole : bool
        Whether that needs whole numbers.
    other : bool
        Whether it is neither a number nor an array.
    array : bool
        Whether it is, or comes out of, what has elements.
    inside : int
        How many dimensions subscripts took away.
    names : frozenset of str
        What it is, or is a part of.
    listed : bool
        Whether it may be a list, by all that is done with it.
    asked : bool
        Whether it is a number only as a function needs one.
    chosen : bool
        Whether its bounds are the least that fit, and not all that do.
    row : bool
        Whether places alone took it out of something, or what it is made of: no slice tells how
        many axes it has.
    subscript : str
        What it is as a subscript, where that is known: ``mask``, or ``key``.
    """

    least: int = 0
    most: int = MOST
    number: bool = False
    whole: bool = False
    other: bool = False
    array: bool = False
    inside: int = 0
    names: frozenset[str] = frozenset()
    listed: bool = False
    asked: bool = False
    chosen: bool = False
    row: bool = False
    subscript: str = ""

    @property
    def state(self) -> _State:
        """What rules change."""
        bounds = self.least, self.most, self.chosen
        return *bounds, self.number, self.whole, self.other, self.array

    @state.setter
    def state(self, state: _State) -> None:
        self.least, self.most, self.chosen, *marks = state
        self.number, self.whole, self.other, self.array = marks

    @property
    def may_be_list(self) -> bool:
        """Whether nothing shows that it is an array, or a number."""
        return self.listed or self.asked

    def within(self, least: int, most: int = MOST) -> None:
        """Narrow the bounds.

        Raises
        ------
        Contradiction
            Nothing is within both.
        """
        self.least, self.most = max(self.least, least), min(self.most, most)
        if self.least > self.most:
            raise Contradiction

    def depends_on(self, one: Part) -> None:
        """Have chosen bounds where those of the other one are, and where they are open."""
        self.chosen |= one.chosen and self.least < self.most

    def marked(self, one: Part) -> None:
        """Take over what the other one is."""
        self.number |= one.number
        self.whole |= one.whole
        self.other |= one.other


@dataclass(eq=False, slots=True)
class Rule:
    """What holds between parts; `choose` settles what it leaves open, where nothing else does."""

    parts: tuple[Part, ...]
    narrow: Callable[[], None]
    choose: Callable[[], None] | None = None


@dataclass(slots=True)
class Rules:
    """What holds between the parts of a text."""

    all: list[Rule] = field(default_factory=list)

    def same(self, one: Part, other: Part) -> None:
        """Two parts are one thing."""

        def narrow() -> None:
            one.within(other.least, other.most)
            other.within(one.least, one.most)
            one.marked(other)
            other.marked(one)
            one.array = other.array = one.array or other.array
            one.depends_on(other)
            other.depends_on(one)

        if one is not other:
            self.all.append(Rule((one, other), narrow))

    def largest(self, whole: Part, parts: Sequence[Part]) -> None:
        """A part has as many dimensions as the largest of others has."""

        def narrow() -> None:
            whole.within(max(one.least for one in parts), max(one.most for one in parts))
            for one in parts:
                one.within(0, whole.most)
            able = [one for one in parts if one.most >= whole.least]
            if len(able) == 1:
                able[0].within(whole.least)
            whole.array |= any(one.array for one in parts)
            for one in parts:
                if one.least == whole.least:
                    whole.depends_on(one)

        def choose() -> None:
            if all(one.least < whole.least for one in parts):
                able = [one for one in parts if one.most >= whole.least]
                likely = [one for one in able if one.array and whole.least + one.inside <= _USUAL]
                for one in likely or [one for one in able if not one.inside] or able:
                    one.within(whole.least)

        whole.names = whole.names.union(*(one.names for one in parts))
        self.all.append(Rule((whole, *parts), narrow, choose))

    def filled(self, made: Part, shape: Part) -> None:
        """An array is made of a shape: a whole number, where no more dimensions are needed."""

        def narrow() -> None:
            made.within(1)
            shape.other |= made.least > 1

        def choose() -> None:
            if not shape.other:
                made.within(1, 1)
                shape.within(0, 0)
                shape.number = shape.whole = True

        self.all.append(Rule((made, shape), narrow, choose))

    def alike(self, parts: Sequence[Part]) -> None:
        """Parts are numbers if one of them is."""

        def narrow() -> None:
            if any(one.number for one in parts) and not any(one.other for one in parts):
                for one in parts:
                    one.number = True

        self.all.append(Rule(tuple(parts), narrow))

    def needed(self, part: Part, by: Part) -> None:
        """A part is passed on to a function that needs something: where nothing else tells."""

        def narrow() -> None:
            if not part.number and not part.other:
                part.number = part.asked = True
            part.whole |= by.whole and part.number

        def choose() -> None:
            if part.most >= by.least:
                part.within(by.least)

        if by.number:
            self.all.append(Rule((part,), narrow, choose if by.least else None))

    def received(self, made: Part, sent: Part) -> None:
        """What others send is a list where this one sends such."""

        def narrow() -> None:
            made.other |= sent.other

        self.all.append(Rule((made, sent), narrow))

    def needs_whole(self, made: Part, parts: Sequence[Part]) -> None:
        """Whole numbers come out of whole numbers only."""

        def narrow() -> None:
            for one in parts if made.whole else ():
                one.whole = True

        self.all.append(Rule((made, *parts), narrow))

    def any_of(self, name: Part, values: Sequence[Part]) -> None:
        """A name denotes some parts in turn."""

        def narrow() -> None:
            for one in values:
                one.number |= name.number
                one.whole |= name.whole
                name.other |= one.other
                name.number |= one.number

        def choose() -> None:
            for one in values:
                if one.most >= name.least:
                    one.within(name.least)

        self.largest(name, values)
        self.all.append(Rule((name, *values), narrow, choose))

    def stored(self, value: Part, place: Part) -> None:
        """What is stored has no more dimensions than its place."""

        def narrow() -> None:
            place.within(value.least)
            value.within(0, place.most)

        self.all.append(Rule((value, place), narrow))
        self.alike((value, place))

    def taken(self, part: Part, base: Part, without: int, of: int, by: Sequence[Part]) -> None:
        """A part is what `of` subscripts take out of a base: `without` as many dimensions, but for
        those of the subscripts themselves."""

        def ranks() -> tuple[int, int]:
            return max((i.least for i in by), default=0), max((i.most for i in by), default=0)

        def narrow() -> None:
            low, high = ranks()
            base.within(max(of, without), part.most + without - low)
            part.within(base.least - without + low, base.most - without + high)
            if low == high:
                base.within(part.least + without - high)
            base.other |= part.other
            # a part of a list is one
            part.other |= base.other and not by
            part.array |= base.number or base.array
            base.array = True
            base.depends_on(part)
            if base.number:
                for one in (part, *by):
                    one.number = True
            base.number |= part.number and all(one.number for one in by)
            base.whole |= part.whole
            part.whole |= base.whole

        def choose() -> None:
            base.within(part.least + without - ranks()[0])

        part.inside = base.inside + without
        part.names |= base.names
        self.all.append(Rule((part, base, *by), narrow, choose))

    def one_of(self, parts: Sequence[Part], forms: Iterable[Sequence[int | None]]) -> None:
        """Parts have the ranks that one of some forms gives; None for any."""
        forms = tuple(forms)

        def fits(form: Sequence[int | None]) -> bool:
            ranks = zip(parts, form, strict=True)
            return all(n is None or one.least <= n <= one.most for one, n in ranks)

        def narrow() -> None:
            able = [form for form in forms if fits(form)]
            if not able:
                raise Contradiction
            for k, one in enumerate(parts):
                ranks = [form[k] for form in able]
                known = [n for n in ranks if n is not None]
                if len(known) == len(ranks):
                    one.within(min(known), max(known))

        def choose() -> None:
            able = [form for form in forms if fits(form)]
            least = [one.least for one in parts]
            if not any(all(n in (None, m) for n, m in zip(f, least, strict=True)) for f in able):
                for one, n in zip(parts, able[0], strict=True):
                    one.within(n or 0)
            for one, ranks in zip(parts, zip(*able, strict=True), strict=True):
                one.chosen |= one.least < max(n or 0 for n in ranks)

        self.all.append(Rule(tuple(parts), narrow, choose if len(parts) > 1 else None))

    def apart(self, one: Part, other: Part) -> None:
        """Two items are subtracted, or given together: where nothing tells, both are alike."""

        def choose() -> None:
            for part, like in ((one, other), (other, one)):
                if not part.least and part.most >= like.least:
                    part.within(like.least)

        self.all.append(Rule((one, other), lambda: None, choose))

    def swept(self, part: Part, other: Part) -> None:
        """One sum goes through both: where nothing tells, they have as many dimensions."""

        def choose() -> None:
            if part.most:
                part.within(1)
            if not other.least and other.most >= part.least:
                other.within(part.least)

        self.all.append(Rule((part, other), lambda: None, choose))


def may_have_more(
    rules: Sequence[Rule], parts: Collection[Part], others: Collection[Part]
) -> Iterator[tuple[Part, list[Part]]]:
    """Yield the parts that may have one dimension more than :func:`solve` gave them.

    With those of some others that have more then, too.
    """
    users = _users(rules)
    before = [(one, one.state) for one in (*parts, *(p for rule in rules for p in rule.parts))]
    least = {id(one): one.least for one in others}
    for part in parts:
        try:
            part.within(part.least + 1)
            pending = {id(rule): rule for rule in users.get(id(part), ())}
            while pending:
                _, rule = pending.popitem()
                for one in _changed(rule, rule.narrow):
                    pending.update((id(user), user) for user in users[id(one)])
            along = [o for o in others if o is not part and o.least > least[id(o)]]
        except Contradiction:
            continue
        finally:
            for one, state in before:
                one.state = state
        yield part, along


def _users(rules: Iterable[Rule]) -> Mapping[int, list[Rule]]:
    return grouped((id(part), rule) for rule in rules for part in rule.parts)


def _changed(rule: Rule, how: Callable[[], None]) -> list[Part]:
    """Apply a rule and return the parts that it changed."""
    before = [part.state for part in rule.parts]
    how()
    pairs = zip(rule.parts, before, strict=True)
    return [part for part, state in pairs if part.state != state]


def solve(rules: Sequence[Rule]) -> frozenset[str] | None:
    """Give each part the least rank that satisfies all; None where that is done.

    Else the names in a rule that no ranks satisfy.
    """
    users = _users(rules)
    pending = {id(rule): rule for rule in rules}
    choosing = False

    def applies(rule: Rule, how: Callable[[], None]) -> bool:
        """Apply a rule, and later those of the parts it changed; return whether it did any."""
        changed = _changed(rule, how)
        for part in changed:
            part.chosen |= choosing
            pending.update((id(one), one) for one in users[id(part)])
        return bool(changed)

    try:
        while True:
            while pending:
                _, rule = pending.popitem()
                applies(rule, rule.narrow)
            choosing = True
            for rule in rules:
                if rule.choose is not None and applies(rule, rule.choose):
                    break
            else:
                return None
    except Contradiction:
        return frozenset().union(*(part.names for part in rule.parts))
