import json
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costdb.documents import import_profile
from costdb.evaluate import Ratio
from costdb.machines import MachineError, load_machine, machine_names
from costdb.store.database import (
    MEASURED,
    OLDEST_VERSION,
    SCHEMA_VERSION,
    Result,
    add_result,
    newest_document,
    reading,
    transaction,
    writing,
)
from costdb.store.evidence import Evidence, add_evidence
from costdb.store.place import StoreError, store_path
from tests.stored import evidence_on

FOUND = {"launches": [[1.5, 1.25], [9.0]]}


@pytest.fixture(autouse=True)
def data_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def files(directory):
    return sorted(entry.name for entry in directory.iterdir())


def add(connection, document=FOUND):
    add_result(connection, Result("here", MEASURED, "arrays", document))


def found(connection):
    return newest_document(connection, "here", MEASURED, "arrays")


def fill(path=None):
    with writing(path or store_path()) as connection:
        add(connection)


def test_the_environment_names_the_directory(data_directory, monkeypatch):
    assert store_path().parent == data_directory
    monkeypatch.delenv("ADVISE_DATA_DIR")
    assert "kernel-advisor" in store_path().parts


def test_documents_and_evidence_come_back_as_they_went_in():
    evidence = Evidence(
        "here", "box_sum", "ADV201", {"N": 9}, Ratio(1, 2, 3), Ratio(1.5, 1.6, 1.7), {"date": "d"}
    )
    with writing() as connection:
        add(connection, {})
        add(connection)
        add_evidence(connection, evidence)
    with reading() as connection:
        assert found(connection) == FOUND
        assert newest_document(connection, "here", MEASURED, "loops") is None
        assert evidence_on(connection, "here") == (evidence,)
        assert evidence_on(connection, "elsewhere") == ()


def test_a_transaction_that_fails_leaves_no_trace():
    with writing() as connection:
        with pytest.raises(RuntimeError), transaction(connection):
            connection.execute("INSERT INTO profiles VALUES ('a', '{}', 'x', 'now')")
            raise RuntimeError
        assert connection.execute("SELECT count(*) FROM profiles").fetchone() == (0,)


def test_a_callers_own_errors_are_its_own():
    with pytest.raises(FileNotFoundError), writing():
        raise FileNotFoundError
    with pytest.raises(FileNotFoundError), reading():
        raise FileNotFoundError


WRITTEN = ["advise.sqlite3"]


def test_reading_creates_nothing_and_leaves_nothing(data_directory):
    with reading() as connection:
        assert found(connection) is None
    assert not data_directory.exists()
    fill()
    assert files(data_directory) == WRITTEN
    before = store_path().read_bytes()
    with reading() as connection:
        assert found(connection) == FOUND
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM results")
    assert files(data_directory) == WRITTEN
    assert store_path().read_bytes() == before


def test_readers_see_what_is_committed_while_one_writes():
    fill()
    with writing() as writer, transaction(writer):
        writer.execute("DELETE FROM results")
        with reading() as reader:
            assert found(reader) == FOUND
    with reading() as reader:
        assert found(reader) is None


def test_an_empty_file_is_an_empty_store(data_directory):
    data_directory.mkdir()
    store_path().touch()
    with reading() as connection:
        assert found(connection) is None
    fill()
    with reading() as connection:
        assert found(connection) == FOUND


def overwritten(path, offset, data):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


DAMAGE = {
    "header": lambda path: overwritten(path, 0, b"not a database at all"),
    "page": lambda path: overwritten(path, 4096, b"\xaa" * 4096),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "text": lambda path: path.write_text("hello\n" * 2000),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_line_that_says_what_to_do_and_touches_nothing(data_directory, kind):
    fill()
    DAMAGE[kind](store_path())
    before = store_path().read_bytes()
    with pytest.raises(StoreError) as refusal, reading() as connection:
        connection.execute("SELECT * FROM profiles").fetchall()
        found(connection)
    assert "\n" not in str(refusal.value)
    assert "move it away to begin afresh" in str(refusal.value)
    assert store_path().read_bytes() == before


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 40_000), st.binary(min_size=1, max_size=200))
def test_random_damage_never_crashes(tmp_path, offset, data):
    path = tmp_path / "random" / "advise.sqlite3"
    for old in path.parent.glob("*"):
        old.unlink()
    fill(path)
    overwritten(path, offset, data)
    try:
        with writing(path) as connection:
            add(connection)
            found(connection)
    except StoreError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("version", "why"),
    [(SCHEMA_VERSION + 1, "newer"), (OLDEST_VERSION - 1, "no more read"), (-1, "no more read")],
)
def test_a_store_of_another_time_is_refused_and_left_alone(version, why):
    fill()
    with sqlite3.connect(store_path()) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = store_path().read_bytes()
    for use in (reading, writing):
        with pytest.raises(StoreError, match=why), use(store_path()):
            pass
    assert store_path().read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(data_directory):
    data_directory.mkdir()
    with sqlite3.connect(store_path()) as connection:
        connection.execute("CREATE TABLE mail (text)")
    connection.close()
    before = store_path().read_bytes()
    for use in (reading, writing):
        with pytest.raises(StoreError, match="not a store"), use(store_path()):
            pass
    assert store_path().read_bytes() == before


def test_a_directory_that_cannot_be_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "file" / "data"))
    with pytest.raises(StoreError) as refusal, writing():
        pass
    assert "\n" not in str(refusal.value)
    assert machine_names()


def profile(tmp_path, **changes):
    document = json.loads(json.dumps(dict(load_machine("t3e").document)))
    document |= {"name": "mine", "title": "My machine"} | changes
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document))
    return path, document


def test_an_invalid_profile_is_refused_and_nothing_is_kept(tmp_path, data_directory):
    path, _ = profile(tmp_path, lines={"message": {}})
    with pytest.raises(MachineError, match="/lines/message") as refusal:
        import_profile(path)
    assert str(refusal.value).startswith(str(path))
    assert not data_directory.exists()


def test_no_import_shadows_a_built_in_machine(tmp_path, data_directory):
    path, _ = profile(tmp_path, name="t3e")
    with pytest.raises(MachineError, match='"t3e" is a built-in machine'):
        import_profile(path, replace=True)
    assert not data_directory.exists()
