"""The tables of the store."""

from __future__ import annotations

SCHEMA_VERSION = 5
APPLICATION_ID = 0x41445653  # "ADVS"

FIRST_TABLES = (
    """
    CREATE TABLE profiles (
        name TEXT PRIMARY KEY,
        document TEXT NOT NULL,
        origin TEXT NOT NULL,
        stored_at TEXT NOT NULL
    ) STRICT
    """,
    # Every circumstance is part of the key: what was measured otherwise is another record.
    """
    CREATE TABLE records (
        id INTEGER PRIMARY KEY,
        machine TEXT NOT NULL,
        library TEXT NOT NULL,
        library_version TEXT NOT NULL,
        dtype TEXT NOT NULL,
        ranks INTEGER NOT NULL,
        nodes INTEGER NOT NULL,
        operation TEXT NOT NULL,
        pinning TEXT NOT NULL,
        stride TEXT NOT NULL,
        date TEXT NOT NULL,
        code_version TEXT NOT NULL,
        UNIQUE (machine, library, library_version, dtype, ranks, nodes, operation,
                pinning, stride, date, code_version)
    ) STRICT
    """,
    """
    CREATE TABLE samples (
        id INTEGER PRIMARY KEY,
        record INTEGER NOT NULL REFERENCES records (id),
        launch INTEGER NOT NULL,
        point TEXT NOT NULL,
        microseconds TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX samples_of_record ON samples (record)",
    """
    CREATE TABLE fits (
        id INTEGER PRIMARY KEY,
        record INTEGER NOT NULL REFERENCES records (id),
        model TEXT NOT NULL,
        coefficients TEXT NOT NULL,
        ranges TEXT NOT NULL,
        statistics TEXT NOT NULL,
        residuals TEXT NOT NULL,
        stored_at TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX fits_of_record ON fits (record, model)",
    """
    CREATE TABLE evidence (
        id INTEGER PRIMARY KEY,
        machine TEXT NOT NULL,
        kernel TEXT NOT NULL,
        code TEXT NOT NULL,
        bindings TEXT NOT NULL,
        predicted TEXT NOT NULL,
        measured TEXT NOT NULL,
        circumstances TEXT NOT NULL,
        stored_at TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX evidence_of_machine ON evidence (machine, kernel)",
)

_OBSERVATIONS = (
    # What runs of programs showed; a name is that of a function, or the place of a call.
    """
    CREATE TABLE observations (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        document TEXT NOT NULL,
        program TEXT NOT NULL,
        stored_at TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX observations_of_path ON observations (path, kind, name)",
)

_RUNS = (
    # Calibrations, so that one that was interrupted can be resumed.
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        machine TEXT NOT NULL,
        effort TEXT NOT NULL,
        ranks INTEGER NOT NULL,
        code_version TEXT NOT NULL,
        sections TEXT NOT NULL,
        finished INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX runs_of_machine ON runs (machine)",
    """
    CREATE TABLE launches (
        run TEXT NOT NULL REFERENCES runs (id),
        section TEXT NOT NULL,
        launch INTEGER NOT NULL,
        setting TEXT NOT NULL,
        finished INTEGER NOT NULL,
        PRIMARY KEY (run, section, launch)
    ) STRICT
    """,
)

_RESULTS = (
    # What validations and verifications said of a machine's predictions, as documents.
    """
    CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        machine TEXT NOT NULL,
        command TEXT NOT NULL,
        subject TEXT NOT NULL,
        document TEXT NOT NULL,
        stored_at TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX results_of_machine ON results (machine, command, subject)",
)

_BESIDE = (
    # What a sentinel took beside each sample of the row; samples of older versions have none.
    "ALTER TABLE samples ADD COLUMN beside TEXT",
)

MIGRATIONS = {1: _OBSERVATIONS, 2: _RUNS, 3: _RESULTS, 4: _BESIDE}
"""By version: what makes the tables of the next one of them."""

TABLES = (*FIRST_TABLES, *_OBSERVATIONS, *_RUNS, *_RESULTS, *_BESIDE)
