"""``advise annotate``: writes what is known of functions above them, as comments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from advisor.cli import options
from advisor.cli.common import note, parse_bindings, read_text, write_out, write_result
from advisor.cli.options import option
from advisor.config.files import OutputFormat, choose_machine, system_error, wrong_use

if TYPE_CHECKING:
    from advisor.ir.kernel import Kernel
    from advisor.observed import Seen
    from advisor.ranking.compare import Costed
    from costdb.evaluate import Missing


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

    try:
        found = read_source(file)
    except OSError as error:
        raise system_error(error, file) from error
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
    try:
        replace_file(file, found.encode(text))
    except OSError as error:
        raise system_error(error, file) from error
    note(f"advise: {file}: {len(edits)} functions annotated")


def _known(path: str, source: str) -> Iterator[tuple[Kernel, Seen]]:
    """Yield the functions that nobody marked, as runs or calls in the text show them."""
    from advisor.cli.common import complain
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


# --- build ----------------------------------------------------------------------------------------
# ``advise build``: a distributed program that runs, of an annotated kernel.


def build(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Annotated Python.")],
    kernel: options.Kernel = None,
    define: options.Sizes = None,
    ranks: options.Ranks = None,
    plan: Annotated[
        Literal["as-written", "best"], option("--plan", "As it is, or as rules would have it.")
    ] = "as-written",
    to: Annotated[
        Literal["mpi", "dask"], option("--to", "Ranks, or chunks of its arrays.")
    ] = "mpi",
    machine: options.Machine = None,
    output: Annotated[str | None, options.output_file_option("program")] = None,
) -> int:
    """Write annotated kernels as a program for mpi4py or Dask."""
    from advisor.build.program import DASK
    from advisor.build.program import build as program_of
    from advisor.build.text import NotBuiltError
    from advisor.cli.subjects import kernels_in
    from advisor.ranking.built import BEST, on_ranks

    source = read_text(file)
    given = parse_bindings(define or (), ranks=ranks)
    found = [
        one for one in kernels_in(file, source, kernel, given) if one[0].arrays and one[0].asked
    ]
    if not found:
        raise wrong_use(f"{file}: no annotated kernel{f' called {kernel}' if kernel else ''}")
    sizes = _together(file, found)
    kernels, followed = [one for one, _ in found], ""
    if to == DASK and ranks is not None:
        # ranks are what decides how long chunks are
        kernels = [on_ranks(one, ranks) for one in kernels]
    if plan == BEST:
        kernels, followed = _best(file, kernels, sizes, machine, ranks)
    try:
        text = program_of(file, kernels, sizes, followed, to)
    except NotBuiltError as error:
        place = f"{file}:{error.span.start_line}" if error.span else file
        raise wrong_use(f"{place}: not built: {error.why}") from error
    write_result(text, output)
    return 0


def _together(
    file: str, found: list[tuple[Kernel, Mapping[str, int | float]]]
) -> dict[str, int | float]:
    """Return the sizes of all kernels of a file, which are those of one program."""
    sizes: dict[str, int | float] = {}
    for kernel, own in found:
        for name, value in own.items():
            if sizes.setdefault(name, value) != value:
                raise wrong_use(
                    f"{Path(file).name}: `{kernel.name}` has another {name} than the kernels above"
                    f" it: pass -D {name}=... or --kernel"
                )
    return sizes


def _best(
    file: str,
    kernels: list[Kernel],
    sizes: Mapping[str, int | float],
    machine: str | None,
    ranks: int | None,
) -> tuple[list[Kernel], str]:
    """Return kernels as the rules would have them on a machine, and what they say."""
    from advisor.cli.subjects import settings_of
    from advisor.ranking.built import best_plan, built_cost, on_ranks, plan_of
    from advisor.transform_registry import transforms
    from costdb.machines import load_machine

    chosen = load_machine(choose_machine(machine or settings_of(file).machine))
    made, said = [], []

    def price(kernel: Kernel) -> Costed | Missing:
        return built_cost(kernel, chosen, sizes)

    for kernel in kernels:
        here = kernel if ranks is None else on_ranks(kernel, ranks)
        plan = best_plan(plan_of(here, price), price, sizes, transforms())
        if plan.costed is None:
            raise wrong_use(
                f"{file}: `{kernel.name}` has no price on {chosen.name}: {plan.unknown}"
            )
        made.append(plan.kernel)
        said.append(f"{kernel.name}: {plan.told or 'as written'}")
    return made, f"as is best on {chosen.name}: {'; '.join(said)}"
