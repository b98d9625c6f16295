"""Machines: profiles as documents, and their numbers as quantities.

A profile is one JSON document. Built-in ones come with :mod:`machine_profiles`, a user's own
from the store or from a path. Loading makes only the cheap checks that keep a wrong number out
of a prediction; :mod:`costdb.profile_check` holds the full ones.
"""

from costdb.machines.documents import (
    PROFILE_SCHEMA_VERSION,
    Json,
    MachineError,
    UnknownMachineError,
    is_machine_name,
    parse_document,
    read_document,
)
from costdb.machines.machine import (
    BUILT_IN,
    CALIBRATED,
    LEFT_OUT,
    RESIDUAL,
    Machine,
    built_in_names,
    default_machine,
    is_residual,
    load_machine,
    machine_names,
    machine_of,
    quantity_of,
)

__all__ = [
    "BUILT_IN",
    "CALIBRATED",
    "LEFT_OUT",
    "PROFILE_SCHEMA_VERSION",
    "RESIDUAL",
    "Json",
    "Machine",
    "MachineError",
    "UnknownMachineError",
    "built_in_names",
    "default_machine",
    "is_machine_name",
    "is_residual",
    "load_machine",
    "machine_names",
    "machine_of",
    "parse_document",
    "quantity_of",
    "read_document",
]
