"""``advise machine``: the machines that are known, in and out, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli import options
from advisor.cli.common import (
    JSON,
    TEXT,
    WRONG_USE,
    complain,
    note,
    text_style,
    write_out,
    write_problems,
    write_result,
)
from advisor.cli.options import option
from advisor.config.files import wrong_use
from advisor.report.style import json_text

_Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A name, or a profile.json.",
        autocompletion=options.machines,
    ),
]
_File = Annotated[str, typer.Argument(metavar="FILE", help="A profile as JSON.")]


machine = typer.Typer(
    no_args_is_help=False,
    rich_markup_mode=None,
    help="List, show, check, import, remove and export machines.",
)


@machine.command("list")
def _list(output_format: options.TextOrJson = TEXT) -> None:
    """List all machines: built-in and imported."""
    from advisor.report.machines import list_as_json, list_as_text
    from costdb.machines import Machine, MachineError, load_machine, machine_names

    machines: list[Machine] = []
    broken = False
    for name in machine_names():
        try:
            machines.append(load_machine(name))
        except MachineError as error:
            broken = True
            complain(f"advise: {error}")
    style = text_style(None)
    write_out(list_as_json(machines) if output_format == JSON else list_as_text(machines, style))
    if broken:
        raise typer.Exit(WRONG_USE)


@machine.command("show")
def _show(name: _Name, output_format: options.TextOrJson = TEXT) -> None:
    """Show every number of a machine, and where it is from."""
    from advisor.report.machines import machine_as_json, machine_as_text
    from costdb.machines import load_machine
    from costdb.store.database import reading
    from costdb.store.place import store_path
    from costdb.store.records import newest_results

    machine = load_machine(name)
    with reading(store_path()) as connection:
        found = newest_results(connection, machine.name)
    as_json, style = output_format == JSON, text_style(None)
    write_out(
        machine_as_json(machine, found) if as_json else machine_as_text(machine, style, found)
    )


@machine.command("validate")
def _validate(file: _File, output_format: options.TextOrJson = TEXT) -> int:
    """Say all that is wrong with a profile."""
    from costdb.machines import read_document
    from costdb.profile_check import check_profile

    problems = check_profile(read_document(Path(file)), file)
    return write_problems(problems, {"file": file}, output_format, None)


@machine.command("import")
def _import(
    file: _File,
    replace: Annotated[
        bool, option("--replace", "Replace a machine that was imported before.")
    ] = False,
    output_format: options.TextOrJson = TEXT,
) -> None:
    """Check a profile and keep it as a machine of your own."""
    from costdb.profile_check import import_profile
    from costdb.store.place import store_path

    machine = import_profile(Path(file), replace=replace)
    if output_format == JSON:
        stored = {"imported": machine.name, "store": str(store_path())}
        write_out(json_text({"schema_version": 1, **stored}))
    else:
        note(f"imported {machine.name} into {store_path()}")


@machine.command("remove")
def _remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name.", autocompletion=options.machines)
    ],
) -> None:
    """Forget a machine that was imported or calibrated."""
    from costdb.machines import built_in_names, load_machine
    from costdb.profile_check import remove_profile
    from costdb.store.place import store_path

    if name in built_in_names():
        raise wrong_use(f'"{name}" is a built-in machine, which cannot be removed')
    if not remove_profile(name):
        load_machine(name)  # says what is like it
        raise wrong_use(f"{name}: a file, which no store holds")
    note(f"removed {name} from {store_path()}")


@machine.command("export")
def _export(
    name: _Name,
    output: Annotated[str | None, options.output_file_option("profile")] = None,
    output_format: options.Json = "json",
) -> None:
    """Write the profile of a machine as JSON."""
    from costdb.machines import load_machine

    write_result(json_text(dict(load_machine(name).document), ascii_only=False), output)
    if output is not None and output.endswith(".json"):
        note(f'machine = "{output}" in [tool.advise] of pyproject.toml beside it makes all use it')
