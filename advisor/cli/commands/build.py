"""``advise build``: a distributed program that runs, of an annotated kernel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from advisor.cli import options
from advisor.cli.common import parse_bindings, read_text, write_result
from advisor.cli.options import option
from advisor.config.files import choose_machine, wrong_use

if TYPE_CHECKING:
    from advisor.ir.kernel import Kernel
    from advisor.ranking.compare import Costed
    from costdb.evaluate import Missing


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
