"""Sizes that a program is given from outside: options, comments, usage texts, sidecar files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.symbols import COMMAND_LINE
from advisor.frontend.spmd.values import (
    Class,
    External,
    Nothing,
    Number,
    Opaque,
    Record,
    Text,
    Value,
)
from advisor.source import Span

PARSER = "argparse.ArgumentParser"
_MPIRUN = re.compile(
    r"\b(?:mpirun|mpiexec|srun|aprun|jsrun)\b[^\n]*?\s(?:-n|-np|--np|--ntasks|-N)[ =](\d{1,6})\b"
)
_DOC_OPTION = re.compile(r"(--[\w-]+)[ =]?[^\n]*?\[default:\s*([^\]\n]+)\]")
_LARGEST_SIDECAR = 100_000


def mpirun_ranks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield line numbers and numbers of ranks that comments and texts of a file start it with."""
    for number, line in enumerate(lines, 1):
        if "mpi" in line or "srun" in line or "prun" in line:
            found = _MPIRUN.search(line[:500])
            if found is not None:
                yield number, int(found[1])


def new_parser(run: Run) -> Value:
    """Return an ``argparse.ArgumentParser``."""
    return run.record(Class(PARSER))


def parser_method(parser: Record, name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a method of an argument parser gives."""
    if name == "add_argument":
        _add_argument(parser, given, run, span)
        return Nothing()
    if name in ("add_argument_group", "add_mutually_exclusive_group"):
        return parser
    if name in ("parse_args", "parse_known_args"):
        return parser
    if name == "set_defaults":
        for argument in given:
            if argument.keyword is not None:
                run.kept[parser.number, argument.keyword] = argument.value
        return Nothing()
    return Opaque(f"the result of `.{name}` of a parser", foreign=True)


def _add_argument(parser: Record, given: list[Argument], run: Run, span: Span) -> None:
    flags = [a.value.value for a in given if isinstance(a.value, Text) and a.keyword is None]
    keywords = {a.keyword: a.value for a in given if a.keyword is not None}
    stated = keywords.get("dest")
    long = [f for f in flags if f is not None and f.startswith("--")]
    names = [*long, *(f for f in flags if f)]
    if isinstance(stated, Text) and stated.value:
        name = stated.value
    elif names:
        name = names[0].lstrip("-").replace("-", "_")
    else:
        return
    shown = names[0] if names else name
    run.kept[parser.number, name] = option(name, shown, keywords, run, span)


def option(name: str, shown: str, keywords: dict[str, Value], run: Run, span: Span) -> Value:
    """Return the value of an option of the command line, by its default."""
    default = keywords.get("default")
    kind = keywords.get("type")
    if isinstance(keywords.get("action"), Text):
        return Number(None, "bool")
    if "nargs" in keywords:
        return default or Opaque(COMMAND_LINE)
    if isinstance(default, Text) and default.value is not None and default.value.isdigit():
        default = Number(run.symbols.known(name, int(default.value), "", span))
    if isinstance(default, Number):
        value = run.integer(default)
        if value is None or default.dtype not in ("int", "float"):
            return Number(default.expr, default.dtype)
        origin = f"default of {shown}, line {span.start_line}"
        return Number(run.symbols.known(name, value, origin, span), default.dtype)
    if isinstance(default, Text):
        # whoever runs it may say otherwise
        return Text(None)
    if isinstance(kind, External) and kind.path == "builtins.str":
        return Text(None)
    dtype = "float" if isinstance(kind, External) and kind.path == "builtins.float" else "int"
    if kind is None:
        return Opaque(COMMAND_LINE, run.symbols.unknown(name, COMMAND_LINE, span))
    return Number(run.symbols.unknown(name, COMMAND_LINE, span), dtype)


def documented(doc: str, run: Run, span: Span) -> Record:
    """Return what docopt makes of a usage text."""
    made = run.record()
    for flag, default in _DOC_OPTION.findall(doc):
        value: Value = Text(None)
        if default.strip().isdigit():
            origin = f"default of {flag} in the usage text, line {span.start_line}"
            name = flag.lstrip("-")
            value = Opaque(COMMAND_LINE, run.symbols.known(name, int(default), origin, span))
        run.kept[made.number, flag] = value
    return made


def click_options(
    node: cst.FunctionDef, evaluated: list[list[Argument]], run: Run
) -> dict[str, Value]:
    """Return the parameters that click gives a function, from its decorators' arguments."""
    found: dict[str, Value] = {}
    for given in evaluated:
        flags = [a.value.value for a in given if isinstance(a.value, Text) and a.keyword is None]
        keywords = {a.keyword: a.value for a in given if a.keyword is not None}
        bare = [f for f in flags if f is not None and not f.startswith("-")]
        long = [f for f in flags if f is not None and f.startswith("--")]
        chosen = bare or long
        if not chosen:
            continue
        name = chosen[0].lstrip("-").partition("/")[0].replace("-", "_")
        found[name] = option(name, chosen[-1], keywords, run, run.span(node.name))
    return found


def sidecar(path: str, name: str, run: Run, span: Span) -> Value:
    """Return the whole numbers of a JSON file that lies beside the program, by their keys.

    The file is read as data; anything else than a plain file of moderate size counts as unknown.
    """
    made = run.record()
    beside = Path(path).parent / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return Opaque("a file elsewhere")
    try:
        if not beside.is_file() or beside.stat().st_size > _LARGEST_SIDECAR:
            return Opaque("a file that is not there")
        content = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return Opaque("a file that cannot be read")
    if not isinstance(content, dict):
        return Opaque("a file without sizes")
    _keep(content, made, name, run, span)
    return made


def _keep(content: dict[str, object], made: Record, name: str, run: Run, span: Span) -> None:
    for key, value in content.items():
        if isinstance(value, bool):
            run.kept[made.number, key] = Number(None, "bool")
        elif isinstance(value, int):
            origin = f"`{key}` in {name}"
            run.kept[made.number, key] = Number(run.symbols.known(key, value, origin, span))
        elif isinstance(value, float):
            run.kept[made.number, key] = Number(None, "float")
        elif isinstance(value, dict):
            inner = run.record()
            _keep(value, inner, name, run, span)
            run.kept[made.number, key] = inner
        else:
            run.kept[made.number, key] = Text(value if isinstance(value, str) else None)
