"""Reading an application description: a TOML document in, :class:`Application` out, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from costdb.expr import Expr, free_symbols, num
from costdb.phases.application import (
    Application,
    ApplicationError,
    Constraint,
    Definition,
    Exchange,
    NumberParameter,
    Parameter,
    Phase,
    StatedRate,
    When,
    Word,
    WordParameter,
)
from costdb.phases.document import Node
from costdb.quantity import Provenance, Quantity

APPLICATION_SCHEMA_VERSION: Final = 1
PHASES: Final = "phases"
RATE_UNITS: Final = {"flop": "MFlop/s", "byte": "MByte/s"}


HEAD_KEYS: Final = ("schema_version", "name", "title", "source", "parameters")
OPTIONAL_HEAD_KEYS: Final = ("kind", "derived", "constraints", "repeat")


def read_head(keys: Mapping[str, Node], origin: str) -> Application:
    """Return what descriptions of every kind say: an application without phases or messages.

    Raises
    ------
    ApplicationError
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
        constraints=tuple(_constraint(node, parameters) for node in listed(keys, "constraints")),
        phases=(),
        exchanges=(),
        repeat=keys["repeat"].expression() if "repeat" in keys else num(1),
        rates={},
    )


def listed(keys: Mapping[str, Node], key: str) -> list[Node]:
    """Return the items of an array that need not be there."""
    return keys[key].items() if key in keys else []


def application_of(document: dict[str, object], origin: str) -> Application:
    """Return the application that a parsed document describes.

    Raises
    ------
    ApplicationError
        It says something that cannot be used: one line with the file and the place.
    """
    top = Node(document, "", origin)
    keys = top.known((*HEAD_KEYS, "phases"), (*OPTIONAL_HEAD_KEYS, "messages", "rates"))
    if "kind" in keys and keys["kind"].text() != PHASES:
        raise keys["kind"].refuse(f"expected {PHASES}")
    head = read_head(keys, origin)
    application = replace(
        head,
        phases=tuple(_phase(node, head.parameters) for node in listed(keys, "phases")),
        exchanges=tuple(_exchange(node, head.parameters) for node in listed(keys, "messages")),
        rates={
            name: _stated_rate(node)
            for name, node in (keys["rates"].table() if "rates" in keys else {}).items()
        },
    )
    check_names(application, _expressions(application))
    return application


def _parameter(name: str, node: Node) -> Parameter:
    Node(name, node.place, node.origin).name()
    table = node.table()
    if "words" in table or "sets" in table:
        return _word_parameter(name, node)
    node.known(("minimum",), ("about", "maximum", "power_of_two", "default"))
    minimum = table["minimum"].whole()
    if minimum < 0:
        raise table["minimum"].refuse(f"must not be negative, got {minimum}")
    default = table["default"].whole() if "default" in table else None
    if default is not None and default < minimum:
        raise table["default"].refuse(f"must be at least {minimum}")
    return NumberParameter(
        name=name,
        about=table["about"].text() if "about" in table else "",
        minimum=minimum,
        maximum=table["maximum"].expression() if "maximum" in table else None,
        power_of_two=table["power_of_two"].flag() if "power_of_two" in table else False,
        default=default,
    )


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
        if name in parameters or name in _sizes(parameters):
            raise value.refuse("is a parameter or a size already")
        yield Definition(name, value.expression(), when, value.place)


def _sizes(parameters: Mapping[str, Parameter]) -> frozenset[str]:
    words = (p.words for p in parameters.values() if isinstance(p, WordParameter))
    return frozenset(size for sets in words for sizes in sets.values() for size in sizes)


def _constraint(node: Node, parameters: Mapping[str, Parameter]) -> Constraint:
    table = node.known(("require", "because"), ("when",))
    return Constraint(
        table["require"].expression(),
        table["because"].text(),
        read_when(table, parameters),
        node.place,
    )


def _phase(node: Node, parameters: Mapping[str, Parameter]) -> Phase:
    table = node.known(("name", "unit", "count", "rate"), ("per_op", "when"))
    unit = table["unit"].text()
    if unit not in RATE_UNITS:
        raise table["unit"].refuse(f"expected one of {', '.join(RATE_UNITS)}")
    return Phase(
        name=table["name"].text(),
        unit=unit,
        count=table["count"].expression(),
        rate=table["rate"].name(),
        per_op=table["per_op"].expression() if "per_op" in table else None,
        when=read_when(table, parameters),
        place=node.place,
    )


def _exchange(node: Node, parameters: Mapping[str, Parameter]) -> Exchange:
    table = node.known(("name", "count", "bytes"), ("pattern", "sum", "when"))
    series = None
    if "sum" in table:
        bounds = table["sum"].known(("index", "from", "to"), ())
        series = (
            bounds["index"].name(),
            bounds["from"].expression(),
            bounds["to"].expression(),
        )
    return Exchange(
        name=table["name"].text(),
        count=table["count"].expression(),
        bytes=table["bytes"].expression(),
        pattern=table["pattern"].name() if "pattern" in table else "",
        series=series,
        when=read_when(table, parameters),
        place=node.place,
    )


def _stated_rate(node: Node) -> StatedRate:
    table = node.table()
    if "value" in table:
        return StatedRate(single=_quantity(node))
    pair = node.known(("outer", "inner"), ())
    return StatedRate(outer=_quantity(pair["outer"]), inner=_quantity(pair["inner"]))


def _quantity(node: Node) -> Quantity:
    table = node.known(
        ("value", "unit", "provenance", "source"), ("low", "high", "fitted_to", "note")
    )
    value = float(table["value"].number())
    low = float(table["low"].number()) if "low" in table else value
    high = float(table["high"].number()) if "high" in table else value
    if low <= 0:
        raise node.refuse(f"a rate must be positive, got {min(low, value):g}")
    unit = table["unit"].text()
    if unit not in RATE_UNITS.values():
        raise table["unit"].refuse(f"expected one of {', '.join(RATE_UNITS.values())}")
    provenance = table["provenance"].text()
    fitted_to = table["fitted_to"].text() if "fitted_to" in table else ""
    if fitted_to and provenance != Provenance.ESTIMATED.value:
        raise table["provenance"].refuse("a number that was fitted to a figure is estimated")
    try:
        return Quantity(
            value, low, high, unit, Provenance(provenance), table["source"].text(), fitted_to
        )
    except ValueError as error:
        raise node.refuse(str(error)) from error


def check_names(
    application: Application, expressions: Iterable[tuple[str, Expr, frozenset[str]]]
) -> None:
    """Refuse expressions that mention what nothing binds.

    Parameters
    ----------
    application : Application
    expressions : iterable of (str, Expr, frozenset of str)
        Each with its place and the names that it may use besides.

    Raises
    ------
    ApplicationError
        With the place of the first.
    """
    known = {p.name for p in application.number_parameters}
    known |= set(application.size_names)
    known |= {definition.name for definition in application.definitions}
    for place, expr, extra in expressions:
        for name in sorted(free_symbols(expr) - known - extra):
            raise ApplicationError(f"{application.origin}: {place}: nothing defines {name}")


def head_expressions(
    application: Application,
) -> Iterator[tuple[str, Expr, frozenset[str]]]:
    """Yield the expressions that descriptions of every kind have, for :func:`check_names`."""
    nothing: frozenset[str] = frozenset()
    for parameter in application.number_parameters:
        if parameter.maximum is not None:
            yield f"/parameters/{parameter.name}/maximum", parameter.maximum, nothing
    for definition in application.definitions:
        yield definition.place, definition.value, nothing
    for constraint in application.constraints:
        yield constraint.place, constraint.require, nothing
    yield "/repeat", application.repeat, nothing


def _expressions(application: Application) -> Iterator[tuple[str, Expr, frozenset[str]]]:
    nothing: frozenset[str] = frozenset()
    yield from head_expressions(application)
    for phase in application.phases:
        yield phase.place, phase.count, nothing
        if phase.per_op is not None:
            yield phase.place, phase.per_op, frozenset({"a", "b"})
    for exchange in application.exchanges:
        index = frozenset({exchange.series[0]} if exchange.series else ())
        yield exchange.place, exchange.count, index
        yield exchange.place, exchange.bytes, index
        if exchange.series is not None:
            yield exchange.place, exchange.series[1], nothing
            yield exchange.place, exchange.series[2], nothing
