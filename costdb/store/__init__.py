"""The store: imported profiles, calibration records, fits and evidence, in one SQLite file.

Only the location and the read-only look-ups by name are imported here, so that asking for a
machine that is not built in stays cheap.
"""

from costdb.store.evidence import (
    StoredEvidence,
    stored_evidence,
    stored_functions,
    stored_messages,
    stored_profile,
    stored_profile_names,
)
from costdb.store.place import StoreError, store_path

__all__ = [
    "StoreError",
    "StoredEvidence",
    "store_path",
    "stored_evidence",
    "stored_functions",
    "stored_messages",
    "stored_profile",
    "stored_profile_names",
]
