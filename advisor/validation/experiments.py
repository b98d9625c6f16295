"""Experiments as JSON documents: what is predicted, what is run, what is published of it.

Those of the studies come with the package, in the folder ``experiments`` beside this module. A
document says for each of its cases at which sizes to do what in which ways. A way is predicted as a
kernel of the examples with its annotations changed, as a description, or as groups of remote
references; it is measured as a program of the examples, or where it has none by running the kernel
and its rule's rewrite of it. Figures hold both beside each other and beside what is published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Final, TypeVar

from advisor.validation.results import CannotValidateError
from costdb.expr import Expr, num
from costdb.phases.application import ApplicationError
from costdb.phases.document import Node, read_content
from costdb.work import Pattern, RemoteGroup

SECTIONS: Final = ("lines", "smp", "sorts", "crossover", "pgas", "choices")
"""The documents that come with the package, in the order of a report."""

FIGURES: Final = ("order", "error", "within", "inside", "threshold")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do a case.

    Attributes
    ----------
    name : str
    changes : tuple of (str, str)
        What stands in the kernel's text, and what takes its place.
    rewritten : bool
        Whether the case's rule rewrites the kernel.
    choose : mapping of str to str
        The description's words.
    references : tuple of RemoteGroup
    program, private : str
        What runs on the ranks, ``FILE:FUNCTION`` of the examples; of it the part that no model
        prices, whose measured time is added to the prediction.
    """

    name: str
    changes: tuple[tuple[str, str], ...] = ()
    rewritten: bool = False
    choose: Mapping[str, str] = field(default_factory=dict)
    references: tuple[RemoteGroup, ...] = ()
    program: str = ""
    private: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """How predictions and measurements of a case are judged.

    Attributes
    ----------
    kind : str
        One of `FIGURES`.
    paper : str
        What is published, as text.
    at_most : float
        The error that holds, as a share.
    over : str
        The size that a threshold is of.
    """

    kind: str
    paper: str = ""
    at_most: float = 0.0
    over: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What is done at several sizes: a kernel or a description, and ways to do it.

    Attributes
    ----------
    subject : str
        ``FILE:KERNEL`` or a description, of the examples; empty where ways have references.
    rule : str
        The code under which what was measured is evidence.
    """

    operation: str
    sizes: tuple[Mapping[str, int], ...]
    ways: tuple[Way, ...]
    figures: tuple[Figure, ...]
    subject: str = ""
    rule: str = ""
    ranks: int = 1

    def at(self, sizes: Mapping[str, int]) -> str:
        """Return what is done at some of the sizes, by those of them that differ."""
        differ = [name for name in sizes if len({one[name] for one in self.sizes}) > 1]
        return ", ".join([self.operation, *(f"{name} = {sizes[name]}" for name in differ)])


@dataclass(frozen=True, slots=True)
class Samples:
    """Which sections of a calibration are fitted anew, and by what their models are judged.

    Attributes
    ----------
    models : tuple of str
        What is judged beside the model that predictions use.
    at_most : float
        The mean error that holds; 0 where the model that predictions use is to beat the other.
    """

    sections: tuple[str, ...]
    models: tuple[str, ...]
    paper: str
    at_most: float


@dataclass(frozen=True, slots=True)
class Experiment:
    """A document.

    Attributes
    ----------
    model, source : str
        Whose figures they are, and where they are published.
    cores : int
        Without so many it is not done.
    rounds : int
        How often all cases are measured, one after another, in `seconds` each.
    """

    name: str
    title: str
    model: str
    source: str
    notes: tuple[str, ...]
    cores: int
    rounds: int
    seconds: float
    cases: tuple[Case, ...]
    samples: Samples | None


def load_experiment(name: str) -> Experiment:
    """Return an experiment by its name, or by the path of its document.

    Raises
    ------
    CannotValidateError
        There is none, or it says something that cannot be used: one line with the place.
    """
    path = name
    if name in SECTIONS:
        path = str(files("advisor") / "validation" / "experiments" / f"{name}.json")
    try:
        document = json.loads(read_content(path))
        return _experiment(Node(document, "", path))
    except ApplicationError as error:
        raise CannotValidateError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise CannotValidateError(f"{path}: not JSON: {error}") from error


def _experiment(top: Node) -> Experiment:
    keys = top.known(
        ("title", "model", "source", "notes"), ("cores", "rounds", "seconds", "cases", "samples")
    )
    cases, samples = keys.get("cases"), keys.get("samples")
    return Experiment(
        Path(top.origin).stem,
        keys["title"].text(),
        keys["model"].text(),
        keys["source"].text(),
        tuple(node.text() for node in keys["notes"].items()),
        _or(keys, "cores", Node.whole, 1),
        _or(keys, "rounds", Node.whole, 1),
        _or(keys, "seconds", _real, 0.4),
        () if cases is None else tuple(map(_case, cases.items())),
        None if samples is None else _samples(samples),
    )


def _samples(node: Node) -> Samples:
    keys = node.known(("sections", "models"), ("paper", "at_most"))
    return Samples(
        tuple(one.text() for one in keys["sections"].items()),
        tuple(one.text() for one in keys["models"].items()),
        _or(keys, "paper", Node.text, ""),
        _or(keys, "at_most", _real, 0.0),
    )


def _case(node: Node) -> Case:
    keys = node.known(("operation", "sizes", "ways", "figures"), ("subject", "rule", "ranks"))
    sizes = {
        name: [one.whole() for one in values.items()]
        for name, values in keys["sizes"].table().items()
    }
    return Case(
        keys["operation"].text(),
        tuple(dict(zip(sizes, chosen, strict=True)) for chosen in product(*sizes.values())),
        tuple(_way(one) for one in keys["ways"].items()),
        tuple(_figure(one) for one in keys["figures"].items()),
        _or(keys, "subject", Node.text, ""),
        _or(keys, "rule", Node.text, ""),
        _or(keys, "ranks", Node.whole, 1),
    )


def _way(node: Node) -> Way:
    keys = node.known(
        ("name",), ("changes", "rewritten", "choose", "references", "program", "private")
    )
    choose = keys["choose"].table() if "choose" in keys else {}
    return Way(
        keys["name"].text(),
        tuple(_change(one) for one in _items(keys, "changes")),
        _or(keys, "rewritten", Node.flag, False),
        {name: one.text() for name, one in choose.items()},
        tuple(_group(one) for one in _items(keys, "references")),
        _or(keys, "program", Node.text, ""),
        _or(keys, "private", Node.text, ""),
    )


def _change(node: Node) -> tuple[str, str]:
    old, new = (one.text() for one in node.items())
    return old, new


def _group(node: Node) -> RemoteGroup:
    keys = node.known(("count", "threads", "pattern"), ("store", "calls"))
    nothing: Expr = num(0)
    return RemoteGroup(
        keys["count"].expression(),
        keys["threads"].expression(),
        Pattern(keys["pattern"].text()),
        store=_or(keys, "store", Node.flag, False),
        calls=_or(keys, "calls", Node.expression, nothing),
    )


def _figure(node: Node) -> Figure:
    keys = node.known(("kind",), ("paper", "at_most", "over"))
    kind = keys["kind"].text()
    if kind not in FIGURES:
        raise keys["kind"].refuse(f"{kind} is not one of {', '.join(FIGURES)}")
    return Figure(
        kind,
        _or(keys, "paper", Node.text, ""),
        _or(keys, "at_most", _real, 0.0),
        _or(keys, "over", Node.text, ""),
    )


def _real(node: Node) -> float:
    return float(node.number())


def _or(keys: Mapping[str, Node], key: str, read: Callable[[Node], _T], default: _T) -> _T:
    return read(keys[key]) if key in keys else default


def _items(keys: Mapping[str, Node], key: str) -> Iterator[Node]:
    yield from keys[key].items() if key in keys else ()
