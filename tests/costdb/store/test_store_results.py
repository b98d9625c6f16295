"""Results in the store: the newest of each subject, and whether the profile is still the same."""

import sqlite3

import pytest

from costdb.store.database import reading, writing
from costdb.store.extract import FIRST_TABLES, MIGRATIONS, SCHEMA_VERSION
from costdb.store.place import StoreError, store_path
from costdb.store.results import Result, add_result, newest_results


@pytest.fixture(autouse=True)
def data_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))


def kept(machine="here"):
    with reading(store_path()) as connection:
        return newest_results(connection, machine)


def add(*results):
    with writing(store_path()) as connection:
        for one in results:
            add_result(connection, one)


def test_numbers_that_are_none_are_refused_and_nothing_is_stored():
    with pytest.raises(StoreError, match="not finite"):
        add(Result("here", "verify", "k.py", {"error": float("inf")}))
    assert kept() == ()


def test_a_store_of_an_older_version_has_none_until_something_is_written():
    add(Result("here", "validate", "smp", {}))
    with sqlite3.connect(store_path()) as connection:
        connection.execute("DROP TABLE results")
        connection.execute("ALTER TABLE samples DROP COLUMN beside")
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    assert kept() == ()
    add(Result("here", "validate", "lines", {}))
    assert [one.subject for one in kept()] == ["lines"]


def test_every_older_version_has_a_way_to_this_one():
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))
    connection = sqlite3.connect(":memory:")
    for statement in (
        *FIRST_TABLES,
        *(one for old in sorted(MIGRATIONS) for one in MIGRATIONS[old]),
    ):
        connection.execute(statement)
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert {"profiles", "samples", "evidence", "observations", "runs", "results"} <= {
        name for (name,) in names
    }
    connection.close()
