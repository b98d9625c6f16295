"""Sizes that a program is given from outside: options, comments, usage texts, sidecar files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.symbols import COMMAND_LINE
from advisor.frontend.spmd.values import (
    Arguments,
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


def parser_method(parser: Record, name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a method of an argument parser gives."""
    match name:
        case "add_argument":
            found = _named_option(arguments, run, span, short=True)
            if found is not None:
                run.keep(parser.number, *found)
            return Nothing()
        case (
            "add_argument_group"
            | "add_mutually_exclusive_group"
            | "parse_args"
            | "parse_known_args"
        ):
            return parser
        case "set_defaults":
            for key, value in arguments.by_keyword().items():
                run.keep(parser.number, key, value)
            return Nothing()
    return Opaque(f"the result of `.{name}` of a parser", foreign=True)


def _named_option(
    arguments: Arguments, run: Run, span: Span, *, short: bool
) -> tuple[str, Value] | None:
    """Return an option and its name, by the flags that declare it; None where these are unknown."""
    flags = [value.value for value in arguments.values() if isinstance(value, Text) and value.value]
    long = [flag for flag in flags if flag.startswith("--")]
    bare = [flag for flag in flags if not flag.startswith("-")]
    # argparse names an option after its first long flag, click after a name without dashes
    names = [*long, *flags] if short else bare or long
    keywords = arguments.by_keyword()
    stated = keywords.get("dest")
    if isinstance(stated, Text) and stated.value:
        name = stated.value
    elif names:
        name = names[0].lstrip("-").partition("/")[0].replace("-", "_")
    else:
        return None
    shown = (names or [name])[0 if short else -1]
    return name, option(name, shown, keywords, run, span)


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
    if isinstance(default, Text) or kind == External("builtins.str"):
        # whoever runs it may say otherwise
        return Text(None)
    symbol = run.symbols.unknown(name, COMMAND_LINE, span)
    if kind is None:
        return Opaque(COMMAND_LINE, symbol)
    return Number(symbol, "float" if kind == External("builtins.float") else "int")


def documented(doc: str, run: Run, span: Span) -> Record:
    """Return what docopt makes of a usage text."""
    made = run.record()
    for flag, default in _DOC_OPTION.findall(doc):
        value: Value = Text(None)
        if default.strip().isdigit():
            origin = f"default of {flag} in the usage text, line {span.start_line}"
            name = flag.lstrip("-")
            value = Opaque(COMMAND_LINE, run.symbols.known(name, int(default), origin, span))
        run.keep(made.number, flag, value)
    return made


def click_options(node: cst.FunctionDef, decorators: list[Arguments], run: Run) -> dict[str, Value]:
    """Return the parameters that click gives a function, from its decorators' arguments."""
    span = run.span(node.name)
    return dict(filter(None, (_named_option(one, run, span, short=False) for one in decorators)))


def sidecar(path: str, name: str, run: Run, span: Span) -> Value:
    """Return the whole numbers of a JSON file that lies beside the program, by their keys.

    The file is read as data; anything else than a plain file of moderate size counts as unknown.
    """
    beside = Path(path).parent / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return Opaque("a file elsewhere")
    try:
        if not beside.is_file() or beside.stat().st_size > _LARGEST_SIDECAR:
            return Opaque("a file that is not there")
        content = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return Opaque("a file that cannot be read")
    return _of_json(content, "", name, run, span)


def _of_json(content: object, key: str, file: str, run: Run, span: Span) -> Value:
    match content:
        case bool() | float():
            return Number(None, type(content).__name__)
        case int():
            return Number(run.symbols.known(key, content, f"`{key}` in {file}", span))
        case dict():
            made = run.record()
            for name, value in content.items():
                run.keep(made.number, name, _of_json(value, name, file, run, span))
            return made
        case str():
            return Text(content)
    return Text(None)
