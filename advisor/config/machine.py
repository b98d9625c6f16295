"""Which machine is meant: the one that is named, or the calibrated one."""

from __future__ import annotations

from advisor.config.layer import wrong_use

MACHINE_VARIABLE = "ADVISE_MACHINE"


def choose_machine(name: str | None) -> str:
    """Return the name of a machine whose profile loads: the calibrated one where none is named.

    Raises
    ------
    CommandError
        When none is named nor calibrated, it is unknown, or its profile is broken.
    """
    from costdb.machines import MachineError, default_machine, load_machine, machine_names
    from costdb.store.place import StoreError

    try:
        chosen = name or default_machine()
        if chosen is None:
            known = ", ".join(machine_names())
            raise wrong_use(
                f"no machine chosen: give --machine NAME, set {MACHINE_VARIABLE}, write machine ="
                " NAME into [tool.advise] of pyproject.toml, or run 'advise calibrate' once to make"
                f" this machine the default; known: {known}"
            )
        load_machine(chosen)
    except (MachineError, StoreError) as error:
        raise wrong_use(str(error)) from error
    return chosen
