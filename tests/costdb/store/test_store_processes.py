"""Several real processes at once, and kills at any moment."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from costdb.store.database import reading

ROOT = Path(__file__).parents[3]

# Each acknowledged row is printed only after its transaction returned.
WRITER = """
import sys
from pathlib import Path
from costdb.store.database import writing
from costdb.store.database import Result, add_result

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with writing(path) as connection:
    for number in range(count):
        add_result(connection, Result(name, "validate", "smp", {"n": number, "us": [1.0] * 50}))
        print(number, flush=True)
"""


def start(path, name, count, log=Path(os.devnull)):
    with log.open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, str(count)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        )


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def kept(path):
    found = {}
    with reading(path) as connection:
        for name, document in connection.execute("SELECT machine, document FROM results"):
            found.setdefault(name, []).append(json.loads(document)["n"])
    return found


def assert_intact(path):
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "new" / "advise.sqlite3"
    writers = {name: start(path, name, 40) for name in ("a", "b", "c")}
    for writer in writers.values():
        _, errors = writer.communicate(timeout=60)
        assert (writer.returncode, errors) == (0, "")
    assert_intact(path)
    assert kept(path) == {name: [*range(40)] for name in writers}


def test_a_kill_at_any_moment_loses_nothing_acknowledged(tmp_path):
    path = tmp_path / "advise.sqlite3"
    chance = random.Random(20261121)
    acknowledged = {}
    for turn in range(3):
        names = (f"{turn}a", f"{turn}b")
        logs = {name: tmp_path / f"{name}.log" for name in names}
        writers = {name: start(path, name, 100_000, logs[name]) for name in names}
        wait_until(lambda logs=logs: all(log.stat().st_size for log in logs.values()))
        for name, writer in writers.items():
            time.sleep(chance.uniform(0, 0.1))
            writer.send_signal(signal.SIGKILL)
            _, errors = writer.communicate(timeout=60)
            assert (writer.returncode, errors) == (-signal.SIGKILL, "")
            acknowledged[name] = logs[name].read_text().count("\n")
    rows = kept(path)
    assert_intact(path)
    assert all(count > 0 for count in acknowledged.values())
    for name, count in acknowledged.items():
        # A transaction may have been committed and not yet acknowledged; none is half there.
        stored = len(rows[name])
        assert rows[name] == [*range(stored)]
        assert stored in (count, count + 1)


def test_a_kill_while_the_store_is_created_leaves_one_that_works(tmp_path):
    chance = random.Random(7)
    for turn in range(3):
        path = tmp_path / str(turn) / "advise.sqlite3"
        writer = start(path, "first", 1)
        while writer.poll() is None and not path.exists():
            time.sleep(0.0005)
        time.sleep(chance.uniform(0, 0.004))
        writer.kill()
        writer.communicate()
        survivor = start(path, "second", 1)
        _, errors = survivor.communicate(timeout=60)
        assert (survivor.returncode, errors) == (0, "")
        assert_intact(path)
        assert kept(path)["second"] == [0]
