"""What a run of a program showed of its functions: the facts that annotations would have stated.

A compiler, a decorated call or a hook makes these; the front end reads source by them, and the
store keeps them between runs. They are values, so that answers can be kept by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import prod
from os import path as paths
from typing import Any, Literal, TypeVar

from advisor.codec import decode
from advisor.finding import MODULE, OBSERVED
from costdb.records import dataclass, field, grouped, only, replace
from costdb.store.place import StoreError, state_of, store_path

Layout = Literal["C", "F", "A"]
"""Contiguous by rows, contiguous by columns, or with strides that the type does not tell."""

Source = Literal["numba", "call", "text", "assumed"]
"""Who saw it: the compiler's pass, the call of a decorated function, a reader of the file's own
calls, who ran nothing, or nobody: how its text uses its parameters."""


READ = ("text", "assumed")
"""The sources of which nothing ran."""


@dataclass(frozen=True, slots=True)
class SeenArray:
    """An array argument.

    Attributes
    ----------
    name : str
        Of the parameter.
    dtype : str
        NumPy's name of the element type.
    ndim : int
    layout : {"C", "F", "A"}
    shape : tuple of int or None
        None where only the type was seen.
    strides_bytes : tuple of int or None
    made : str
        The line and the expression that make it, where the text of a call tells.
    like : tuple of str
        What the extents of several arrays are that have one shape, known or not, each in terms
        that are the same for the same number. Empty where nothing tells.
    chosen : bool
        Whether it may have more dimensions, as far as its uses tell.
    """

    name: str
    dtype: str
    ndim: int
    layout: Layout
    shape: tuple[int, ...] | None = None
    strides_bytes: tuple[int, ...] | None = None
    made: str = ""
    like: tuple[str, ...] = ()
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class SeenNumber:
    """A numeric argument.

    Attributes
    ----------
    name : str
    dtype : str
        NumPy's name; ``int64`` for Python's whole numbers.
    value : int or None
        Of a whole number that was seen.
    given : str
        The line of the call that gives it, where its text tells.
    like : str
        What it is, in the terms of the extents of arrays; empty where nothing tells.
    chosen : bool
        Whether it may as well be a vector, as all else stands.
    """

    name: str
    dtype: str
    value: int | None = None
    given: str = ""
    like: str = ""
    chosen: bool = False


_Named = TypeVar("_Named", SeenArray, SeenNumber)
What = SeenArray | SeenNumber | str
"""What a name denotes; of what is neither array nor number the name of its type, of what is not
always the same both."""


@dataclass(frozen=True, slots=True)
class SeenBinding:
    """What a name or an attribute came to denote in a line of a function.

    Attributes
    ----------
    text : str
        The line, without what surrounds it: lines move. Empty for what an attribute that was
        given denotes at the end, where that is not what it denoted when the call began.
    name : str
    what : SeenArray or SeenNumber or str
        Numbers of Python have Python's names of types: ``int``, ``float``.
    """

    text: str
    name: str
    what: What


@dataclass(frozen=True, slots=True)
class SeenLoop:
    """A loop that the compiler made parallel.

    Attributes
    ----------
    line : int
    depth : int
        Loops that became one parallel loop nest.
    schedule : str
        How iterations are dealt to threads.
    """

    line: int
    depth: int
    schedule: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One function with arguments of one kind and one set of sizes.

    Attributes
    ----------
    function : str
        Qualified name within its file.
    line : int
        Where its definition began then.
    source : {"numba", "call", "text", "assumed"}
    arrays : tuple of SeenArray
    numbers : tuple of SeenNumber
    loops : tuple of SeenLoop
    calls : int
        How often it was called so; 1 where only the first call is seen.
    ranks : int
        Processes that took part in the run.
    others : tuple of (str, str)
        Arguments that are neither, and may stand where arrays do, with the names of their types:
        lists, say, or arrays of a subclass.
    overlaps : tuple of (str, str)
        Array arguments that had memory in common.
    bindings : tuple of SeenBinding
        What names came to denote within it.
    alone : bool
        Whether it is only the loop that begins in `line`, as a function of the names in it.

    Arguments are also attributes of them that it reads, ``self.x``, and arrays from around it.
    """

    function: str
    line: int
    source: Source
    arrays: tuple[SeenArray, ...] = ()
    numbers: tuple[SeenNumber, ...] = ()
    loops: tuple[SeenLoop, ...] = ()
    calls: int = 1
    ranks: int = 1
    others: tuple[tuple[str, str], ...] = ()
    overlaps: tuple[tuple[str, str], ...] = ()
    bindings: tuple[SeenBinding, ...] = ()
    alone: bool = False

    def assuming(self, text: Seen | None) -> Seen:
        """Return the same with what the text of the function tells of all else."""
        if text is None:
            return self
        own = {one.name for one in self.arrays}
        own |= {one.name.partition("[")[0] for one in self.numbers}
        # of what a list holds the text tells more
        known = own | {name for name, kind in self.others if kind != SEQUENCE}

        def more(told: Iterable[_Named]) -> tuple[_Named, ...]:
            names = ((one, {one.name, one.name.partition(".")[0]}) for one in told)
            return tuple(one for one, those in names if those.isdisjoint(known))

        arrays, numbers = more(text.arrays), more(text.numbers)
        return replace(
            self,
            source="assumed" if arrays or numbers else self.source,
            arrays=(*self.arrays, *arrays),
            numbers=(*self.numbers, *numbers),
            others=tuple(dict([*text.others, *self.others]).items()),
            bindings=text.bindings,
        )

    def knowing(self, constants: Mapping[str, SeenArray | SeenNumber]) -> Seen:
        """Return the same where arrays and numbers of the module are what is known of them.

        At the module level itself all its numbers are known.
        """
        arrays = {n: one for n, one in constants.items() if isinstance(one, SeenArray)}
        numbers = {n: one for n, one in constants.items() if isinstance(one, SeenNumber)}
        own = {one.name: numbers.get(one.name, one) for one in self.numbers}
        return replace(
            self,
            arrays=tuple([arrays.get(one.name, one) for one in self.arrays]),
            numbers=(*(own | numbers if self.function == MODULE else own).values(),),
            others=tuple(one for one in self.others if one[0] not in arrays),
        )

    def wider(self) -> tuple[Seen, ...]:
        """Return the same with a dimension more, or two, where nothing shows that there is none:
        of arrays, and of what a vector may stand for in place of a number."""

        def more(one: What, many: int) -> What:
            if isinstance(one, SeenArray) and one.chosen:
                return replace(one, ndim=one.ndim + many)
            return one

        def with_more(many: int) -> Seen:
            wider = (more(one, many) for one in self.arrays)
            bindings = (replace(one, what=more(one.what, many)) for one in self.bindings)
            arrays = tuple(only(SeenArray, wider))
            return replace(self, arrays=arrays, bindings=tuple(bindings))

        vectors = (SeenArray(one.name, one.dtype, 1, "C") for one in self.numbers if one.chosen)
        numbers = tuple(one for one in self.numbers if not one.chosen)
        with_vectors = replace(self, arrays=(*self.arrays, *vectors), numbers=numbers)
        return with_more(1), with_more(2), with_vectors

    @property
    def lists(self) -> frozenset[str]:
        """Arguments that came as lists, of which the text tells what arrays they might be."""
        came = {name for name, kind in self.others if kind == SEQUENCE}
        bound = (one.name for one in self.bindings)
        return frozenset(came).intersection((*(one.name for one in self.arrays), *bound))

    @property
    def typed(self) -> Seen:
        """The same without sizes: what a compiler's signature tells apart."""
        return replace(
            self,
            arrays=tuple(replace(a, shape=None, strides_bytes=None) for a in self.arrays),
            numbers=tuple(replace(n, value=None) for n in self.numbers),
            loops=(),
            calls=1,
            ranks=1,
            overlaps=(),
            bindings=(),
        )

    @property
    def kind(self) -> tuple[Seen, tuple[int, ...]]:
        """The types, and which extents are alike, 0 or 1: what a rewrite may depend on."""
        bound = (one.what for one in self.bindings if isinstance(one.what, SeenArray))
        extents = [extent for array in (*self.arrays, *bound) for extent in array.shape or ()]
        return self.typed, tuple(e if e in (0, 1) else -1 - extents.index(e) for e in extents)

    @property
    def weight(self) -> int:
        """Elements passed in all calls together; 0 where no size was seen."""
        return self.calls * sum(prod(a.shape) for a in self.arrays if a.shape is not None)

    @property
    def declarable(self) -> Seen:
        """The same as far as comments can say it: names of arguments and of the module."""
        return replace(
            self,
            arrays=tuple(one for one in self.arrays if one.name.isidentifier()),
            numbers=tuple(one for one in self.numbers if one.name.isidentifier()),
            bindings=(),
        )

    @property
    def has_arrays(self) -> bool:
        """Whether it was given arrays, or made some."""
        made = any(isinstance(one.what, SeenArray) for one in self.bindings)
        return bool(self.arrays) or made or self.source == "assumed"

    @property
    def origin(self) -> str:
        """What a report names as having bound a size."""
        return OBSERVED if self.ranks == 1 else f"{OBSERVED} on {self.ranks} ranks"


@dataclass(frozen=True, slots=True)
class SeenMessages:
    """All calls of one method of mpi4py in one line, with buffers of one kind.

    Attributes
    ----------
    line : int
        Where it stood then.
    text : str
        The line, without what surrounds it: lines move.
    method : str
        ``Send``, ``allreduce`` and so on.
    dtype : str
        NumPy's name; ``"object"`` for what was pickled, empty where nothing told.
    shape : tuple of int or None
        Of the largest buffer.
    whole : tuple of int or None
        Of the array that it is a part of, or is.
    least_bytes, most_bytes : int
    calls : int
        By all ranks together.
    ranks : int
        Of the communicator.
    world : int
        Processes that took part in the run.
    """

    line: int
    text: str
    method: str
    dtype: str
    shape: tuple[int, ...] | None
    whole: tuple[int, ...] | None
    least_bytes: int
    most_bytes: int
    calls: int
    ranks: int
    world: int

    @property
    def place(self) -> SeenMessages:
        """The same without what differs from call to call."""
        return replace(self, shape=None, whole=None, least_bytes=0, most_bytes=0, calls=0)

    def and_also(self, other: SeenMessages) -> SeenMessages:
        """Return these and others of the same place."""
        largest = max(self, other, key=lambda one: one.most_bytes)
        least = min(self.least_bytes, other.least_bytes)
        return replace(largest, least_bytes=least, calls=self.calls + other.calls)

    @property
    def origin(self) -> str:
        """What a report names as having bound a size."""
        return f"{OBSERVED} on {self.world} ranks" if self.world > 1 else OBSERVED


FEW_ITEMS = 8
"""Of a tuple that are each a number of their own."""

SEQUENCE = "sequence"
"""What a list of values came as."""

VARIES = "an array of a type or shape that changes"
"""What a name comes to denote that is not always the same array."""


def either(one: What, other: What) -> What:
    """Return what a name denotes that was seen to denote two things; the words where none does."""
    match one, other:
        case SeenNumber(dtype=dtype), SeenNumber() if dtype == other.dtype:
            return replace(one, value=one.value if one.value == other.value else None)
        case SeenArray(), SeenArray():
            one, other = (replace(array, strides_bytes=None) for array in (one, other))
            return one if one == other else VARIES
    words = (word for what in (one, other) for word in _word(what).split(" and "))
    return one if one == other else " and ".join(dict.fromkeys(words))


def _word(what: What) -> str:
    match what:
        case SeenArray():
            return VARIES
        case SeenNumber(dtype=dtype):
            return dtype
    return what


def agreeing(facts: Iterable[tuple[str, Seen]]) -> tuple[tuple[str, Seen], ...]:
    """Return facts in which calls of one kind agree on what is bound in each line.

    Parameters
    ----------
    facts : iterable of (str, Seen)
        Each with its file. Shapes may differ where those of the arguments do, and are not told
        where nobody looked at a call.
    """
    facts = tuple(facts)
    types: dict[tuple[str, Seen], dict[tuple[str, str], What]] = {}
    for file, seen in facts:
        known = types.setdefault((file, seen.typed), {})
        for one in seen.bindings:
            place, what = (one.text, one.name), _of_any_size(one.what)
            known[place] = either(known.get(place, what), what)
    made: list[tuple[str, Seen]] = []
    for file, seen in facts:
        own: dict[tuple[str, str], What] = {}
        for one in seen.bindings:
            place = one.text, one.name
            own[place] = either(own.get(place, one.what), one.what)
        known = types[file, seen.typed]
        bindings = (
            SeenBinding(*place, what if isinstance(what, str) else own.get(place, what))
            for place, what in known.items()
        )
        made.append((file, replace(seen, bindings=tuple(bindings))))
    return tuple(made)


def _of_any_size(what: What) -> What:
    match what:
        case SeenArray():
            return replace(what, shape=None, strides_bytes=None)
        case SeenNumber():
            return replace(what, value=None)
    return what


def by_signature(observed: Iterable[Seen]) -> tuple[Seen, ...]:
    """Return for each signature the one that weighs most: the sizes that advice is for."""
    return _heaviest(observed, lambda seen: seen.typed)


def by_kind(observed: Iterable[Seen]) -> tuple[Seen, ...]:
    """Return for each kind of call the one that weighs most: what a rewrite has to hold for."""
    return _heaviest(observed, lambda seen: seen.kind)


def square(kinds: Sequence[Seen]) -> frozenset[tuple[str, int, int]]:
    """Return the axes of arguments that are as long as each other in all calls, not always 1."""
    lengths: dict[tuple[str, int, int], set[tuple[int, int]]] = {}
    for array in (one for seen in kinds for one in seen.arrays):
        for first, then in combinations(range(array.ndim), 2):
            pair = (array.shape[first], array.shape[then]) if array.shape else (0, 1)
            lengths.setdefault((array.name, first, then), set()).add(pair)
    found = {axes: pairs for axes, pairs in lengths.items() if all(a == b for a, b in pairs)}
    return frozenset(axes for axes, pairs in found.items() if pairs != {(1, 1)})


def _heaviest(observed: Iterable[Seen], key: Callable[[Seen], object]) -> tuple[Seen, ...]:
    """Return the heaviest of each key; arguments that ever had memory in common do in all."""
    heaviest: dict[object, Seen] = {}
    overlaps: dict[str, dict[tuple[str, str], None]] = {}
    for seen in observed:
        best = heaviest.get(key(seen))
        if best is None or (seen.weight, seen.ranks) > (best.weight, best.ranks):
            heaviest[key(seen)] = seen
        overlaps.setdefault(seen.function, {}).update(dict.fromkeys(seen.overlaps))
    return tuple(
        replace(seen, overlaps=tuple(overlaps[seen.function])) for seen in heaviest.values()
    )


# What runs of programs showed of the files that are checked, from the store.


FUNCTION, MESSAGE = "function", "message"
"""Kinds of observations."""
SEEN = "seen"
"""Under which a document holds what was."""


def report_nowhere(line: str) -> None:
    """Take a line about the store that is not worth telling."""


@dataclass(slots=True)
class Observations:
    """Looks up what runs showed of files; the store is read again once it changed.

    Attributes
    ----------
    report : callable
        Told in one line why the store cannot be used; advice then goes without it.
    """

    report: Callable[[str], None] = report_nowhere
    _state: object = None
    _known: Mapping[tuple[str, str], Sequence[Any]] = field(default_factory=dict)

    def of_file(self, path: str) -> tuple[Seen, ...]:
        """Return what is known of the functions of a file, in the order it was stored."""
        return self._of(FUNCTION, path)

    def messages_of_file(self, path: str) -> tuple[SeenMessages, ...]:
        """Return what is known of the messages that the lines of a file send and receive."""
        return self._of(MESSAGE, path)

    def _of(self, kind: str, path: str) -> tuple[Any, ...]:
        state = state_of(store_path())
        if state != self._state:
            self._state = state
            self._known = {} if state is None else self._read()
        return tuple(self._known.get((kind, paths.realpath(path)), ())) if self._known else ()

    def _read(self) -> Mapping[tuple[str, str], Sequence[Any]]:
        from costdb.store.evidence import stored_observations

        kinds: Mapping[str, type[Seen | SeenMessages]] = {FUNCTION: Seen, MESSAGE: SeenMessages}
        try:
            # what an older version stored has another form: a new run tells it again
            return grouped(
                ((kind, path), decode(kinds[kind], document[SEEN]))
                for kind, path, document in stored_observations()
                if SEEN in document
            )
        except (StoreError, TypeError, ValueError) as error:
            self.report(f"advise: observed sizes are left out: {error}")
            return {}
