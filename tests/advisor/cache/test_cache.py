"""The cache: nothing is lost on the way, nothing damaged is believed, nobody is in the way."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import cache as cache_module
from advisor.cache import Cache, ForeignFolderError
from advisor.codec import decode, encode
from advisor.engine import FileResult
from tests.advisor.report.report_samples import FINDINGS, REMARKS

ROOT = Path(__file__).parents[3]


@given(st.lists(FINDINGS, max_size=2), st.lists(REMARKS, max_size=2))
@settings(max_examples=40, deadline=None)
def test_answers_come_back_exactly(findings: list, remarks: list) -> None:
    answer = FileResult("", "", tuple(findings), tuple(remarks))
    again = decode(FileResult, json.loads(json.dumps(encode(answer))))
    # by text, because NaN is not equal to itself
    assert repr(again) == repr(answer)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_entry_is_ignored(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    cache = Cache(tmp_path_factory.mktemp("cache") / "c")
    cache.write("name", "key", [1, {"a": "b"}])
    (path,) = cache.folder.glob("*.answer")
    kept = path.read_bytes()
    start = data.draw(st.integers(0, len(kept) - 1))
    end = data.draw(st.integers(start, len(kept)))
    damaged = kept[:start] + data.draw(st.binary(max_size=3)) + kept[end:]
    path.write_bytes(damaged)
    expected = [1, {"a": "b"}] if damaged == kept else None
    assert cache.read("name", "key") == expected


def test_a_folder_that_cannot_be_written_is_an_empty_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "c")
    cache.write("name", "key", 1)
    assert cache.read("name", "key") is None
    with pytest.raises(ForeignFolderError):
        Cache(tmp_path / "file").check()


def test_cleaning_removes_leftovers_but_nothing_else(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    cache.write("name", "key", 1)
    (cache.folder / "name.answer.123-abcd").write_text("half")
    (cache.folder / "notes.txt").write_text("mine")
    assert cache.clean() == 1
    assert [path.name for path in cache.folder.iterdir()] == ["notes.txt"]


def _fill(folder: str, number: int) -> None:
    cache = Cache(Path(folder))
    for turn in range(150):
        name = f"n{turn % 5}"
        cache.write(name, "key", [number] * 2000)
        found = cache.read(name, "key")
        # some other process's whole entry, or none while one cleans up; never a mixture
        if found is not None and len(set(found)) != 1:
            raise AssertionError(found[:3])
        if number == 0 and turn % 50 == 49:
            cache.clean()


def test_processes_share_a_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    folder = str(tmp_path / "c")
    processes = [context.Process(target=_fill, args=(folder, n)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert not list(Path(folder).glob("*.answer.*"))


def test_the_digest_follows_the_tools_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "advisor" / "cache.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    monkeypatch.setattr(cache_module, "__file__", str(module))
    before = cache_module.tool_digest()
    (tmp_path / "advisor" / "rule.py").write_text("x = 1")
    assert cache_module.tool_digest() != before


def test_a_kept_answer_costs_no_parser(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text((ROOT / "examples/box_sum.py").read_text())
    program = (
        "import sys\n"
        "from advisor.cli.app import main\n"
        "asked = 'k.py --machine t3e --select ADV2 --output-format json --isolated'.split()\n"
        "code = main(asked)\n"
        "heavy = {'libcst', 'costdb.expr', 'advisor.frontend.kernels', 'tomllib',"
        " 'advisor.transform_registry', 'importlib.metadata', 'multiprocessing'}\n"
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
            check=True, env={"PYTHONPATH": str(ROOT)},
        )
        for _ in range(2)
    ]  # fmt: skip
    assert runs[0].stdout == runs[1].stdout
    assert '"ADV201"' in runs[1].stdout
    assert "libcst" in runs[0].stderr
    assert runs[1].stderr == "1 []\n"
