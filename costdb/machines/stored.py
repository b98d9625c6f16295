"""A user's own profiles, kept after the full check."""

from __future__ import annotations

import json
from pathlib import Path

from costdb.machines.documents import Json, MachineError, read_document
from costdb.machines.machine import Machine, built_in_names, machine_of
from costdb.store.database import Report, now, report_to_stderr, transaction, writing
from costdb.store.place import store_path


def import_profile(
    path: Path, *, replace: bool = False, report: Report = report_to_stderr
) -> Machine:
    """Check a profile in full and keep it in the store under its own name.

    Raises
    ------
    MachineError
        Unreadable, not valid, named like a built-in machine, or already there without `replace`.
    StoreError
        The store cannot be written.
    """
    from costdb.profile_check import check_profile

    document = read_document(path)
    problems = check_profile(document, str(path))
    if problems:
        raise MachineError(problems[0])
    return store_profile(document, str(path), replace=replace, report=report)


def store_profile(
    document: dict[str, Json],
    origin: str,
    *,
    replace: bool = False,
    report: Report = report_to_stderr,
) -> Machine:
    """Keep a checked document in the store; see :func:`import_profile` for the errors."""
    machine = machine_of(document, origin)
    if machine.name in built_in_names():
        raise MachineError(f'{origin}: /name: "{machine.name}" is a built-in machine')
    row = (
        machine.name,
        json.dumps(document, allow_nan=False),
        origin,
        now(),
    )
    statement = "INSERT OR REPLACE" if replace else "INSERT OR IGNORE"
    with writing(store_path(), report) as connection, transaction(connection):
        done = connection.execute(f"{statement} INTO profiles VALUES (?, ?, ?, ?)", row)
    if done.rowcount != 1:
        raise MachineError(
            f'{origin}: /name: a machine "{machine.name}" was imported before; '
            "replacing it must be asked for"
        )
    return machine


def remove_profile(name: str, *, report: Report = report_to_stderr) -> bool:
    """Forget an imported or calibrated profile; tell whether there was one.

    What a calibration measured is kept, as it is when the profile is made anew.
    """
    path = store_path()
    if not path.is_file():
        return False
    with writing(path, report) as connection, transaction(connection):
        done = connection.execute("DELETE FROM profiles WHERE name = ?", (name,))
    return done.rowcount == 1
