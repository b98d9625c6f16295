"""``advise check``: what could be faster in these files, and by how much."""

# Annotations are not kept as text: Typer would compile each of them at every start.
from typing import Annotated

import typer

from advisor.cli import options
from advisor.cli.checking import Check
from advisor.cli.common import STANDARD_STREAM, parse_bindings, positive_number
from advisor.cli.options import option
from advisor.cli.scope import make_scope, python_files, show
from advisor.config.effective import split_codes
from advisor.config.files import Layer, OutputFormat, wrong_use
from advisor.engine import PLAIN_GAIN
from advisor.report.model import SHOWS_DETAILS


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", help="Files, directories, or - for standard input."),
    ] = None,
    machine: options.Machine = None,
    define: options.Sizes = None,
    ranks: options.Ranks = None,
    select: Annotated[
        list[str] | None,
        options.codes_option("select", "Only these rules: codes or prefixes, by commas."),
    ] = None,
    ignore: Annotated[list[str] | None, options.codes_option("ignore", "Not these rules.")] = None,
    extend_select: Annotated[
        list[str] | None, options.codes_option("extend-select", "Also these rules.")
    ] = None,
    fix: Annotated[bool, option("--fix", "Apply the safe fixes.")] = False,
    unsafe_fixes: Annotated[
        bool, option("--unsafe-fixes", "With --fix or --diff: the unsafe fixes as well.")
    ] = False,
    diff: Annotated[
        bool, option("--diff", "Show what --fix would change, and change nothing.")
    ] = False,
    output_format: Annotated[OutputFormat | None, options.REPORTED] = None,
    output: options.ReportFile = None,
    statistics: Annotated[
        bool, option("--statistics", "Count findings by rule instead of showing them.")
    ] = False,
    exit_zero: Annotated[
        bool, option("--exit-zero", "Exit with 0 even when there are findings.")
    ] = False,
    fail_above: Annotated[
        str | None,
        option(
            "--fail-above",
            "Exit with 1 only for a gain whose interval lies above this speed-up.",
            "SPEEDUP",
            env=True,
        ),
    ] = None,
    min_speedup: Annotated[
        str | None,
        option(
            "--min-speedup",
            f"Leave out smaller predicted gains; {PLAIN_GAIN} when nothing is said.",
            "SPEEDUP",
            env=True,
        ),
    ] = None,
    everything: Annotated[bool, option("--all", "Show also what saves too little to matter.")] = (
        False
    ),
    measure: Annotated[
        bool,
        option(
            "--measure",
            "First time kernels and rewrites here, as advise measure does, what is not yet.",
        ),
    ] = False,
    baseline: Annotated[
        str | None,
        option("--baseline", "Leave out the findings accepted in this file.", "FILE", env=True),
    ] = None,
    write_baseline: Annotated[
        str | None, option("--write-baseline", "Accept the present findings in this file.", "FILE")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        option("--exclude", "Leave out files and folders that match, also.", "PATTERN"),
    ] = None,
    force_exclude: Annotated[
        bool,
        option("--force-exclude", "Leave excluded files out even when they are named.", env=True),
    ] = False,
    named_machine: Annotated[
        bool,
        option(
            "--named-machine",
            "Check nothing, and say so, where no option or configuration names a machine.",
        ),
    ] = False,
    config: options.ConfigFile = None,
    isolated: options.Isolated = False,
    show_settings: Annotated[
        bool, option("--show-settings", "Show what holds for the first file, and check none.")
    ] = False,
    stdin_filename: Annotated[
        str | None, option("--stdin-filename", "Name to report for -.", "PATH")
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "-j --jobs",
            "Processes to check with; as many as are worth it when nothing is said.",
            "N",
            env=True,
            min=1,
        ),
    ] = None,
    no_cache: Annotated[
        bool,
        option("--no-cache", "Neither read nor keep answers of earlier runs.", env=True),
    ] = False,
    cache_dir: options.CacheFolder = None,
) -> None:
    """Say what could be faster in Python files, and by how much."""
    given = tuple(paths or ())
    if not given:
        raise wrong_use("no path given: name a file or a directory, or - for standard input")
    if STANDARD_STREAM in given and len(given) > 1:
        raise wrong_use("- (standard input) cannot be combined with other paths")
    if unsafe_fixes and not (fix or diff):
        raise wrong_use("--unsafe-fixes changes nothing by itself: add --fix or --diff")
    if baseline and write_baseline:
        raise wrong_use("--baseline and --write-baseline exclude each other")
    if write_baseline and diff:
        raise wrong_use("--write-baseline and --diff exclude each other")
    layer = Layer(
        machine=machine or None,
        sizes=parse_bindings(define or (), ranks=ranks),
        select=_codes(select),
        ignore=_codes(ignore),
        extend_select=_codes(extend_select),
        min_speedup=_ratio(min_speedup, "--min-speedup"),
        fail_above=_ratio(fail_above, "--fail-above"),
    )
    scope = make_scope(
        layer,
        config=config,
        isolated=isolated,
        exclude=exclude or (),
        force=force_exclude,
        cache=None if no_cache else (cache_dir or ""),
    )
    chosen_format = output_format or scope.configuration.output_format or "full"
    if statistics and chosen_format not in ("full", "concise", "json"):
        raise wrong_use(f"--statistics has no {chosen_format} form: use full, concise or json")
    # an explanation takes the formulas over all sizes, which a list of findings does without
    scope.resolver.everything = everything
    scope.resolver.details = chosen_format in SHOWS_DETAILS
    scope.resolver.named_only = named_machine
    name = stdin_filename or "<stdin>"
    if show_settings:
        show(given, scope, chosen_format, name)
        return
    if measure:
        from advisor.cli.commands.verify import measure_kernels

        named = [path for path in given if path != STANDARD_STREAM]
        files = python_files(named, lambda error: None, scope.excluded, force=force_exclude)
        measure_kernels(tuple(files), layer.sizes)
    asked = Check(
        given,
        scope,
        given=tuple(layer.sizes),
        fix=fix and not diff,
        diff=diff,
        unsafe_fixes=unsafe_fixes,
        output_format=chosen_format,
        output=output,
        statistics=statistics,
        exit_zero=exit_zero,
        stdin_filename=name,
        jobs=jobs,
        baseline=baseline,
        write_baseline=write_baseline,
    )
    raise typer.Exit(asked.run())


def _codes(given: list[str] | None) -> tuple[str, ...] | None:
    return split_codes(given) if given else None


def _ratio(text: str | None, option: str) -> float | None:
    return None if text is None else float(positive_number(text, option))
