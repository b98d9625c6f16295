"""The text of process models: what it means, how files join, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from costdb.choosing import RefusedError
from costdb.expr import evaluate, num, parse, sym
from costdb.process.model import Model, ProcessSubject, compile_model, load_model
from costdb.process.substitution import ModelError
from costdb.work import (
    NOTHING,
    Branch,
    Delay,
    Parallel,
    ParLoop,
    Resource,
    SeqLoop,
    Sequential,
    Use,
)

Loader = Callable[..., Model]


@pytest.fixture
def model(tmp_path: Path) -> Loader:
    def load(*texts: str) -> Model:
        paths = []
        for number, text in enumerate(texts):
            path = tmp_path / f"{number}.pam"
            path.write_text(text)
            paths.append(path)
        return load_model(paths)

    return load


def seconds(text_model: Model, **sizes: int) -> float:
    return float(evaluate(compile_model(text_model).T, sizes))


def test_every_construct_becomes_its_term(model: Loader) -> None:
    found = model(
        """
        numeric parameter W          % workers, stays symbolic
        numeric parameter K = 3      % jobs of each worker
        numeric t_cpu = 4
        numeric t_disk(size) = 2 + 0.5 * size
        resource parameter fcfs(i)   % the predefined array
        resource disk = fcfs(0, 2)   % two heads
        process job(w) = { delay(t_cpu) ; if (0.25) use(disk, t_disk(w)) else delay(0) }
        process main = par (w = 1, W) seq (k = 1, K) job(w)
        """
    )
    w = sym("w")
    head = Resource(num(0), num(2))
    job = Sequential(
        (
            Delay(num(4)),
            Branch(parse("0.25"), Use(head, 2 + w / 2), Delay(num(0))),
        )
    )
    assert found.process == ParLoop("w", num(1), sym("W"), SeqLoop("k", num(1), sym("K"), job))
    assert found.parameters == {"W": None, "K": 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("delay(1) ; delay(2)", Sequential((Delay(num(1)), Delay(num(2))))),
        (
            "delay(1) ; delay(2) || delay(3)",
            Parallel((Sequential((Delay(num(1)), Delay(num(2)))), Delay(num(3)))),
        ),
        (
            "seq (i = 1, 2) delay(i) ; delay(3)",
            Sequential((SeqLoop("i", num(1), num(2), Delay(sym("i"))), Delay(num(3)))),
        ),
        ("if (1 < 2) delay(1)", Branch(num(1), Delay(num(1)), NOTHING)),
        ("{}", NOTHING),
    ],
)
def test_grouping(model: Loader, text: str, expected: object) -> None:
    assert model(f"process main = {text}").process == expected


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17 mod 5 + 17 div 5", 5),
        ("sum (i = 1, 4) i * i", 30),
        ("sum (i = 1, 0) i", 0),
        ("max (i = 1, 4) i", 4),
        ("max(2, 3) * (2 <= 3)", 3),
        ("max([1, 5, 2])", 5),
        ("sum([1, 5, 2])", 8),
        ("max(unitvec(1) * 3 + unitvec(1) + 2 * unitvec(0))", 4),
        ("max(sum (i = 0, 9) unitvec(i mod 4) * 2)", 6),
        ("v[1] + v[7]", 5),
        ("max(v / 2)", 2.5),
        ("if(1 > 2, 3, 4)", 4),
        ("0.1 + 0.2 == 0.3", 1),
    ],
)
def test_numeric_expressions(model: Loader, expression: str, value: float) -> None:
    text = f"numeric v = [1, 5, 2]\nprocess main = delay({expression})"
    assert seconds(model(text)) == value


def test_main_is_found_by_name_and_else_is_the_last(model: Loader) -> None:
    assert seconds(model("process main = delay(1)\nprocess other = delay(2)")) == 1
    assert seconds(model("process a = delay(1)\nprocess b = delay(2)\nprocess c(x) = a")) == 2


def test_a_later_file_completes_and_replaces(model: Loader) -> None:
    program = (
        "numeric parameter t\nprocess main = { step(1) ; delay(t) }\nprocess step(p) = delay(p)"
    )
    machine = "numeric t = 5\nprocess step(p) = delay(10 * p)"
    found = model(program, machine)
    assert seconds(found) == 15
    assert found.parameters == {}
    with pytest.raises(ModelError, match=r"0\.pam:1:16: unknown name 'step'"):
        model("process main = step(1)", "numeric t = 5")


def test_loops_do_not_capture_arguments(model: Loader) -> None:
    text = """
        process job(w) = seq (k = 1, 2) delay(w + 10 * k)
        process main = seq (k = 1, 3) job(k)
    """
    # sum over k of (2 k + 30)
    assert seconds(model(text)) == 102
    inner = "numeric f(x) = sum(i = 1, 3, x * i)\nprocess main = seq (i = 1, 2) delay(f(i))"
    assert seconds(model(inner)) == 18
    over = "numeric parameter N\nprocess main = seq (N = 1, 2) delay(N)"
    assert seconds(model(over), N=100) == 3


def test_servers_of_different_arrays_are_different(model: Loader) -> None:
    text = """
        resource parameter cpu(p)
        resource parameter network
        process main = { use(cpu(0), 2) || use(network, 3) || use(fcfs(0), 4) }
    """
    assert seconds(model(text)) == 4
    assert seconds(model("process main = { use(fcfs(0), 2) || use(fcfs(0), 3) }")) == 5


DOUBLING = "\n".join(f"numeric f{i}(x) = f{i - 1}(x) + f{i - 1}(x * x)" for i in range(1, 40))
SHARING = "\n".join(f"process p{i} = p{i - 1} ; p{i - 1}" for i in range(1, 60))
GROWING = "\n".join(f"numeric a{i} = max(a{i - 1} * b, a{i - 1} + 1)" for i in range(1, 60))
BACKWARDS = "\n".join(f"numeric a{i} = a{i - 1} + 1" for i in range(1000, 0, -1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("process main = delay(foo)", "1:22: unknown name 'foo'"),
        ("numeric t_work = 1\nprocess main = delay(t_wrk)", "2:22: .*did you mean 't_work'"),
        ("process main = job(1)", "1:16: unknown name 'job'"),
        ("process a(x) = delay(x)\nprocess main = a(1, 2)", "2:16: 'a' takes 1 argument, not 2"),
        ("process a(x) = delay(x)\nprocess main = a", "2:16: 'a' takes 1 argument, not 0"),
        ("process main = delay(log2(1, 2))", "1:22: log2 takes 1 argument"),
        ("numeric a = b\nnumeric b = a\nprocess main = delay(a)", "2:13: .*a -> b -> a"),
        ("process a = { b ; b }\nprocess b = a", "2:13: 'a' is defined by itself"),
        ("numeric a = 1\nprocess main = a", "2:16: 'a' is a number, not a process"),
        ("process p = {}\nprocess main = delay(p)", "2:22: 'p' is a process, not a number"),
        ("process main = use(3, 1)", "1:16: use needs a resource, not a number"),
        ("process main = delay(fcfs(0))", "1:16: a number is needed here, not a resource"),
        ("process main = delay(fcfs(0) + 1)", "1:22: a resource is not a number"),
        ("numeric r = fcfs(0)\nprocess main = {}", "1:9: 'r' is a numeric, but .* a resource"),
        ("process main = delay([1, 2])", "1:16: a number is needed here, not a vector"),
        ("process main = delay(max([1] - [2]))", "1:30: '-' does not join"),
        ("process main = delay(max([0 - 1]))", "1:27: .*not negative"),
        ("numeric a = 1\nnumeric a = 2\nprocess main = {}", "2:9: 'a' is defined in line 1"),
        ("numeric f(x, x) = 1\nprocess main = {}", "1:9: two formals of 'f'"),
        ("numeric max(x) = 1\nprocess main = {}", "1:9: 'max' is a word of the language"),
        ("process main = { delay(1) ; { delay(2) }", "1:41: the model ends too early"),
        ("process main = delay(1) }", "1:25: did not expect '}'"),
        ("process main = { delay(1) )", r"1:27: did not expect .\)."),
        ("process main = delay(1) ;", "1:26: the model ends too early"),
        ("process main = delay(1) ; ; delay(1)", "1:27: did not expect ';'"),
        ("process main = \x00", "1:16: did not expect '.x00'"),
        ("process main = delay(-1)", "1:16: a time of -1 seconds is negative"),
        ("numeric a = 0.5\nprocess main = use(fcfs(0), a - 3)", "2:16: a time of -2.5 seconds"),
        ("process main = if (1.5) delay(1)", "1:16: a probability of 3/2 is outside"),
        ("process main = use(fcfs(0, 0), 1)", "1:20: a resource of multiplicity 0"),
        ("process main = delay(1/0)", "1:23: division by zero"),
        ("process main = delay(nan)", "1:22: unknown name 'nan'"),
        ("process main = delay(1e999999)", "1:22: the number 1e999999 is too large"),
        ("process main = delay(__import__('os'))", "1:33: did not expect"),
        ("process main = delay(9**9**9**9)", "1:26: a power needs more than"),
        ("process main = " + "{" * 100_000, "1:116: brackets nest more than 100"),
        ("process main = delay(" + "(" * 100_000 + "1", "1:121: brackets nest more than 100"),
        ("process main = delay(" + "-" * 40_000 + "1)", "1:9: .*nests more than 100"),
        ("process main = " + "seq (i = 1, 2) " * 3000 + "{}", "1:9: .*nests more than 100"),
        (f"numeric f0(x) = x\n{DOUBLING}\nprocess main = delay(f39(2))", "nest|steps"),
        (f"{BACKWARDS}\nnumeric a0 = 1\nprocess main = delay(a1000)", "nest more than 150"),
        (f"numeric parameter b\nnumeric a0 = b\n{GROWING}\nprocess main = delay(a59)", "parts"),
        ("", "1:1: there is no process to evaluate"),
        ("numeric a = 1", "1:1: there is no process to evaluate"),
        ("process main(x) = delay(x)", "1:9: nothing says the values"),
        ("process parameter main", "1:19: a process cannot be a parameter"),
        ("numeric a\nprocess main = {}", "1:9: 'a' is neither defined nor a parameter"),
        ("numeric parameter a = b\nnumeric parameter b\nprocess main = {}", "1:19: .*constant"),
        ("% " + "x" * 10 + "\n" + "process main = {}\n" * 6000, "longer than 50000 characters"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(model: Loader, text: str, message: str) -> None:
    with pytest.raises(ModelError, match=rf"0\.pam:.*{message}") as caught:
        model(text)
    assert "\n" not in str(caught.value)


def test_kinds_must_agree_between_files(model: Loader) -> None:
    with pytest.raises(ModelError, match=r"1\.pam:1:9: 'a' is a numeric here and a process in"):
        model("process a = {}", "numeric a = 1")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.pam:1:1: cannot be read: No such file"):
        load_model([tmp_path / "none.pam"])
    (tmp_path / "latin.pam").write_bytes(b"process main = {}\n% caf\xe9")
    with pytest.raises(ModelError, match=r"latin\.pam:2:1: is not UTF-8"):
        load_model([tmp_path / "latin.pam"])
    (tmp_path / "long.pam").write_text("% " + "x" * 400_000)
    with pytest.raises(ModelError, match=r"long\.pam:1:1: is longer than 400000 bytes"):
        load_model([tmp_path / "long.pam"])
    with pytest.raises(ModelError, match="at least one file"):
        load_model([])


def test_a_process_shared_many_times_is_compiled_once(model: Loader) -> None:
    found = model(f"process p0 = use(fcfs(0), 1)\n{SHARING}")
    assert evaluate(compile_model(found).T, {}) == 2**59


def test_sizes_are_the_parameters_that_bound_loops_and_choose_servers(model: Loader) -> None:
    found = model(
        """
        numeric parameter N
        numeric parameter P
        numeric parameter heads
        numeric parameter t
        numeric parameter likely
        process main = seq (i = 1, N) if (likely) use(fcfs(i mod P, heads), t)
        """
    )
    assert found.sizes == {"N", "P", "heads"}
    subject = ProcessSubject(found)
    assert subject.bind({"N": 3, "t": 0.5}).numbers == {"N": 3, "t": 0.5}
    for value in (0, -1, 2.5):
        with pytest.raises(RefusedError, match=f"N = {value} must be a whole number of at least 1"):
            subject.bind({"N": value})
    with pytest.raises(RefusedError, match="t = -1 must not be negative"):
        subject.bind({"t": -1})
