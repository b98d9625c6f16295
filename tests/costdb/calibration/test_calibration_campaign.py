"""Calibrations with real processes: kept, alone, and a profile in the end."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from costdb.calibration import campaign
from costdb.calibration.campaign import (
    LAUNCHES,
    Request,
    disturbances,
    document_of,
    measured_of,
)
from costdb.calibration.section import (
    SECTIONS,
    Bystanders,
    CalibrationError,
    Effort,
    Host,
    check_names,
    find_section,
)
from costdb.calibration.worker import PACES, launched_ranks
from costdb.documents import check_profile
from costdb.machines import load_machine
from costdb.store.database import alone, reading
from costdb.store.place import StoreError, store_path
from tests.ranks import on_ranks

HERE = Path(__file__).parent
ALONE, TOGETHER = "calibration_fake:ALONE", "calibration_fake:TOGETHER"
BROKEN, UNFIT = "calibration_fake:BROKEN", "calibration_fake:UNFIT"
EMPTY, FAULTY = "calibration_fake:EMPTY", "calibration_fake:FAULTY"

HOST = Host(3, (), 64, "Made up", "Linux")
DRIVER = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from costdb.calibration.campaign import Request, calibrate
from costdb.calibration.section import Effort
import test_calibration_campaign as here
print("begun", flush=True)
calibrate(Request("here", Effort.QUICK, ({ALONE!r},), seconds=6), here.Told(), here.HOST)
print("stored", flush=True)
"""


@dataclass
class Told:
    lines: list = field(default_factory=list)
    stop_at: int = 0

    def measuring(self, title, launch, launches):
        self.lines.append(f"{title} {launch}/{launches}")
        if len(self.lines) == self.stop_at:
            raise KeyboardInterrupt

    def progress(self, share):
        assert 0 <= share <= 1

    def failed(self, reason):
        self.lines.append(reason)


@pytest.fixture(autouse=True)
def data_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    return tmp_path / "data"


@pytest.fixture
def two_launches(monkeypatch):
    monkeypatch.setitem(LAUNCHES, Effort.QUICK, 2)


def calibrate(request, watcher):
    return campaign.calibrate(request, watcher, HOST)


def quick(*sections, **options):
    return Request("here", Effort.QUICK, sections, seconds=8, ranks=2, **options)


def stored(name, machine="here"):
    with reading() as connection:
        return measured_of(connection, machine, name)


@pytest.mark.usefixtures("two_launches")
def test_samples_of_all_launches_are_kept_and_make_a_checked_profile():
    told = Told()
    made = calibrate(quick(ALONE, TOGETHER), told)
    assert told.lines == [f"sums of lists {at}/2" for at in (1, 2, 1, 2)]
    assert check_profile(dict(made.document), "here") == []
    pace = PACES[Effort.QUICK]
    for name, with_mpi in ((ALONE, False), (TOGETHER, True)):
        known = stored(name)
        assert [features["elements"] for _, features, _ in known.points] == [100, 200, 300, 400]
        for launch in known.launches:
            said = launch["setting"]
            assert (said["ranks"], said["library"]) == ((2, "MPICH") if with_mpi else (1, "numpy"))
            assert len(launch["visits"]) == pace.rounds * 4
        assert len(known.launches) == LAUNCHES[Effort.QUICK]
    timings = made.sections[0].timings
    assert [one.point.features["elements"] for one in timings if one.point.held_out] == [300]
    visit = pace.samples_of(slow=False)
    for one in timings:
        shape = [[len(taken) for taken in launch] for launch in one.launches_us]
        assert shape == [[visit] * pace.rounds] * 2
    machine = load_machine("here")
    assert machine.library.startswith("MPICH ")
    slope = machine.quantity("hardware", "sum_together_us")
    assert slope is not None
    assert "advise calibrate --name here --quick" in slope.source


@pytest.mark.usefixtures("two_launches")
def test_an_interruption_keeps_the_sections_that_were_measured():
    with pytest.raises(KeyboardInterrupt):
        calibrate(quick(ALONE, TOGETHER), Told(stop_at=4))
    assert stored(ALONE) is not None
    assert stored(TOGETHER) is None
    made = calibrate(quick(TOGETHER), Told())
    assert made.document["hardware"].keys() >= {"sum_together_us"}


def test_sections_measured_at_other_times_keep_their_own_source():
    (older,) = calibrate(quick(ALONE), Told()).sections
    (newer,) = calibrate(quick(TOGETHER), Told()).sections
    both = [replace(older, name="alone"), replace(newer, name="together")]
    begun = newer.measured.begun
    document = document_of("here", begun, both, [], HOST)
    sources = document["sources"]
    assert older.measured.begun in sources["calibration.alone"]
    assert begun in sources["calibration"]
    facts = document["hardware"]
    assert facts["sum_alone_us"]["source"] == "calibration.alone"
    assert facts["sum_together_us"]["source"] == "calibration"
    assert check_profile(document, "here") == []
    # what two sections state alike stands once, what they state otherwise is a contradiction
    assert document_of("here", begun, [both[0], both[0]], [], HOST)["hardware"]["sum_alone_us"]
    parts = deepcopy(dict(older.fitted.parts))
    parts["hardware"]["sum_alone_us"]["value"] += 1
    otherwise = replace(both[0], fitted=replace(older.fitted, parts=parts))
    with pytest.raises(CalibrationError, match="/hardware/sum_alone_us again"):
        document_of("here", begun, [both[0], otherwise], [], HOST)


def test_a_section_that_fails_leaves_the_others_and_says_why():
    told = Told()
    made = calibrate(quick(ALONE, BROKEN, UNFIT, EMPTY, FAULTY), told)
    failures = [line for line in told.lines if "ended early" in line]
    assert len(failures) == 1
    assert "RuntimeError: the sensor is broken" in failures[0]
    assert [(one.name, one.reason) for one in made.skipped] == [
        (UNFIT, "measured, but not fitted: no model fits"),
        (EMPTY, "nothing was measured in its time"),
        (FAULTY, "measured, but not fitted: TypeError('a fault')"),
    ]
    assert any("no model fits" in note for note in made.document["notes"])
    told = Told()
    with pytest.raises(CalibrationError, match="no section was measured"):
        calibrate(quick(BROKEN), told)


def test_a_launch_without_samples_is_no_newer_measurement():
    calibrate(quick(ALONE), Told())
    told = Told()
    hurried = replace(quick(ALONE), seconds=1e-6)
    (section,) = calibrate(quick(ALONE), Told()).sections
    with pytest.raises(CalibrationError, match="no section was measured"):
        calibrate(replace(hurried, machine="elsewhere"), told)
    assert any("time was over" in line for line in told.lines)
    calibrate(hurried, Told())
    assert stored(ALONE) == section.measured


def test_two_at_once_do_not_mix():
    with alone(), pytest.raises(StoreError, match="another calibration is running"):
        calibrate(quick(ALONE), Told())
    assert not store_path().exists()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ends = [process.communicate(timeout=60) for process in processes]
    stored = [output for output, _ in ends if "stored" in output]
    refused = [errors for _, errors in ends if "another calibration is running" in errors]
    assert len(stored) >= 1
    assert len(stored) + len(refused) == 2


def test_kills_at_any_moment_leave_a_clean_store():
    source = random.Random(os.environ.get("PYTEST_XDIST_WORKER", "kills"))
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(source.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if store_path().exists():
            with sqlite3.connect(store_path()) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            connection.close()
    made = calibrate(quick(ALONE), Told())
    assert check_profile(dict(made.document), "here") == []


LAUNCHED = f"""
from costdb.calibration.campaign import Request, calibrate
from costdb.calibration.worker import Team
from costdb.calibration.worker import launched_ranks
from costdb.calibration.section import Effort
import test_calibration_campaign as here
assert launched_ranks() == 2
team = Team()
if team.leads:
    try:
        request = Request("cluster", Effort.QUICK, ({TOGETHER!r}, {ALONE!r}), seconds=6)
        calibrate(request, here.Told(), here.HOST, team.start)
    finally:
        team.dismiss()
else:
    team.assist()
"""


def test_under_a_launcher_its_ranks_take_part_and_the_first_one_writes():
    on_ranks(2, "-c", LAUNCHED)
    both = [stored(name, "cluster") for name in (TOGETHER, ALONE)]
    assert [one.launches[0]["setting"]["ranks"] for one in both] == [2, 1]
    assert both[0].begun == both[1].begun
    assert load_machine("cluster").library.startswith("MPICH ")
    assert launched_ranks({}) == 1
    assert launched_ranks({"OMPI_COMM_WORLD_SIZE": "6"}) == 6
    step = {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8"}
    assert launched_ranks(step) == 8
    # a batch script that started no step
    assert launched_ranks({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) == 1


@pytest.mark.usefixtures("two_launches")
def test_other_processes_are_noticed_and_noted():
    watch = Bystanders()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    own = watch.busy_cores()
    assert own is not None
    watch = Bystanders()
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(1.0)
    busy = watch.busy_cores()  # before it is waited for, it is not this process's own
    other.kill()
    other.wait()
    assert busy is not None
    assert busy > 0.2
    (section,) = calibrate(quick(ALONE), Told()).sections
    assert section.measured.launches[0]["setting"]["others_busy_cores"] >= 0
    loud, calm = ({"setting": {"others_busy_cores": cores}, "visits": []} for cores in (0.7, 0.0))

    def said(*launches):
        return disturbances(replace(section, measured=replace(section.measured, launches=launches)))

    (note,) = said(loud, calm)
    assert "0.7, 0.0 cores busy" in note
    assert said(calm, calm) == ()


def test_names_of_sections_are_checked():
    with pytest.raises(CalibrationError, match='no section "mesages"'):
        check_names(["mesages"])
    with pytest.raises(CalibrationError, match="no section"):
        check_names([ALONE])
    for name in SECTIONS:
        section = find_section(name)
        assert section.name == name


def test_no_two_sections_share_an_operation():
    seen: dict[str, str] = {}
    for name in SECTIONS:
        operations = {
            point.operation
            for effort in Effort
            for point in find_section(name).points(effort, 2, HOST)
        }
        for operation in operations:
            assert operation not in seen, f"{name} and {seen[operation]} both have {operation}"
            seen[operation] = name
