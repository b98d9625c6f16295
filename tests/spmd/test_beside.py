"""Programs in several files: what a module is given is known from the programs beside it."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from reading import operations

from advisor.analysis.spmd.lower import lower_steps
from advisor.engine import Options, check_source
from advisor.frontend import trees
from advisor.frontend.prefilter import surroundings
from advisor.frontend.spmd.reader import read_program
from advisor.frontend.trees import parse
from advisor.ir.spmd.memory import PayloadKind
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import Call, Communicate, Unknown, walk
from costdb.expr import evaluate

HELPER = "def push(comm, x):\n    comm.send(x, dest=1)\n"
MAIN = """\
from mpi4py import MPI
import numpy as np
{imports}

x = np.zeros(5000)
for step in range(10):
    {call}(MPI.COMM_WORLD, x)
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def read(file: Path) -> Program | None:
    return read_program(str(file), file.read_text())


WAYS = [
    ("import helper", "helper.push"),
    ("import helper as h", "h.push"),
    ("from helper import push", "push"),
    ("from helper import push as send_it", "send_it"),
    ("from .helper import push", "push"),
    ("from helper import *", "push"),
    ("from .helper import *", "push"),
    ("from . import helper", "helper.push"),
]


@pytest.mark.parametrize(("imports", "call"), WAYS)
def test_a_module_is_read_as_the_program_beside_it_calls_it(
    tmp_path: Path, imports: str, call: str
) -> None:
    written(tmp_path, main=MAIN.format(imports=imports, call=call), helper=HELPER)
    found = read(tmp_path / "helper.py")
    (sent,) = operations(found)
    assert sent.span.start_line == 2
    assert sent.send.kind is PayloadKind.ARRAY
    assert evaluate(sent.send.count, {}) == 5000
    (function,) = found.functions
    assert (function.name, function.depth) == ("push", 1)
    # what it does counts where it is called
    main = read(tmp_path / "main.py")
    (function,) = main.functions
    assert not lower_steps(function.body).gaps
    inner = [v for v in walk(function.body, into_calls=True) if v.calls]
    assert [v.step.span.start_line for v in inner] == [7], "told at the call, not in the other file"
    assert [type(v.step) for v in walk(function.body)][-1] is Call
    assert operations(main) == [], "they are the other file's to change"


OTHERS = {
    "a socket": "import socket\nimport helper\nhelper.push(socket.socket(), b'x')\n",
    "a wrapper": "from mpi4py import MPI\nimport helper\n\nclass Wrapped:\n"
    "    def send(self, x, dest):\n        print(x)\n\nhelper.push(Wrapped(), 1)\n",
    "nccl": "from mpi4py import MPI\nfrom cupy.cuda import nccl\nimport helper\n"
    "helper.push(nccl.NcclCommunicator(2, b'', 0), 1)\n",
    "an argument": "from mpi4py import MPI\nimport helper\n\ndef f(comm):\n"
    "    helper.push(comm, 1)\n",
    "nothing": "from mpi4py import MPI\nimport helper\n",
}


@pytest.mark.parametrize("main", OTHERS.values(), ids=OTHERS)
def test_other_receivers_are_no_communicators(tmp_path: Path, main: str) -> None:
    written(tmp_path, main=main, helper=HELPER)
    assert read(tmp_path / "helper.py") is None


def test_sizes_come_from_modules_too(tmp_path: Path) -> None:
    written(
        tmp_path,
        config="N = 640\n",
        main="from mpi4py import MPI\nimport numpy as np\nimport config\nfrom config import N\n"
        "MPI.COMM_WORLD.Bcast(np.zeros((N, config.N)))\n",
    )
    found = read(tmp_path / "main.py")
    (sent,) = operations(found)
    assert evaluate(sent.send.count, {"N": 640}) == 640 * 640
    assert (found.sizes["N"].value, found.sizes["N"].origin) == (640, "line 1 of config.py")


def test_a_module_that_is_imported_does_not_do_what_it_does_as_a_program(tmp_path: Path) -> None:
    helper = HELPER + "\nif __name__ == '__main__':\n    push(1, 2)\n    raise SystemExit\n"
    written(tmp_path, main=MAIN.format(imports="import helper", call="helper.push"), helper=helper)
    found = read(tmp_path / "main.py")
    assert found is not None and len(found.functions) == 1


def test_what_is_kept_of_a_file_rests_on_those_beside_it(tmp_path: Path) -> None:
    text = MAIN.format(imports="import helper", call="helper.push")
    written(tmp_path, main=text, helper=HELPER)
    files = {str(tmp_path / "main.py"): text, str(tmp_path / "helper.py"): HELPER}
    before = {path: surroundings(path, source) for path, source in files.items()}
    assert all(before.values())
    written(tmp_path, main=text.replace("5000", "60"), helper=HELPER + "\n\n# longer\n")
    after = {path: surroundings(path, source) for path, source in files.items()}
    assert all(before[path] != after[path] for path in files)
    (tmp_path / "apart").mkdir()
    written(tmp_path / "apart", alone=HELPER)
    assert surroundings(str(tmp_path / "apart" / "alone.py"), HELPER) == ""


HOSTILE = {
    "imports its caller": "import main\n" + HELPER,
    "imports itself": "import helper\n" + HELPER,
    "does not parse": "def push(comm, x:\n    comm.send(x, dest=1)\n",
    "is Python 2": "def push(comm, x):\n    print x\n    comm.send(x, dest=1)\n",
    "has null bytes": HELPER + "\0",
    "calls back": "def push(comm, x):\n    import main\n    main.push(comm, x)\n",
}


@pytest.mark.parametrize("helper", HOSTILE.values(), ids=HOSTILE)
def test_a_module_that_cannot_be_followed_harms_nobody(tmp_path: Path, helper: str) -> None:
    written(tmp_path, main=MAIN.format(imports="import helper", call="helper.push"), helper=helper)
    text = MAIN.format(imports="import helper", call="helper.push")
    check_source(str(tmp_path / "main.py"), text, Options("t3e", {}, (), (), None))
    (tmp_path / "helper.py").unlink()
    (tmp_path / "helper.py").symlink_to("helper.py")
    check_source(str(tmp_path / "main.py"), text, Options("t3e", {}, (), (), None))


def test_same_names_in_two_files_are_two_functions(tmp_path: Path) -> None:
    written(
        tmp_path,
        helper=HELPER,
        main="from mpi4py import MPI\nimport helper\n\ndef push(comm, x):\n"
        "    helper.push(comm, x)\n\npush(MPI.COMM_WORLD, 3.0)\n",
    )
    found = read(tmp_path / "main.py")
    steps = [v.step for f in found.functions for v in walk(f.body, into_calls=True)]
    assert not any(isinstance(step, Unknown) for step in steps)


@pytest.mark.parametrize(
    ("listed", "sent"),
    [("", True), ("__all__ = ['push']\n", True), ("__all__ = ('other', )\n", False)],
)
def test_a_star_import_binds_what_the_module_lists(tmp_path: Path, listed: str, sent: bool) -> None:
    star = MAIN.format(imports="from helper import *", call="push")
    written(tmp_path, main=star, helper=f"{listed}def other(): ...\n{HELPER}")
    found = read(tmp_path / "main.py")
    steps = [
        v.step for f in (found.functions if found else ()) for v in walk(f.body, into_calls=True)
    ]
    assert any(isinstance(step, Communicate) for step in steps) == sent


def test_a_file_is_read_once_however_many_programs_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each program that may call a module is followed, with all that it imports."""
    shared = "import numpy as np\n\ndef made(n):\n    return np.zeros(n)\n"
    program = (
        "from mpi4py import MPI\nimport helper\nimport shared\n\ndef f(c):\n    helper.{}(c)\n"
    )
    helper = f"import shared\n\n{HELPER}"
    folder = written(tmp_path, helper=helper, shared=shared)
    for number, name in enumerate(("tie", "push", "pull")):
        written(folder, **{f"program{number}": program.format(name)})
    asked: list[str] = []

    def counted(path: str, source: str) -> cst.Module:
        asked.append(Path(path).name)
        return parse(path, source)

    monkeypatch.setattr(trees, "parse", counted)
    path = folder / "helper.py"
    read_program(str(path), helper)
    assert {"helper.py", "shared.py", "program0.py", "program1.py", "program2.py"} <= {*asked}
    assert len(asked) == len({*asked})
