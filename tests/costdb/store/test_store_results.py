"""Results in the store: the newest of each subject, and whether the profile is still the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costdb.documents import remove_profile
from costdb.evaluate import Ratio
from costdb.store.database import (
    Result,
    add_observations,
    add_result,
    newest_results,
    reading,
    transaction,
    writing,
)
from costdb.store.evidence import (
    Evidence,
    add_evidence,
    evidence_in,
    stored_evidence,
    stored_observations,
    stored_profile_names,
)
from costdb.store.place import StoreError
from tests.stored import evidence_on


def kept(machine="here"):
    with reading() as connection:
        return newest_results(connection, machine)


def add(*results):
    with writing() as connection:
        for one in results:
            add_result(connection, one)


def test_numbers_that_are_none_are_refused_and_nothing_is_stored():
    with pytest.raises(StoreError, match="not finite"):
        add(Result("here", "verify", "k.py", {"error": float("inf")}))
    assert kept() == ()


# Look-ups say what the store says, whatever was written when.


RATIO = Ratio(1.0, 2.0, 3.0)


@pytest.fixture(autouse=True)
def data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path))
    return tmp_path


def add_profile(name: str) -> None:
    with writing() as connection, transaction(connection):
        connection.execute("INSERT OR REPLACE INTO profiles VALUES (?, '{}', '', '')", (name,))


def evidence(machine: str, size: int, ranks: str, measured: float) -> Evidence:
    ratio = Ratio(measured, measured, measured)
    return Evidence(machine, "k", "ADV201", {"N": size}, RATIO, ratio, {"ranks": ranks})


def test_nothing_is_created_where_there_is_no_store(data_directory: Path) -> None:
    assert stored_profile_names() == () and stored_evidence("here") == ()
    assert not list(data_directory.iterdir())


names = st.sampled_from(("one", "two", "here"))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), names),
        st.tuples(st.just("remove"), names),
        st.tuples(st.just("evidence"), st.integers(1, 3)),
        st.tuples(st.just("function"), names),
        st.tuples(st.just("look"), names),
    ),
    max_size=8,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps)
def test_readers_see_what_was_written_last(
    tmp_path: Path, taken: list[tuple[str, str | int]]
) -> None:
    for file in tmp_path.iterdir():
        file.unlink()
    profiles: set[str] = set()
    functions: list[str] = []
    measured: dict[int, float] = {}
    for number, (step, value) in enumerate(taken):
        if step == "add":
            add_profile(str(value))
            profiles.add(str(value))
        elif step == "remove":
            remove_profile(str(value))
            profiles.discard(str(value))
        elif step == "evidence":
            size = int(value)
            with writing() as connection:
                add_evidence(connection, evidence("here", size, "1", 1.0 + number))
            measured.pop(size, None)
            measured[size] = 1.0 + number
        elif step == "function":
            with writing() as connection:
                add_observations(connection, "p", "function", [(str(value), "f", {"n": number})])
            functions = [one for one in functions if one != value] + [str(value)]
        assert set(stored_profile_names()) == profiles
        assert [path for kind, path, _ in stored_observations() if kind == "function"] == functions
        known = list(map(evidence_in, stored_evidence("here")))
        found = {int(one.bindings["N"]): one.measured.mid for one in known}
        assert found == measured and list(found) == list(measured)


def test_without_a_store_no_database_is_opened() -> None:
    program = (
        "import sys; from costdb.store.evidence import stored_profile_names, stored_evidence\n"
        "print(stored_profile_names(), stored_evidence('here'), 'sqlite3' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split("\n")[0] == "() () False"


def test_of_equal_runs_the_newest_is_kept_and_others_stay_apart() -> None:
    given_rows = [
        evidence("here", 1, "1", 1.5),
        evidence("here", 1, "2", 1.6),
        evidence("here", 1, "1", 1.7),
        evidence("there", 1, "1", 1.8),
    ]
    with writing() as connection:
        for one in given_rows:
            add_evidence(connection, one)
    assert list(map(evidence_in, stored_evidence("here"))) == [given_rows[1], given_rows[2]]
    with reading() as connection:
        assert evidence_on(connection, "here") == tuple(given_rows[:3])
