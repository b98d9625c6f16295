"""Machines: profiles as documents, and their numbers as quantities.

A profile is one JSON document. Built-in ones come with :mod:`machine_profiles`, a user's own
from the store or from a path. Loading makes only the cheap checks that keep a wrong number out
of a prediction; :mod:`costdb.profile_check` holds the full ones.
"""

from costdb.machines.documents import PROFILE_SCHEMA_VERSION as PROFILE_SCHEMA_VERSION
from costdb.machines.documents import Json as Json
from costdb.machines.documents import MachineError as MachineError
from costdb.machines.documents import UnknownMachineError as UnknownMachineError
from costdb.machines.documents import is_machine_name as is_machine_name
from costdb.machines.documents import parse_document as parse_document
from costdb.machines.documents import read_document as read_document
from costdb.machines.machine import BUILT_IN as BUILT_IN
from costdb.machines.machine import CALIBRATED as CALIBRATED
from costdb.machines.machine import LEFT_OUT as LEFT_OUT
from costdb.machines.machine import RESIDUAL as RESIDUAL
from costdb.machines.machine import SHIPPED as SHIPPED
from costdb.machines.machine import Machine as Machine
from costdb.machines.machine import built_in_names as built_in_names
from costdb.machines.machine import default_machine as default_machine
from costdb.machines.machine import is_residual as is_residual
from costdb.machines.machine import load_machine as load_machine
from costdb.machines.machine import machine_names as machine_names
from costdb.machines.machine import machine_of as machine_of
from costdb.machines.machine import quantity_of as quantity_of
