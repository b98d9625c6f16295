"""Programs written anew for sampling do what they did, and nothing else gets in."""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
import sys
import types
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from advisor.measure import names as pure
from advisor.measure.clock import Clock, NotSampledError
from advisor.measure.language import Refused, Sampled, sampled_file, sampled_function
from advisor.measure.worker import names_of
from tests.transforms.case_files import sections

ROOT = Path(__file__).parents[3]
PROGRAMS = dict(sections(ROOT / "tests" / "data" / "sampled_programs.txt"))
SCRIPTS = dict(sections(ROOT / "tests" / "data" / "sampled_scripts.txt"))


def written(program: str, names: dict[str, object]) -> object:
    """Run the program as it stands."""
    space: dict[str, object] = {"np": np}
    exec(program, space)
    return space["f"](**names)  # type: ignore[operator]


def sampled(program: str, names: dict[str, object], *, plain: bool = False) -> object:
    """Run what is written anew, whole."""
    found = sampled_function("f.py", f"import numpy as np\n{program}", "f")
    space = run(found, plain=plain)
    given = {found.parameters[name]: value for name, value in names.items()}
    return space[str(found.entry)](**given)  # type: ignore[operator]


def run(program: Sampled, *, plain: bool = False) -> dict[str, object]:
    """Run what is written anew as the worker does; return what its names stand for."""
    space: dict[str, object] = {**names_of(program.modules), "clock": Clock(60.0, whole=True)}
    exec(program.plain if plain else program.text, space)
    return space


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        for one in value:
            yield from leaves(one)
    else:
        yield value


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_anew_gives_the_same(name: str, seed: int) -> None:
    a = np.random.default_rng(seed).random((5 + seed, 5 + seed)) + 0.5
    one = {"a": a.copy(), "n": 3 + seed}
    expected = written(PROGRAMS[name], one)
    for plain in (False, True):
        other = {"a": a.copy(), "n": 3 + seed}
        found = sampled(PROGRAMS[name], other, plain=plain)
        for left, right in zip(leaves(expected), leaves(found), strict=True):
            np.testing.assert_array_equal(left, right)
        np.testing.assert_array_equal(one["a"], other["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_written_anew_come_to_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["script"])
    space: dict[str, object] = {"__name__": "__main__"}
    exec(SCRIPTS[name], space)
    program = sampled_file("f.py", SCRIPTS[name], {})
    last = ast.parse(program.text).body[-1]
    assert isinstance(last, ast.Assign)
    for plain in (False, True):
        values = run(program, plain=plain)
        np.testing.assert_equal(values[ast.unparse(last.targets[0])], space["result"])


@pytest.mark.parametrize("name", [*PROGRAMS, *SCRIPTS])
def test_a_plain_program_asks_no_clock_in_its_loops(name: str) -> None:
    """It is the same program: the same statements are marked, and nothing else is asked."""
    if name in PROGRAMS:
        found = sampled_function("f.py", f"import numpy as np\n{PROGRAMS[name]}", "f")
    else:
        found = sampled_file("f.py", SCRIPTS[name], {})
    marks = [re.findall(r"clock\.mark\(\d+\)", text) for text in (found.text, found.plain)]
    assert marks[0] == marks[1] and len(marks[0]) > 0
    others = re.sub(r"clock\.(mark\(|refuse\()", "", found.plain)
    assert "clock" not in others and ".carry(" not in others


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("import os\nx = os.getcwd()\ny = x + 1", 3, "os.getcwd has no row"),
        ("np.add = max", 1, "is assigned"),
        ("x = ().__class__", 1, "`.__class__` has no row"),
        ("x = np.load('a.npy')", 1, "numpy.load has no row"),
        ("np.ones(3).tofile('a')", 1, "`.tofile` has no row"),
        ("x = np.array([1.0], dtype='O').dumps()", 1, "`.dumps` has no row"),
        ("x = eval('1')\ny = -x", 2, "nothing is known of `eval`"),
        ("x = open('a')\ny = [x]", 2, "nothing is known of `open`"),
        ("x = [__builtins__]", 1, "nothing is known of `__builtins__`"),
        ("async def f():\n    return 1\nx = f()", 1, "is not sampled"),
        ("x = np.lib.stride_tricks.as_strided(np.ones(3))", 1, "has no row"),
        ("from numpy import *\nx = load('a') + 1", 2, "nothing is known of `load`"),
        ("x = np.vectorize(eval)", 1, "nothing is known of `eval`"),
        ("x = '{0.__class__}'.format(1)", 1, "`.format` has no row"),
        ("try:\n    x = 1\nexcept BaseException:\n    pass", 3, "nothing is known of `BaseEx"),
        ("def f():\n    return [1].sort(key=eval)\nprint('a', 'b'.join(f()))", 2, "of `eval`"),
        ("x = (lambda: 1).__globals__", 1, "has no row"),
        ("import sys\nprint(1)\nnp.frompyfunc(eval, 1, 1)", 3, "nothing is known of `eval`"),
        ("@cache\ndef f():\n    return 1\nx = f()", 1, "`@cache` is not known"),
        ("class A:\n    def __del__(self):\n        pass\nx = A()", 2, "`__del__` is not sampled"),
        ("class A:\n    x = np.load('a')\nx = A()", 2, "has no row"),
        ("x = np.ones(3)\nx.__class__ = 1", 2, "is assigned"),
        ("x = np.ctypeslib.load_library('a', 'b') + 1", 1, "has no row"),
        ("x = np.lib.format.open_memmap('a') + 1", 1, "has no row"),
        ("from scipy import io\nx = np.add(io.loadmat('a'), 1)", 2, "has no row"),
        ("import os\nx = [os.path.exists('a')]", 2, "has no row"),
        ("import os\nx = [os]", 2, "has no row"),
        ("import os\nx = [os.path]", 2, "has no row"),
        ("import io\nx = [io.open('a')]", 2, "has no row"),
        ("import timeit\nx = [timeit.timeit('1')]", 2, "has no row"),
        ("import typing\nx = [typing.get_type_hints(1)]", 2, "has no row"),
        ("import sys\nx = [sys.modules]", 2, "has no row"),
        ("import sys\nx = [sys.setrecursionlimit(9)]", 2, "has no row"),
        ("x = [getattr(np, 'load')]", 1, "has no row"),
        ("x = [getattr(np.ones(3), 'tofile')]", 1, "`.tofile` has no row"),
        ("x = [getattr(1, '__class__')]", 1, "`.__class__` has no row"),
        ("x = [getattr(1, 'a' + 'b')]", 1, "nothing is known of `getattr`"),
        ("x = [getattr]", 1, "nothing is known of `getattr`"),
        ("x = [setattr(np.ones(3), 'strides', 1)]", 1, "is assigned"),
        ("object.__setattr__(np.ones(3), 'data', 1)", 1, "is assigned"),
        *(
            (f"x = np.ones(3)\nx.{one} = 1", 2, "is assigned")
            for one in ("data", "strides", "dtype")
        ),
        ("x = [np.random.MT19937().state]", 1, "has no row"),
        (
            "import enum\nclass A(enum.Enum):\n    x = property(abs)\ny = A('B', {})",
            2,
            "no members",
        ),
        ("import enum\nclass A(enum.Enum):\n    __name__ = 'x'\ny = A('B', 'c')", 2, "no members"),
        ("class A:\n    __slots__ = ('__dict__',)\ny = A()", 2, "has no row"),
        ("class A:\n    def __getattr__(self, n):\n        return 1\ny = A()", 2, "is not sampled"),
        ("import dataclasses\nx = [dataclasses.dataclass.__globals__]", 2, "has no row"),
        ("import statistics\nx = [statistics.sys]", 2, "has no row"),
        ("import os\nx = [os.path.os]", 2, "has no row"),
        ("import sys\nx = [sys._getframe()]", 2, "has no row"),
        ("x = [abs.__self__]", 1, "has no row"),
        ("x = f'{().__class__}'\ny = [x]", 1, "has no row"),
        ("match 1:\n    case int(__class__=x):\n        y = [x]", 2, "has no row"),
        ("from scipy import LowLevelCallable\nx = [LowLevelCallable(1)]", 2, "has no row"),
        ("x = object.__getattribute__(1, 'a')", 1, "has no row"),
        ("x = (1).__reduce__()", 1, "has no row"),
        ("def f():\n    return 1\nx = f.__code__", 3, "has no row"),
        ("def f():\n    yield 1\nx = f().gi_frame", 3, "has no row"),
        ("x = [type('A', (), {})]", 1, "nothing is known of `type`"),
        ("x = [type]", 1, "nothing is known of `type`"),
        ("class A(type):\n    pass\nx = A()", 1, "nothing is known of `type`"),
        ("import abc\nclass A(abc.ABCMeta):\n    pass\nx = A()", 2, "has no row"),
        ("import enum\nx = [enum.Enum('A', 'b')]", 2, "has no row"),
        ("import enum\nclass A(enum.Enum):\n    __doc__ = 'a'\nx = A('B', 'c')", 2, "no members"),
        ("class A(metaclass=f):\n    pass\nx = A()", 1, "is not sampled"),
        ("class A:\n    __array_interface__ = {}\nx = A()", 2, "has no row"),
        ("class A:\n    def __reduce__(self):\n        return 1\nx = A()", 2, "is not sampled"),
        ("class A:\n    __slots__ = str(1)\nx = A()", 2, "not known before it runs"),
        ("x = 'a'\ny = (x + '{0.a}').format(1)", 2, "`.format` has no row"),
        ("x = '{:{0.a}}'.format(1)", 1, "`.format` has no row"),
        ("x = ['{'.format(1)]", 1, "`.format` has no row"),
        ("x = '{a[b]}'.format(a=1)", 1, "`.format` has no row"),
        ("import argparse\nx = [argparse.Namespace()]", 2, "has no row"),
        ("import argparse\nx = [argparse.FileType()]", 2, "has no row"),
        ("import argparse\nx = map(argparse.ArgumentParser, 'a')", 2, "has no row"),
        ("import argparse\np = argparse.ArgumentParser()\nx = [p.parse_args]", 3, "has no row"),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument('n')", 3, "no default"),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('-n', required=1)",
            3,
            "no",
        ),
        ("import operator\nx = [operator.attrgetter('__class__')]", 2, "has no row"),
        ("import operator\nx = [operator.attrgetter(*['a'])]", 2, "not known before it runs"),
        ("import operator\nx = [operator.methodcaller('tofile')]", 2, "has no row"),
        ("import operator\nx = map(operator.attrgetter, 'a')", 2, "has no row"),
        ("with open('a') as f:\n    x = f.read() + 'a'", 2, "`open('a')` has no row"),
        ("with np.load('a') as f:\n    pass", 1, "has no row"),
        ("match 1:\n    case np.load:\n        pass", 2, "has no row"),
        ("def f(x, y=np.load('a')):\n    return x\ny = f(1)", 1, "has no row"),
        ("@np.load\ndef f():\n    return 1\nx = f()", 1, "is not known"),
        ("from mpi4py import MPI\nx = [MPI.File.Open(MPI.COMM_WORLD, 'a')]", 2, "has no row"),
        ("from mpi4py import MPI\nx = [MPI.COMM_SELF.Spawn('a')]", 2, "has no row"),
        ("from mpi4py import MPI\nx = [MPI.memory.fromaddress(1, 2)]", 2, "has no row"),
    ],
)
def test_what_is_not_known_to_be_pure_is_refused(text: str, line: int, why: str) -> None:
    with pytest.raises(Refused) as told:
        sampled_file("f.py", f"import numpy as np\n{text}", {})
    assert told.value.line == line + 1
    assert why in told.value.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("class A(dict):\n    def a(self):\n        self.tofile()\nx = A()\nx.a()", "`.tofile`"),
        ("a = 1\nif a:\n    x = [np.load('a')]", "numpy.load has no row"),
        ("def f():\n    return eval('1')\nif not None:\n    x = f()", "known of `eval`"),
        (
            "try:\n    1 / 0\nexcept ValueError:\n    pass\nexcept:\n    x = [eval('1')]",
            "of `eval`",
        ),
        ("match 1:\n    case x:\n        y = x.__globals__", "`.__globals__`"),
        ("try:\n    if 1:\n        x = [eval('1')]\nexcept Exception:\n    x = 1", "of `eval`"),
    ],
)
def test_what_is_refused_where_it_may_not_run_ends_a_run_there(text: str, why: str) -> None:
    found = sampled_file("f.py", f"import numpy as np\n{text}", {})
    with pytest.raises(NotSampledError) as told:
        run(found)
    assert why in told.value.why and why.strip("`.") not in found.text.replace(told.value.why, "")


def test_what_parses_the_command_line_is_given_none() -> None:
    text = """
import argparse
def parse(given):
    parser = argparse.ArgumentParser("a", fromfile_prefix_chars="@")
    parser.add_argument("--dumps", type=int, default="7")
    parser.add_argument("kind", nargs="?", default="b", choices=["a", "b"])
    return parser.parse_args(given)
args = parse(["@/etc/passwd"])
x = [args.dumps, args.kind]
"""
    assert [7, "b"] in run(sampled_file("f.py", text, {})).values()
    assert [8, "b"] in run(sampled_file("f.py", text, {"dumps": 8})).values()
    assert "fromfile" not in sampled_file("f.py", text, {}).text


def test_names_of_the_file_never_stand_for_what_is_not_pure() -> None:
    text = "def f(open, os, clock, v0, n):\n    return n\nx = f(1, 2, clock=3, v0=4, n=5)\n"
    found = sampled_file("f.py", f"import os\n{text}y = open\nz = os, clock, v0\n", {})
    with pytest.raises(NameError):
        run(found)
    assert not {"open", "os", "clock"} & {
        one.id for one in ast.walk(ast.parse(found.text)) if isinstance(one, ast.Name)
    } - {"clock"}
    assert found.text.count("clock") == found.text.count("clock.")


def test_values_that_make_types_of_any_names_are_not_to_be_had() -> None:
    for text in ("x = type(int)", "class A:\n    pass\nx = type(A)", "x = int\ny = x.__class__"):
        with pytest.raises(TypeError, match="the type of a class"):
            run(sampled_file("f.py", text, {}))


def test_no_result_of_a_solver_is_memory_that_numpy_reads() -> None:
    text = """
from scipy.optimize import minimize
def f(x):
    return x @ x
import numpy as np
r = minimize(f, [1.0])
r["__array_interface__"] = {"data": (0, False), "shape": (1,), "typestr": "<f8", "version": 3}
x = np.asarray(r)
y = r.fun
"""
    values = run(sampled_file("f.py", text, {})).values()
    assert [one.dtype for one in values if isinstance(one, np.ndarray)] == [np.dtype(object)]


FOREIGN = """
import sys
import argparse
import matplotlib.pyplot as plt
import numpy as np
from other import evolve
plt.rcParams["image.cmap"] = "jet"
fig, ax = plt.subplots()
parser = argparse.ArgumentParser("shows")
parser.add_argument("-n", "--cells", type=int, default=30)
parser.add_argument("--flag", action="store_true")
given = parser.parse_args()
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4
a = np.zeros((given.cells, steps))
title = f"{steps} steps"
ax.plot(a)
evolve(a)
if given.flag:
    a += 1
"""


def test_what_other_libraries_do_is_left_out_and_the_command_line_is_empty() -> None:
    found = sampled_file("f.py", FOREIGN, {})
    assert [line for line, _ in found.left_out] == [7, 8, 16, 17]
    for program, cells in (found, 30), (sampled_file("f.py", FOREIGN, {"cells": 50}), 50):
        values = run(program).values()
        assert [one.shape for one in values if isinstance(one, np.ndarray)] == [(cells, 4)]


@pytest.mark.parametrize("use", ["b = a + ax.width", "b = fig + a", "np.add(a, evolve(a), out=a)"])
def test_what_other_libraries_give_is_not_computed_with(use: str) -> None:
    with pytest.raises(Refused) as told:
        sampled_file("f.py", f"{FOREIGN}{use}\n", {})
    assert told.value.line == FOREIGN.count("\n") + 1


def test_sizes_of_a_script_can_be_given() -> None:
    found = sampled_file("f.py", "N = 3\nx = [0] * N\n", {"N": 7})
    assert "= 7" in found.text and "= 3" not in found.text


NOT_PURE = {
    "numpy": """
        bmat fromfile fromregex genfromtxt get_include load loadtxt memmap save savetxt savez
        savez_compressed set_printoptions setbufsize seterr seterrcall show_config show_runtime info
        from_dlpack getbufsize geterrcall sctypeDict test complex256 float128
    """,
    "numpy.linalg": "",
    "numpy.fft": "",
    "numpy.random": "set_state",
    "numpy.ma": "ids masked_print_option mvoid set_fill_value fromflex",
    "numpy.lib.stride_tricks": "as_strided",
    "numpy.polynomial": "set_default_printstyle",
    **{f"numpy.polynomial.{one}": "" for one in ("polynomial", "chebyshev", "hermite", "laguerre")},
    "scipy.linalg": "",
    "scipy.sparse": "load_npz save_npz",
    "scipy.sparse.linalg": "use_solver",
    "scipy.sparse.csgraph": "",
    "scipy.ndimage": "",
    "scipy.signal": "",
    "scipy.fft": "register_backend set_backend set_global_backend skip_backend",
    "scipy.special": "seterr",
    "scipy.interpolate": "",
    "scipy.stats": "",
    "scipy.stats.qmc": "",
    "scipy.spatial": "convex_hull_plot_2d delaunay_plot_2d voronoi_plot_2d",
    "scipy.spatial.distance": "",
    "scipy.spatial.transform": "",
    # the first two start processes; results are dictionaries with attributes of any names
    "scipy.optimize": "brute differential_evolution show_options OptimizeResult RootResults",
    "scipy.integrate": "",
    "scipy.cluster.vq": "",
    "scipy.cluster.hierarchy": "dendrogram set_link_color_palette",
    "scipy.constants": "",
    **dict.fromkeys(("math", "cmath", "itertools", "heapq", "bisect", "statistics", "copy"), ""),
    "functools": "update_wrapper wraps WRAPPER_ASSIGNMENTS WRAPPER_UPDATES",
    "operator": "attrgetter methodcaller",
    "collections": "namedtuple",
    "random": "SystemRandom",
    "array": "",
    "struct": "",
    "string": "Formatter",
    "re": "purge template",
    "datetime": "",
    "fractions": "",
    "decimal": "HAVE_CONTEXTVAR HAVE_THREADS",
    "dataclasses": "Field make_dataclass",
    "textwrap": "",
    "json": "JSONDecoder JSONEncoder dump load",
    "zlib": "",
    "hashlib": "file_digest",
    "binascii": "",
    "base64": "decode encode",
    "pickle": " ".join(importlib.import_module("pickle").__all__),
    "ctypes": " ".join(dir(importlib.import_module("ctypes"))),
    "subprocess": " ".join(importlib.import_module("subprocess").__all__),
}


def test_every_row_is_there_to_be_called() -> None:
    newer = {"numpy.unstack", "numpy.cumulative_sum", "numpy.cumulative_prod", "numpy.matvec"}
    for path in (pure.CALLS | pure.VALUES | pure.BASES | pure.WRITING) - newer:
        module = path.rpartition(".")[0]
        if path.startswith("mpi4py.MPI."):
            assert attrgetter(path.removeprefix("mpi4py.MPI."))(MPI) is not None, path
        elif path not in ("numba.prange", "numpy.random.RandomState"):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(module)  # unless it is an attribute only
            root, _, rest = path.partition(".")
            found = attrgetter(rest)(sys.modules[root])
            assert not isinstance(found, types.ModuleType), path


def test_most_of_what_modules_offer_has_a_row_and_the_rest_is_not_pure() -> None:
    """What lacks a row is stated here; a new release may add a few names."""
    for module, names in NOT_PURE.items():
        found = importlib.import_module(module)
        public = {one for one in getattr(found, "__all__", dir(found)) if one[0] != "_"}
        public = {one for one in public if not isinstance(getattr(found, one, 0), types.ModuleType)}
        excluded = set(names.split())
        rows = {one for one in public if f"{module}.{one}" in pure.CALLS | pure.VALUES | pure.BASES}
        assert not rows & excluded, (module, rows & excluded)
        assert len(public - rows - excluded) <= 0.05 * len(public) + 1, (module, public - rows)


def test_every_method_of_ranks_is_one_of_mpi4py() -> None:
    kinds = (
        MPI.Cartcomm,
        MPI.Graphcomm,
        MPI.Distgraphcomm,
        MPI.Prequest,
        MPI.Win,
        MPI.Status,
        MPI.Datatype,
        MPI.Group,
        MPI.Op,
        MPI.Info,
        MPI.Intercomm,
    )
    for name in pure.MPI_MEMBERS | pure.OF_RANK:
        assert any(hasattr(kind, name) for kind in kinds), name


def test_no_row_reads_or_writes_files() -> None:
    words = ("load", "save", "file", "text", "memmap", "pickle", "ctypes", "exec")
    # a line profile is no file; what wraps, splits or parses texts reads none; nor does a context
    names = [one.replace("profile", "") for one in pure.CALLS | pure.MEMBERS | pure.MPI_MEMBERS]
    names = [one.lower().replace("context", "") for one in names if one != "json.loads"]
    names = [one.replace("splitext", "") for one in names if not one.startswith("textwrap.")]
    names = [one for one in names if not one.startswith("mpi4py.mpi.err_")]
    assert not [name for name in names if any(word in name for word in words)]


def test_examples_are_written_anew_with_no_name_of_theirs() -> None:
    for path in sorted((ROOT / "examples").glob("*.py")):
        try:
            found = sampled_file(str(path), path.read_text(), {})
        except Refused as refused:
            assert refused.line > 0 and refused.why
        else:
            compile(found.text, "x", "exec")
