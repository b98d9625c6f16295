"""Descriptions of applications: what they say once they are read and checked, and the reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from costdb.choosing import Bound, Chosen, RefusedError, SubjectError
from costdb.evaluate import Domain, Missing, Priced, Term
from costdb.expr import (
    Expr,
    ExprError,
    evaluate,
    free_symbols,
    num,
    parse,
    substitute,
    summation,
    sym,
)
from costdb.machines import Machine
from costdb.phases.document import Name, Node, record
from costdb.quantity import Quantity
from costdb.records import dataclass, field, nearest, read_number, replace

Word: TypeAlias = str
_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class WordParameter:
    """A parameter that takes one of a few words; a word may stand for a set of sizes.

    Attributes
    ----------
    words : mapping of str to mapping of str to int
        The sizes that each allowed word stands for, often none.
    default : str or None
        The word taken when nothing is said.
    """

    name: str
    about: str
    words: Mapping[Word, Mapping[str, int]]
    default: Word | None


@dataclass(frozen=True, slots=True)
class NumberParameter:
    """A parameter that takes a whole number.

    Attributes
    ----------
    minimum : int
        Smallest value allowed.
    maximum : Expr or None
        Largest value allowed, over sizes and other parameters.
    power_of_two : bool
        Other values are refused.
    default : int or None
        The value taken when nothing is said.
    """

    name: str
    minimum: int
    about: str = ""
    maximum: Expr | None = None
    power_of_two: bool = False
    default: int | None = None


Parameter: TypeAlias = WordParameter | NumberParameter


@dataclass(frozen=True, slots=True)
class When:
    """For which words an entry counts: every parameter named must have one of its words."""

    words: tuple[tuple[str, frozenset[Word]], ...] = ()

    def holds(self, chosen: Mapping[str, Word]) -> bool:
        """Tell whether the entry counts for the words in `chosen`."""
        return all(chosen.get(name) in allowed for name, allowed in self.words)


@dataclass(frozen=True, slots=True)
class Definition:
    """A derived quantity: `name` stands for `value` when `when` holds."""

    name: str
    value: Expr
    when: When
    place: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on sizes and parameters, nonzero where it is met."""

    require: Expr
    because: str
    when: When
    place: str


@dataclass(frozen=True, slots=True)
class Phase:
    """Computation or copying between messages.

    Attributes
    ----------
    unit : str
        ``"flop"`` or ``"byte"``: what `count` counts.
    count : Expr
        Units done in one repetition.
    rate : str
        Name of the rate, or of the pair of rates.
    per_op : Expr or None
        None for one rate ``r``: the phase takes ``count / r`` microseconds. Else over the
        reciprocals ``a`` and ``b`` of the pair's outer and inner rate: ``count * per_op``.
    """

    name: str
    unit: Literal["flop", "byte"]
    count: Expr
    rate: Name
    per_op: Expr | None = None
    when: When = field(default_factory=When)
    place: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """An index, its first and its last value."""

    index: Name
    from_: Expr
    to: Expr


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages of one kind: `count` of `bytes` each, summed over a series where there is one.

    Attributes
    ----------
    pattern : str
        Which of the machine's communication patterns prices them; empty for plain
        point-to-point messages.
    sum : Series or None
        Its index may stand in `count` and `bytes`.
    """

    name: str
    count: Expr
    bytes: Expr
    pattern: Name = Name("")
    sum: Series | None = None
    when: When = field(default_factory=When)
    place: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """An application: its phases and messages over its parameters.

    Attributes
    ----------
    name, title, source : str
        Name under which a machine keeps the application's rates; heading; citation.
    origin : str
        Path of the description.
    repeat : Expr
        How often phases and messages are gone through in one run.
    """

    name: str
    title: str
    source: str
    origin: str
    parameters: Mapping[str, Parameter]
    definitions: tuple[Definition, ...]
    constraints: tuple[Constraint, ...]
    phases: tuple[Phase, ...]
    exchanges: tuple[Exchange, ...]
    repeat: Expr

    @property
    def word_parameters(self) -> tuple[WordParameter, ...]:
        """Parameters that take words, in the description's order."""
        return tuple(p for p in self.parameters.values() if isinstance(p, WordParameter))

    @property
    def number_parameters(self) -> tuple[NumberParameter, ...]:
        """Parameters that take whole numbers, in the description's order."""
        return tuple(p for p in self.parameters.values() if isinstance(p, NumberParameter))

    @property
    def size_names(self) -> tuple[str, ...]:
        """Names that some word binds, in order of first mention."""
        return _size_names(self.parameters)

    def refuse(self, place: str, problem: str) -> SubjectError:
        """Return the complaint about what is at a place, to be raised."""
        return SubjectError(f"{self.origin}: {place}: {problem}")


# Binding parameters: which words and numbers a choice fixes, and whether it is allowed.


def bind(application: Application, choices: Mapping[str, Chosen]) -> Bound:
    """Check `choices` and complete them with the defaults and the sizes of the words.

    Numbers may come as text (``"16"``). A size such as ``NLAT`` may be bound too; it then
    replaces that of the word. Number parameters may stay unbound.

    Raises
    ------
    RefusedError
        Unknown parameter, a word that is not allowed or not chosen, a number out of bounds,
        a constraint that is not met.
    """
    numbers: dict[str, int] = {}
    words: dict[str, Word] = {}
    for parameter in application.word_parameters:
        word = words[parameter.name] = _word(application, parameter, choices)
        numbers.update(parameter.words[word])
    for extent in application.number_parameters:
        if extent.default is not None:
            numbers[extent.name] = extent.default
    sizes = frozenset(application.size_names)
    known = (*application.parameters, *application.size_names)
    for name, chosen in choices.items():
        if name in words:
            continue
        if name not in known:
            raise _refusal(application, f"there is no parameter {name}{nearest(name, known)}")
        value = _number(application, name, chosen)
        numbers[name] = value
        if name in sizes and value <= 0:
            raise _refusal(application, f"{name} = {chosen} must be positive")
    for extent in application.number_parameters:
        problem = number_problem(extent, numbers)
        if problem:
            raise _refusal(application, problem)
    for constraint in application.constraints:
        if constraint.when.holds(words):
            _require(application, constraint, numbers)
    everything: Mapping[str, Chosen] = {**words, **numbers}
    told = (n for n in known if n in everything and (n in application.parameters or n in choices))
    return Bound(words, numbers, {name: everything[name] for name in told})


def number_problem(parameter: NumberParameter, numbers: Mapping[str, int]) -> str:
    """Return why a number parameter's value is not allowed; empty where it is or is unbound."""
    value = numbers.get(parameter.name)
    if value is None:
        return ""
    if value < parameter.minimum:
        return f"{parameter.name} = {value} must be at least {parameter.minimum}"
    if parameter.power_of_two and (value < 1 or value & (value - 1)):
        return f"{parameter.name} = {value} must be a power of two"
    if parameter.maximum is not None and free_symbols(parameter.maximum) <= numbers.keys():
        try:
            largest = evaluate(parameter.maximum, numbers)
        except ExprError as error:
            return f"/parameters/{parameter.name}/maximum: {error}"
        if value > largest:
            return f"{parameter.name} = {value} must be at most {largest}"
    return ""


def _word(
    application: Application, parameter: WordParameter, choices: Mapping[str, Chosen]
) -> Word:
    chosen = choices.get(parameter.name, parameter.default)
    if chosen is None:
        raise _refusal(
            application, f"{parameter.name} is not chosen (one of {', '.join(parameter.words)})"
        )
    if not isinstance(chosen, str) or chosen not in parameter.words:
        raise _refusal(
            application,
            f"{parameter.name} = {chosen} is not one of {', '.join(parameter.words)}",
        )
    return chosen


def _number(application: Application, name: str, chosen: Chosen) -> int:
    value = read_number(chosen.strip()) if isinstance(chosen, str) else chosen
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refusal(application, f"{name} = {str(chosen)!r} is not a whole number")
    return value


def _require(application: Application, constraint: Constraint, numbers: Mapping[str, int]) -> None:
    names = free_symbols(constraint.require)
    if not names <= numbers.keys():
        return
    try:
        met = evaluate(constraint.require, numbers)
    except ExprError as error:
        raise _refusal(application, f"{constraint.place}: {error}") from error
    if not met:
        shown = ", ".join(f"{name} = {numbers[name]}" for name in sorted(names))
        raise _refusal(application, f"{constraint.because} ({shown})")


def _refusal(application: Application, problem: str) -> RefusedError:
    return RefusedError(f"{application.origin}: {problem}")


# Reading a description: a TOML document in, `Application` out, in one pass.

APPLICATION_SCHEMA_VERSION: Final = 1
PHASES: Final = "phases"
RATE_UNITS: Final = {"flop": "MFlop/s", "byte": "MByte/s"}


HEAD_KEYS: Final = ("schema_version", "name", "title", "source", "parameters")
OPTIONAL_HEAD_KEYS: Final = ("kind", "derived", "constraints", "repeat")


def read_head(keys: Mapping[str, Node], origin: str) -> Application:
    """Return what descriptions of every kind say: an application without phases or messages.

    Raises
    ------
    SubjectError
        With the place of what cannot be used.
    """
    version = keys["schema_version"]
    if version.whole() != APPLICATION_SCHEMA_VERSION:
        raise version.refuse(f"expected {APPLICATION_SCHEMA_VERSION}")
    parameters = {name: _parameter(name, node) for name, node in keys["parameters"].table().items()}
    return Application(
        name=keys["name"].name(),
        title=keys["title"].text(),
        source=keys["source"].text(),
        origin=origin,
        parameters=parameters,
        definitions=tuple(
            d for node in listed(keys, "derived") for d in _definitions(node, parameters)
        ),
        constraints=entries(Constraint, keys, "constraints", parameters),
        phases=(),
        exchanges=(),
        repeat=keys["repeat"].expression() if "repeat" in keys else num(1),
    )


def listed(keys: Mapping[str, Node], key: str) -> list[Node]:
    """Return the items of an array that need not be there."""
    return keys[key].items() if key in keys else []


def application_of(document: dict[str, object], origin: str) -> Application:
    """Return the application that a parsed document describes.

    Raises
    ------
    SubjectError
        It says something that cannot be used: one line with the file and the place.
    """
    top = Node(document, "", origin)
    keys = top.known((*HEAD_KEYS, "phases"), (*OPTIONAL_HEAD_KEYS, "messages"))
    if "kind" in keys and keys["kind"].text() != PHASES:
        raise keys["kind"].refuse(f"expected {PHASES}")
    head = read_head(keys, origin)
    application = replace(
        head,
        phases=entries(Phase, keys, "phases", head.parameters),
        exchanges=entries(Exchange, keys, "messages", head.parameters),
    )
    check_names(application, expressions_of(application))
    return application


def _parameter(name: str, node: Node) -> Parameter:
    Node(name, node.place, node.origin).name()
    table = node.table()
    if "words" in table or "sets" in table:
        return _word_parameter(name, node)
    found: NumberParameter = record(NumberParameter, node, name=name)
    if found.minimum < 0:
        raise table["minimum"].refuse(f"must not be negative, got {found.minimum}")
    if found.default is not None and found.default < found.minimum:
        raise table["default"].refuse(f"must be at least {found.minimum}")
    return found


def _word_parameter(name: str, node: Node) -> WordParameter:
    table = node.known((), ("about", "words", "sets", "default"))
    words: dict[Word, Mapping[str, int]] = {}
    if "words" in table:
        words.update({word.text(): {} for word in table["words"].items()})
    if "sets" in table:
        for word, sizes in table["sets"].table().items():
            words[word] = {size: _size(size, value) for size, value in sizes.table().items()}
    if not words:
        raise node.refuse("allows no word")
    default = table["default"].text() if "default" in table else None
    if default is not None and default not in words:
        raise table["default"].refuse(f"{default} is not one of {', '.join(words)}")
    about = table["about"].text() if "about" in table else ""
    return WordParameter(name, about, words, default)


def _size(name: str, node: Node) -> int:
    Node(name, node.place, node.origin).name()
    size = node.whole()
    if size < 1:
        raise node.refuse(f"a size must be positive, got {size}")
    return size


def entries(
    kind: type[_Entry], keys: Mapping[str, Node], key: str, parameters: Mapping[str, Parameter]
) -> tuple[_Entry, ...]:
    """Return the records of an array that need not be there, each with its place and its words."""
    found = listed(keys, key)
    return tuple(
        record(kind, node, when=read_when(node.table(), parameters), place=node.place)
        for node in found
    )


def read_when(table: Mapping[str, Node], parameters: Mapping[str, Parameter]) -> When:
    """Return for which words the entry of a table counts."""
    if "when" not in table:
        return When()
    conditions: list[tuple[str, frozenset[Word]]] = []
    for name, node in table["when"].table().items():
        parameter = parameters.get(name)
        if not isinstance(parameter, WordParameter):
            raise node.refuse("is not a parameter that takes words")
        allowed = [word.text() for word in node.items()]
        for word, item in zip(allowed, node.items(), strict=True):
            if word not in parameter.words:
                raise item.refuse(f"{name} is never {word}")
        conditions.append((name, frozenset(allowed)))
    return When(tuple(conditions))


def _definitions(node: Node, parameters: Mapping[str, Parameter]) -> Iterator[Definition]:
    table = node.known(("define",), ("when",))
    when = read_when(table, parameters)
    for name, value in table["define"].table().items():
        Node(name, value.place, value.origin).name()
        if name in parameters or name in _size_names(parameters):
            raise value.refuse("is a parameter or a size already")
        yield Definition(name, value.expression(), when, value.place)


def _size_names(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    words = (p.words for p in parameters.values() if isinstance(p, WordParameter))
    return tuple(dict.fromkeys(size for sets in words for one in sets.values() for size in one))


class Used(NamedTuple):
    """An expression of a description: where it stands, what it may use besides, and when."""

    place: str
    expr: Expr
    extra: frozenset[str] = frozenset()
    when: When = When()


def check_names(application: Application, expressions: Iterable[Used]) -> None:
    """Refuse expressions that mention what nothing binds, those of the head included.

    Raises
    ------
    SubjectError
        With the place of the first.
    """
    known = {p.name for p in application.number_parameters}
    known |= set(application.size_names)
    known |= {definition.name for definition in application.definitions}
    for used in (*_of_head(application), *expressions):
        for name in sorted(free_symbols(used.expr) - known - used.extra):
            raise application.refuse(used.place, f"nothing defines {name}")


def _of_head(application: Application) -> Iterator[Used]:
    for parameter in application.number_parameters:
        if parameter.maximum is not None:
            yield Used(f"/parameters/{parameter.name}/maximum", parameter.maximum)
    for definition in application.definitions:
        yield Used(definition.place, definition.value)
    for constraint in application.constraints:
        yield Used(constraint.place, constraint.require)
    yield Used("/repeat", application.repeat)


def expressions_of(application: Application) -> Iterator[Used]:
    """Yield the expressions of phases and messages."""
    for phase in application.phases:
        yield Used(phase.place, phase.count, when=phase.when)
        if phase.per_op is not None:
            yield Used(phase.place, phase.per_op, frozenset({"a", "b"}), phase.when)
    for exchange in application.exchanges:
        place, when = exchange.place, exchange.when
        series = exchange.sum
        index = frozenset({series.index} if series is not None else ())
        yield Used(place, exchange.count, index, when)
        yield Used(place, exchange.bytes, index, when)
        for bound in (series.from_, series.to) if series is not None else ():
            yield Used(place, bound, when=when)


# --- pricing --------------------------------------------------------------------------------------
# Price of an application on a machine: rates and message costs put to its counts.
#
# The compute rates were measured for the application on the machine, so they belong to the
# machine's profile (``phases/applications/<name>/rates``); the description names them. Messages
# cost ``alpha + beta*bytes`` with the machine's own numbers (``phases/alpha_us``,
# ``phases/beta_us_per_byte``), or those of a communication pattern (``phases/patterns/<name>``).


MODEL = "phases"


def price_words(
    application: Application, machine: Machine, words: Mapping[str, Word]
) -> Priced | Missing:
    """Return the time of a run of the variant that `words` pick, in microseconds.

    The words decide which phases and messages there are, all of them bound and allowed. Sizes and
    number parameters stay symbols of the formula, derived quantities are written out;
    :func:`costdb.phases.application.bind` gives the values to evaluate it with.

    Parameters
    ----------
    application : Application
    machine : Machine
    words : mapping of str to str

    Returns
    -------
    Priced or Missing
        One term for each phase and each kind of message, all repetitions together.

    Raises
    ------
    SubjectError
        The description leaves a name undefined for them.
    """
    lookup = _Lookup(application, machine)
    derived = derived_quantities(application, words)
    repeat = written_out(application, application.repeat, derived, "/repeat")
    terms: list[Term] = []
    parts: tuple[Phase | Exchange, ...] = (*application.phases, *application.exchanges)
    for part in parts:
        if part.when.holds(words):
            cost = (
                _phase_us(part, lookup) if isinstance(part, Phase) else _exchange_us(part, lookup)
            )
            if lookup.lacking:
                return lookup.lacking[0]
            whole = written_out(application, cost, derived, part.place)
            terms.append(Term(part.name, MODEL, repeat * whole))
    return Priced(
        microseconds=sum((term.microseconds for term in terms), num(0)),
        terms=tuple(terms),
        coefficients=lookup.found,
        domains=_domains(application, machine, derived),
    )


@dataclass(slots=True)
class _Lookup:
    """Coefficients by symbol, as they are asked for, and what is lacking."""

    application: Application
    machine: Machine
    found: dict[str, Quantity] = field(default_factory=dict)
    lacking: list[Missing] = field(default_factory=list)

    def rate(self, name: str, part: str, unit: str) -> Expr:
        """Return the symbol of a rate's reciprocal, microseconds per unit.

        `part` is ``outer`` or ``inner`` of a pair, or empty. In reciprocals a price is linear.
        """
        section = ("phases", "applications", self.application.name, "rates", name)
        path = (*section, part) if part else section
        quantity = self.machine.quantity(*path)
        what = f'the {part + " " if part else ""}rate "{name}" of {self.application.name}'
        if quantity is None:
            return self.absent(
                f"{what} on {self.machine.name}",
                f"time that phase on {self.machine.name} and state the rate in a copy of its "
                f"profile under /{'/'.join(path)}",
            )
        if quantity.low <= 0:
            raise SubjectError(f"{self.machine.origin}: {what} must be positive")
        if quantity.unit != RATE_UNITS[unit]:
            raise SubjectError(
                f"{self.machine.origin}: {what} is in {quantity.unit}, "
                f"the phase counts in {RATE_UNITS[unit]}"
            )
        parts = (name, part, f"us_per_{unit}") if part else (name, f"us_per_{unit}")
        # A rate in MFlop/s or MByte/s is one in units per microsecond.
        return self.symbol(".".join(parts), quantity.reciprocal(1, f"us/{unit}"))

    def message(self, key: str, pattern: str) -> Expr:
        """Return the symbol of ``alpha_us`` or ``beta_us_per_byte``, the pattern's own first."""
        if pattern:
            own = self.machine.quantity("phases", "patterns", pattern, key)
            if own is not None:
                return self.symbol(f"message.{pattern}.{key}", own)
        common = self.machine.quantity("phases", key)
        if common is None:
            return self.absent(
                f"{key} of messages on {self.machine.name}",
                f"run `advise calibrate`, or state it in a copy of the profile under /phases/{key}",
            )
        return self.symbol(f"message.{key}", common)

    def symbol(self, name: str, quantity: Quantity) -> Expr:
        self.found[name] = quantity
        return sym(name)

    def absent(self, what: str, remedy: str) -> Expr:
        self.lacking.append(Missing(what, remedy))
        return sym("absent")


def derived_quantities(application: Application, words: Mapping[str, Word]) -> dict[str, Expr]:
    """Return every derived quantity of a variant over sizes and parameters only.

    Raises
    ------
    SubjectError
        One is defined twice for these words.
    """
    derived: dict[str, Expr] = {}
    for definition in application.definitions:
        if not definition.when.holds(words):
            continue
        if definition.name in derived:
            problem = f"{definition.name} is defined twice for {_shown(words)}"
            raise application.refuse(definition.place, problem)
        derived[definition.name] = substitute(definition.value, derived)
    return derived


def written_out(
    application: Application, expr: Expr, derived: Mapping[str, Expr], place: str
) -> Expr:
    """Return `expr` over sizes and parameters only.

    Raises
    ------
    SubjectError
        It needs a quantity that this variant does not define.
    """
    whole = substitute(expr, derived)
    undefined = free_symbols(whole) & {d.name for d in application.definitions}
    if undefined:
        problem = f"{min(undefined)} is not defined for this choice, or only after its use"
        raise application.refuse(place, problem)
    return whole


def _phase_us(phase: Phase, lookup: _Lookup) -> Expr:
    if phase.per_op is None:
        return phase.count * lookup.rate(phase.rate, "", phase.unit)
    outer, inner = (lookup.rate(phase.rate, part, phase.unit) for part in ("outer", "inner"))
    return phase.count * substitute(phase.per_op, {"a": outer, "b": inner})


def _exchange_us(exchange: Exchange, lookup: _Lookup) -> Expr:
    alpha = lookup.message("alpha_us", exchange.pattern)
    beta = lookup.message("beta_us_per_byte", exchange.pattern)
    cost = exchange.count * (alpha + beta * exchange.bytes)
    series = exchange.sum
    return cost if series is None else summation(series.index, series.from_, series.to, cost)


def _domains(
    application: Application, machine: Machine, derived: Mapping[str, Expr]
) -> tuple[Domain, ...]:
    """Return the ranges that the machine states for the application's rates."""
    ranges = machine.section("phases", "applications", application.name, "ranges")
    domains: list[Domain] = []
    for what, stated in ranges.items():
        place = f"{machine.origin}: /phases/applications/{application.name}/ranges/{what}"
        if not isinstance(stated, dict):
            raise SubjectError(f"{place}: expected an object")
        text, low, high = (stated.get(key) for key in ("quantity", "low", "high"))
        if (
            not isinstance(text, str)
            or not isinstance(low, int | float)
            or not isinstance(high, int | float)
            or not low <= high
        ):
            raise SubjectError(f'{place}: needs a "quantity" and numbers "low" <= "high"')
        try:
            quantity = substitute(parse(text), derived)
        except ExprError as error:
            raise SubjectError(f"{place}/quantity: {error}") from error
        domains.append(Domain(what, quantity, float(low), float(high)))
    return tuple(domains)


def _shown(words: Mapping[str, Word]) -> str:
    return ", ".join(f"{name} = {word}" for name, word in words.items())
