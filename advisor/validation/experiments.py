"""Experiments as JSON documents: what is predicted, what is run, what is published of it.

Those of the studies come with the package, in the folder ``experiments`` beside this module. A
document says for each of its cases at which sizes to do what in which ways. A way is predicted as a
kernel of the examples with its annotations changed, as a description, or as groups of remote
references; it is measured as a program of the examples, or where it has none by running the kernel
and its rule's rewrite of it. Figures hold both beside each other and beside what is published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeVar

from advisor.validation.results import CannotValidateError
from costdb.phases.application import ApplicationError
from costdb.phases.document import Node, read_content
from costdb.records import dataclass, field, fields
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
    changes: tuple[tuple[str, ...], ...] = ()
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
    paper: str = ""
    at_most: float = 0.0


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
    cores: int = 1
    rounds: int = 1
    seconds: float = 0.4
    cases: tuple[Case, ...] = ()
    samples: Samples | None = None


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
    readers = {
        **{"title": Node.text, "model": Node.text, "source": Node.text, "notes": _many(Node.text)},
        **{"cores": Node.whole, "rounds": Node.whole, "seconds": _real},
        **{"cases": _many(_case), "samples": _samples},
    }
    return _record(Experiment, top, readers, name=Path(top.origin).stem)


def _samples(node: Node) -> Samples:
    texts = _many(Node.text)
    readers = {"sections": texts, "models": texts, "paper": Node.text, "at_most": _real}
    return _record(Samples, node, readers)


def _case(node: Node) -> Case:
    readers = {
        **{"operation": Node.text, "sizes": _sizes, "ways": _many(_way)},
        **{"figures": _many(_figure), "subject": Node.text, "rule": Node.text, "ranks": Node.whole},
    }
    return _record(Case, node, readers)


def _sizes(node: Node) -> tuple[Mapping[str, int], ...]:
    sizes = {name: _many(Node.whole)(values) for name, values in node.table().items()}
    return tuple(dict(zip(sizes, chosen, strict=True)) for chosen in product(*sizes.values()))


def _way(node: Node) -> Way:
    readers = {
        **{"name": Node.text, "changes": _many(_many(Node.text)), "rewritten": Node.flag},
        "choose": lambda one: {name: value.text() for name, value in one.table().items()},
        **{"references": _many(_group), "program": Node.text, "private": Node.text},
    }
    return _record(Way, node, readers)


def _group(node: Node) -> RemoteGroup:
    count = Node.expression
    readers = {
        **{"count": count, "threads": count, "pattern": lambda one: Pattern(one.text())},
        **{"store": Node.flag, "calls": count},
    }
    return _record(RemoteGroup, node, readers)


def _figure(node: Node) -> Figure:
    readers = {"kind": _kind, "paper": Node.text, "at_most": _real, "over": Node.text}
    return _record(Figure, node, readers)


def _kind(node: Node) -> str:
    if node.text() not in FIGURES:
        raise node.refuse(f"{node.text()} is not one of {', '.join(FIGURES)}")
    return node.text()


def _real(node: Node) -> float:
    return float(node.number())


def _many(read: Callable[[Node], _T]) -> Callable[[Node], tuple[_T, ...]]:
    return lambda node: tuple(map(read, node.items()))


def _record(
    kind: Callable[..., _T], node: Node, readers: Mapping[str, Callable[[Node], Any]], **more: str
) -> _T:
    """Return a dataclass of what a table says; fields without a default must be there."""
    needed = {
        one.name
        for one in fields(kind)  # type: ignore[arg-type]
        if one.default is MISSING and one.default_factory is MISSING
    }
    required = tuple(name for name in readers if name in needed)
    optional = tuple(name for name in readers if name not in needed)
    keys = node.known(required, optional)
    return kind(**more, **{name: readers[name](one) for name, one in keys.items()})
