"""``advise annotate``: writes what is known of functions above them, as comments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from advisor.cli import options
from advisor.cli.common import complain, note, write_out, write_result
from advisor.cli.options import option
from advisor.config.files import OutputFormat, choose_machine, using, wrong_use

if TYPE_CHECKING:
    from advisor.ir.kernel import Kernel
    from advisor.observed import Seen


_EXTENTS = ("N", "M", "K", "L")


def annotate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Python, or a notebook.")],
    diff: Annotated[
        bool, option("--diff", "Show what would be written, and change nothing.")
    ] = False,
) -> None:
    """Write the sizes and types that runs showed as comments."""
    from advisor.files import read_source, replace_file
    from advisor.frontend.kernels import read_kernels
    from advisor.source import Edit, Span, apply_edits, split_lines, unified_diff

    with using(file):
        found = read_source(file)
    lines = split_lines(found.text)
    edits: dict[int, Edit] = {}
    for kernel, seen in _known(file, found.text):
        first = kernel.context.whole[0]
        indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        text = "".join(f"{indent}# advise: {said}\n" for said in _said(kernel, seen))
        edits.setdefault(first, Edit(Span(first, 0, first, 0), text))
    if not edits:
        note(
            f"advise: {file}: nothing is known of functions without marks: `advise run {file}`"
            " runs it once and remembers"
        )
        return
    text = apply_edits(found.text, edits.values())
    read_kernels(file, text)  # refuses what cannot be read again
    if diff:
        write_out(unified_diff(file, found.written(found.text), found.written(text)))
        return
    with using(file):
        replace_file(file, found.encode(text))
    note(f"advise: {file}: {len(edits)} functions annotated")


def _known(path: str, source: str) -> Iterator[tuple[Kernel, Seen]]:
    """Yield the functions that nobody marked, as runs or calls in the text show them."""
    from advisor.frontend.kernels import read_kernels
    from advisor.frontend.spmd.called import called
    from advisor.observed import Observations
    from advisor.ranking.subjects import heaviest

    seen = heaviest([one.declarable for one in Observations(complain).of_file(path)])
    shown = {one.function for one in seen}
    others = (one for one in called(path, source) if one.function not in shown)
    marked = {kernel.context.whole for kernel in read_kernels(path, source)}
    for one in (*seen, *others):
        for kernel in read_kernels(path, source, (one,)):
            if kernel.context.whole not in marked and kernel.arrays:
                yield kernel, one


def _said(kernel: Kernel, seen: Seen) -> Iterator[str]:
    """Yield what comments say of a kernel: its sizes, then a line for each array and number."""
    from advisor.numpy_table import Kind, kind_of

    names: dict[str, str] = {}
    taken = {*kernel.sizes, *kernel.arrays, *kernel.context.identifiers}
    for array in kernel.arrays.values():
        for extent in map(str, array.spec.shape):
            if not extent.isidentifier() and not extent.isdigit() and extent not in names:
                tried = (*_EXTENTS, *(f"N_{number}" for number in range(2, len(taken) + 9)))
                names[extent] = next(name for name in tried if name not in taken)
                taken.add(names[extent])
    sizes = {names.get(name, name): bound.value for name, bound in kernel.sizes.items()}
    yield " ".join(["kernel", *(f"{name}={value}" for name, value in sizes.items())])
    for name, array in kernel.arrays.items():
        extents = ", ".join(names.get(str(one), str(one)) for one in array.spec.shape)
        order = " order=F" if array.spec.order == "F" else ""
        yield f"{name}: {array.dtype}[{extents}]{order}"
    for number in seen.numbers:
        if number.name not in sizes and kind_of(number.dtype) is not Kind.BOOLEAN:
            yield f"{number.name}: {number.dtype}"


# ``advise run``: run a program once, and keep the sizes, layouts and messages that it had.


def run(
    program: Annotated[
        str | None,
        typer.Argument(metavar="PROGRAM", help="A file, or with --module a module."),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="For the program.")
    ] = None,
    as_module: Annotated[
        bool, option("--module", "PROGRAM is a module, as after python -m.")
    ] = False,
    machine: options.Machine = None,
    output_format: Annotated[Literal["none", OutputFormat], options.REPORTED] = "concise",
    output: options.ReportFile = None,
    no_store: Annotated[
        bool, option("--no-store", "Keep nothing for later runs of advise.")
    ] = False,
) -> None:
    """Run a program of yours once, and advise with the sizes it had."""

    if program is None:
        raise wrong_use("no program given: name a file, or a module by --module NAME")
    if not as_module and not Path(program).is_file():
        raise wrong_use(f"{program}: no such file; a module is run by --module {program}")
    if machine is not None:
        choose_machine(machine)
    from advisor.observe.outcome import observe

    note(f"advise: running {program}")
    code, record = observe(program, arguments or (), module=as_module)
    if record is not None:
        from advisor.observe.outcome import conclude

        shown, text = conclude(
            record, program, machine=machine, output_format=output_format, keep=not no_store
        )
        for line in shown:
            note(line)
        if output is not None:
            write_result(text, output)
        elif text:
            # standard output is the program's
            sys.stderr.write(text)
    raise typer.Exit(code)
