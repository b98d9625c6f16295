"""What commands share: exit codes, lines on standard error, sizes, and output."""

from __future__ import annotations

import ast
import errno
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from io import TextIOWrapper
from typing import Final, TypeVar

from advisor.config.files import system_error, using, wrong_use
from advisor.report.style import Style, detect_style, json_text, one_line
from advisor.source import NOTEBOOK, SourceProblem, placed_problem, with_keys, without_keys
from costdb.records import DOTTED_NAME, dataclass, nearest, read_number, replace

# Text or JSON: what the commands have in common that show one result.

_Result = TypeVar("_Result")

TEXT: Final = "text"
JSON: Final = "json"
PAGES = ("html", "markdown")
"""Formats of results that have a picture."""


COLORS = ("auto", "always", "never")


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run speaks, whatever its command is: ``-q``, ``-v`` and ``--color``.

    Attributes
    ----------
    quiet : bool
        Only results and problems.
    verbose : bool
        Also what was decided for each file.
    color : str
        One of `COLORS`.
    """

    quiet: bool = False
    verbose: bool = False
    color: str = COLORS[0]


manner: ContextVar[Manner] = ContextVar("manner", default=Manner())  # noqa: B039  # frozen
"""That of the run in this process."""


def text_style(output: str | None) -> Style:
    """Return how text may look on standard output, or plain for a file."""
    asked = manner.get()
    style = detect_style(sys.stdout, os.environ) if output is None else Style()
    color = style.color if asked.color == COLORS[0] else asked.color == COLORS[1]
    return replace(style, color=color, closing=not asked.quiet)


def note(message: str) -> None:
    """Write a line about what was done, unless only results and problems are wanted."""
    if not manner.get().quiet:
        complain(message)


NOTHING_TO_SAY = 0
FINDINGS = 1
WRONG_USE = 2
INTERRUPTED = 130

_RECURSION_LIMIT = 5000
"""Frames of Python. A visitor takes three for each level of an expression, and a thousand
levels are read; the compiled parser does not count here, so a guard stands before it."""

SIZES_VARIABLE = "ADVISE_DEFINE"
STANDARD_STREAM = "-"

_BINDING = re.compile(rf"({DOTTED_NAME})=(.*)", re.DOTALL)


def be_able_to_read() -> None:
    """Set a process up that reads programs: deep ones, whatever Python itself warns about."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    warnings.simplefilter("ignore", SyntaxWarning)


def complain(message: str) -> None:
    """Write one line to standard error; a closed one is no reason to fail."""
    if sys.stderr is None:  # closed before the start; print would take standard output instead
        return
    with suppress(OSError, ValueError):
        print(one_line(message), file=sys.stderr, flush=True)


def problem_line(error: Exception) -> str | None:
    """Return the one line for what can be wrong with files, choices and machines; None for bugs."""
    from costdb.choosing import PlacedError, SubjectError
    from costdb.machines import MachineError
    from costdb.store.place import StoreError

    if isinstance(error, SourceProblem):
        return str(_in_cell(error))
    if isinstance(error, PlacedError):
        return str(error)
    if isinstance(error, SubjectError | MachineError | StoreError):
        return f"advise: {error}"
    return None


def _in_cell(problem: SourceProblem) -> SourceProblem:
    """Return a problem of a notebook at its place in a cell."""
    from advisor.files import read_source

    if not problem.path.endswith(NOTEBOOK):
        return problem
    try:
        return placed_problem(problem, read_source(problem.path).text)
    except (OSError, SourceProblem):
        return problem


def read_text(path: str, *, notebooks: bool = False) -> str:
    """Return the text of a Python file; where they are of use, of a notebook as well.

    Raises
    ------
    CommandError
        The system refuses, or it is a notebook.
    SourceProblem
        It does not follow its encoding.
    """
    from advisor.files import read_source

    if path.endswith(NOTEBOOK) and not notebooks:
        raise wrong_use(
            f"{path}: notebooks are for check, explain and run; this takes a program, which"
            " `jupyter nbconvert --to script` makes of one"
        )
    with using(path):
        return read_source(path).text


def write_out(text: str) -> None:
    """Write a result to standard output.

    A reader that went away is no error. Characters that the output's encoding lacks are
    written as escapes.

    Raises
    ------
    CommandError
        When the output cannot be written, as on a full disk.
    """
    stream = sys.stdout
    if stream is None:  # closed before the program started
        return
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace", newline="")
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        raise system_error(error, "standard output") from error


def discard_output() -> None:
    """Send what is still buffered nowhere, or the interpreter would complain at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_result(text: str, output: str | None) -> None:
    """Write a result to a file, all at once, or to standard output when there is none."""
    if output is None or output == STANDARD_STREAM:
        write_out(text)
        return
    from advisor.files import replace_file

    with using(output):
        replace_file(output, text.encode("utf-8", "backslashreplace"))


def write_shown(
    result: _Result,
    as_text: Callable[[_Result, Style], str],
    as_json: Callable[[_Result], str],
    output_format: str,
    output: str | None = None,
) -> None:
    """Write a result in the form that was asked for: as text, as JSON, or as a page."""
    if output_format == JSON:
        text = as_json(result)
    elif output_format == TEXT:
        text = as_text(result, text_style(output))
    else:
        from advisor.report.pages import of_report

        text = of_report(result, output_format)
    write_result(text, output)


def write_problems(
    problems: Sequence[str], of: Mapping[str, object], output_format: str, output: str | None
) -> int:
    """Write what is wrong with files, a line each or as a document, and return the exit code."""
    if output_format == JSON:
        write_result(json_text({"schema_version": 1, **of, "problems": problems}), output)
    else:
        write_result("".join(f"{one_line(problem)}\n" for problem in problems), output)
    return WRONG_USE if problems else NOTHING_TO_SAY


def check_output(output: str | None) -> str | None:
    """Refuse a file that cannot be written, before minutes are spent on what it is to hold.

    Raises
    ------
    CommandError
        Its folder is not there or not to be written to, or it is a folder itself.
    """
    if output is None or output == STANDARD_STREAM:
        return output
    from pathlib import Path

    target = Path(output).resolve()
    problem = None
    if target.is_dir():
        problem = errno.EISDIR
    elif not target.parent.is_dir():
        problem = errno.ENOENT
    elif target.exists() and not os.access(target, os.W_OK):
        problem = errno.EACCES
    elif (target.is_file() or not target.exists()) and not os.access(target.parent, os.W_OK):
        problem = errno.EACCES  # a file is replaced by another, all at once
    if problem is not None:
        raise wrong_use(f"{output}: {os.strerror(problem)}")
    return output


def parse_bindings(
    definitions: Iterable[str], *, ranks: int | None = None, only_sizes: bool = True
) -> Mapping[str, int | float]:
    """Return what ``-D NAME=VALUE`` options bind; the last one of a name holds.

    Parameters
    ----------
    definitions : iterable of str
    ranks : int or None
        What ``-P`` says, which is the size of that name.
    only_sizes : bool
        Whether all are sizes, and so positive; arguments of a kernel that runs may be any numbers.

    Raises
    ------
    CommandError
        When a definition is malformed, or its value not such a number.
    """
    read = positive_number if only_sizes else any_number
    given = ((*split_binding(definition), f"-D {definition}") for definition in definitions)
    sizes = {name: read(text, where) for name, text, where in given}
    return sizes if ranks is None else {**sizes, "P": ranks}


def split_binding(definition: str) -> tuple[str, str]:
    """Return name and text of ``NAME=VALUE``."""
    match = _BINDING.fullmatch(without_keys(definition))
    if match is None:
        raise wrong_use(f"-D {definition}: expected NAME=VALUE, such as -D N=1000")
    if not match[2].strip():
        raise wrong_use(f"-D {definition}: a value is missing, such as -D {match[1]}=1000")
    return match[1], match[2].strip()


def positive_number(text: str, where: str) -> int | float:
    """Return a positive number written as a whole or decimal number.

    A whole number in exponent form, such as ``1e6``, is a whole number too, because sizes
    are.
    """
    value = any_number(text, where)
    if value <= 0:
        raise wrong_use(f"{where}: must be positive")
    return value


def any_number(text: str, where: str) -> int | float:
    """Return a finite number; see :func:`positive_number` for how it is written."""
    value = read_number(text)
    if value is None:
        raise wrong_use(f"{where}: {text!r} is not a number")
    if not math.isfinite(value):
        raise wrong_use(f"{where}: {text} is too large")
    return value


# Names of ``-D`` that nothing has.

_MOST_NAMES = 8
"""So many sizes fit a line; those of a whole project help nobody."""


def tell_unused(given: Iterable[str], known: Collection[str]) -> None:
    """Say which names of ``-D`` nothing has.

    No error: a hook passes one ``-D`` along with whichever files a commit changes.
    """
    for name in given:
        if name not in known:
            hint = nearest(name, sorted(known), _MOST_NAMES)
            told = f"-D {name} changes nothing: what was checked has no size or parameter {name}"
            complain(with_keys(f"advise: {told}{hint}"))


def names_in(path: str, source: str, *, arguments: bool = False) -> frozenset[str]:
    """Return the sizes of the kernels and of the program of a file.

    Parameters
    ----------
    path, source : str
    arguments : bool
        All parameters of the kernels as well: a run passes them what is given.

    Raises
    ------
    SourceProblem
        The file does not parse, or an annotation cannot be right.
    """
    from advisor.frontend.kernels import read_kernels
    from advisor.frontend.prefilter import may_call_compiled
    from advisor.frontend.spmd.called import called
    from advisor.frontend.spmd.reader import read_program
    from advisor.ir.spmd.program import RANKS
    from advisor.ranking.compare import bindable

    found: frozenset[str] = frozenset()
    compiled = called(path, source) if may_call_compiled(source) else ()
    kernels = read_kernels(path, source, compiled)
    for kernel in kernels:
        found |= bindable(kernel)
    if arguments and kernels:
        called_so = {kernel.name.rpartition(".")[2] for kernel in kernels}
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name in called_so:
                found |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    program = read_program(path, source)
    return found if program is None else found | {RANKS, *program.sizes}


# A progress line for what takes long, on a terminal only.

_Item = TypeVar("_Item")

PATIENCE_S = 1.0
_REFRESH_S = 0.2
_BAR = 24


def watched(items: Sequence[_Item], noun: str = "choices") -> Iterator[_Item]:
    """Yield `items`; after a second, show on a terminal how many are done."""
    watches = sys.stderr is not None and sys.stderr.isatty()
    due, bar = time.monotonic() + PATIENCE_S, Bar()
    try:
        for done, item in enumerate(items):
            if watches and time.monotonic() >= due:
                due = time.monotonic() + _REFRESH_S
                bar.show(f"{done} of {len(items)} {noun}", done / len(items))
            yield item
    finally:
        bar.clear()


class Bar:
    """A bar on a terminal, beside what is being done; elsewhere a line for each new thing."""

    def __init__(self) -> None:
        self.title = ""
        self._due = 0.0

    def show(self, title: str, share: float) -> None:
        """Say what is being done, and which share of it is, from 0 to 1."""
        stream = sys.stderr
        if stream is None or manner.get().quiet:
            return
        new, self.title = title != self.title, title
        if not stream.isatty():
            if new:
                stream.write(f"{title}\n")
                stream.flush()
        elif new or time.monotonic() >= self._due:
            self._due = time.monotonic() + _REFRESH_S
            full = round(share * _BAR)
            bar = "#" * full + "." * (_BAR - full)
            stream.write(f"\r\x1b[K[{bar}] {round(100 * share):3d} % {title}")
            stream.flush()

    def clear(self) -> None:
        """Take the bar off the terminal."""
        if self.title and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
