"""Programs of which a part is not understood: what is read all the same, and what is shown."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from advisor.engine import FileResult, Options, check_source, seen_functions
from advisor.finding import Applicability, Verdict
from advisor.frontend.kernels import read_kernels
from advisor.ir.functions import names_around
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind, Loop, Unknown, walk
from advisor.ir.values import Called, Chosen, Read, parts_of
from advisor.ir.waiting import what_waits


def of(body: str) -> str:
    return "import numpy as np\n\n\n" + dedent(body)


def checked(body: str) -> FileResult:
    return check_source("a.py", of(body), Options("node2026", {}, (), (), None))


def kernel_of(body: str) -> Kernel:
    source = of(body)
    seen = seen_functions("a.py", source, Options(None, {}, (), (), None))
    (kernel,) = read_kernels("a.py", source, seen)
    return kernel


def drawn(kernel: Kernel) -> list[str]:
    binds = (one for one in walk(kernel.body) if isinstance(one, Bind))
    values = (one.value for one in binds)
    return [one.function for one in values if isinstance(one, Called) and one.stated]


NOISY = """
    def noisy(x, n, {given}):
        y = np.zeros(n)
        e = 0.5 * {of}.normal(0.0, 1.0, n) + {of}.random(n)
        for i in range(n):
            y[i] = x[i] * e[i]
        return y
"""


def test_draws_of_what_is_given_stand_before_their_statement() -> None:
    kernel = kernel_of(NOISY.format(given="rng", of="rng"))
    assert drawn(kernel) == ["random.normal", "random.random"]
    assert not any(isinstance(one, Unknown) for one in walk(kernel.body))


def test_draws_are_known_by_names_that_are_imported() -> None:
    body = dedent(NOISY.format(given="k", of="np.random")).replace("np.random.", "")
    kernel = kernel_of(f"from numpy.random import normal, random\n{body}")
    assert drawn(kernel) == ["random.normal", "random.random"]


def test_what_has_a_number_is_no_generator() -> None:
    kernel = kernel_of(NOISY.format(given="rng: float", of="rng"))
    assert not drawn(kernel)


def test_a_draw_is_neither_left_out_nor_repeated() -> None:
    body = """
        def energies(m, n, rng):
            out = np.zeros(n)
            for k in range(n):
                out[k] = np.sum(m * rng.standard_normal(len(m)) ** 2)
            return out
    """
    assert not [one for one in checked(body).findings if one.fix is not None]


def test_a_range_that_only_data_know_is_read_with_its_index() -> None:
    body = """
        def rows(first, places, w, x):
            n = len(first) - 1
            out = np.zeros(n)
            for i in range(n):
                for p in range(first[i], first[i + 1]):
                    out[i] += w[p] * x[places[p]] * np.sqrt(w[p])
            return out
    """
    kernel = kernel_of(body)
    inner = [one for one in walk(kernel.body) if isinstance(one, Loop)][1]
    assert inner.stated
    assert inner.variable.startswith("p")


PARTLY = """
    def partly(x, y):
        out = np.zeros(len(x))
        s = 0.0
        for i in range(len(x)):
            out[i] = np.polyval([1.0, x[i], {last}], np.sin(y[i])) * np.cos(x[i])
            {after}
        return out
"""


def test_steps_that_are_not_understood_count_where_iterations_do_not_wait() -> None:
    (shown,) = checked(PARTLY.format(last="y[i]", after="pass")).findings
    assert shown.code == "ADV401"
    assert shown.fix is None
    kernel = kernel_of(PARTLY.format(last="y[i]", after="pass"))
    assert [one.steps for one in walk(kernel.body) if isinstance(one, Unknown)] == [(5, 1, 3)]
    assert not checked(PARTLY.format(last="s", after="s = out[i] - s * s")).findings


def loop_of(body: str) -> ast.For:
    return next(one for one in ast.walk(ast.parse(dedent(body))) if isinstance(one, ast.For))


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("out[i] = np.linalg.det(m[i])", False),
        ("out[i] = np.fft.fft(m[i])[0].real", False),
        ("out[i] = np.random.normal()", True),
        ("grown = np.append(grown, m[i, 0])", False),
        ("grown = np.concatenate([grown, m[i]])", False),
        ("grown = np.append(grown, grown[0] + m[i, 0])", True),
        ("grown = np.append(m[i], 1.0)\n    out[i] = len(grown)", False),
    ],
)
def test_functions_of_parts_of_the_library_change_nothing(line: str, waits: bool) -> None:
    source = f"import numpy as np\nfor i in range(n):\n    {line}\n"
    loop = next(one for one in ast.parse(source).body if isinstance(one, ast.For))
    assert bool(what_waits(loop, names_around(source, loop.lineno))) == waits


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("np.argsort(x)[:k]", True),
        ("np.argsort(x)[-k:]", True),
        ("np.argsort(x)[::-1][:k]", True),
        ("np.argsort(x)", False),
    ],
)
def test_places_of_a_few_elements_are_shown(text: str, told: bool) -> None:
    from transforms.loops.array_algebra import TRANSFORM

    kernel = kernel_of(
        f"def f(x, k):\n    y = x.sum(axis=1)\n    return {text.replace('x', 'y')}\n"
    )
    found = [one for one in TRANSFORM.propose(kernel) if "argpartition" in one.title]
    assert len(found) == told
    assert all(one.legality.applicability is Applicability.DISPLAY for one in found)
    assert not any(one.edits() for one in found)


def test_what_grows_shares_nothing_with_what_it_is_made_of() -> None:
    body = """
        def grown(px):
            c = np.array([])
            for t in range(1, len(px)):
                c = np.append(c, abs(px[t] - px[t - 1]))
            return c
    """
    assert "px" not in kernel_of(body).aliases


def test_elements_that_are_stored_share_nothing_with_what_they_were() -> None:
    body = """
        def correlations(a, index):
            z = index - index.mean()
            r = np.full((a.shape[1], 4), np.nan)
            rows = [z]
            for j in range(a.shape[1]):
                r[j, 0] = np.corrcoef(a[:, j], z)[0, 1]
                r[j][r[j] > 1.0] = z[0]
                rows[0] = a[j]
            return r
    """
    aliases = kernel_of(body).aliases
    assert "r" not in aliases
    # a list leads to what is put into it
    assert {"a", "z"} <= aliases


def test_what_is_as_long_as_a_list_is_known_to_be() -> None:
    body = """
        def counted(texts, n):
            words = sorted(set(" ".join(texts).split()))
            tf = np.zeros((n, len(words)))
            df = np.zeros(len(words))
            for j in range(len(words)):
                for d in range(n):
                    if tf[d, j] > 0:
                        df[j] += 1
            return df, words.index("a")
    """
    kernel = kernel_of(body)
    assert kernel.locals["tf"].extents[1] == kernel.locals["df"].extents[0]
    grows = body.replace("tf =", "words.append('b')\n            tf =")
    assert "tf" not in kernel_of(grows).locals


MASKS = """
    def chosen(a, b, m):
        k = b[0] > 0.0
        p = a[k].sum(axis=0)
        q = a[k, 1].max()
        r = a[2, k]
        s = a[:, k]
        return p, q, r, s
"""


def test_a_sum_that_a_call_makes_anything_is_no_number() -> None:
    body = """
        def f(x, strange):
            total = 0
            for d in range(3):
                total += strange(x[d])
                for n in range(4):
                    total += np.sum(x[d] * n)
            return total
    """
    assert any(isinstance(one, Unknown) for one in walk(kernel_of(body).body))


def test_masks_choose_rows_and_elements_of_rows() -> None:
    source = of(MASKS).replace(
        "    k =", "    # advise: a: f8[N, N]\n    # advise: b: f8[N, N]\n    k ="
    )
    (kernel,) = read_kernels("a.py", source.replace("def", "# advise: kernel\ndef"))
    assert not any(isinstance(one, Unknown) for one in walk(kernel.body))
    rows = [one for b in walk(kernel.body) if isinstance(b, Bind) for one in parts_of(b.value)]
    chosen = [one for one in rows if isinstance(one, Chosen)]
    assert [len(one.operand.region) for one in chosen if isinstance(one.operand, Read)]


LISTS = """
    def spread(rows):
        s = np.zeros(len(rows))
        for i in range(len(rows)):
            s[i] = np.sum((rows[i] - rows[0]) ** 2)
        return s


    def main():
        rows = []
        for k in range(40):
            rows.append(np.load(str(k)))
        for _ in range(40):
            print(spread(rows))


    main()
"""


def test_lists_of_arrays_are_read_as_arrays_and_edits_are_for_the_reader() -> None:
    found = [one for one in checked(LISTS).findings if one.kernel == "spread"]
    assert found
    fixes = [one.fix for one in found if one.fix is not None]
    assert {one.applicability for one in fixes} == {Applicability.DISPLAY}
    assert any("`rows` may be a list" in one.legality for one in fixes)


@pytest.mark.parametrize(
    "shown",
    ['"took", done - start', 'f"{done - start:.2f} s"', "x[0], len(x)", '"{} s".format(done)'],
)
def test_what_is_shown_at_the_end_hides_no_gain(shown: str) -> None:
    body = f"""
        import time

        def work(x):
            start = time.time()
            y = np.zeros(len(x))
            for i in range(len(x)):
                y[i] = x[i] * 2.0
            done = time.perf_counter()
            print({shown})
            return y

        work(np.ones(300_000))
    """
    (finding,) = checked(body).findings
    assert finding.verdict is Verdict.GAIN


def test_what_only_unread_parts_use_takes_the_space_of_no_other() -> None:
    found = checked("""
        # advise: kernel N=300
        # advise: v: f8[M]
        def f(v, step, N):
            rows = np.zeros((0, N))
            for _ in range(N):
                rows = np.vstack([rows, np.full(N, -1.0)])
                step(v)
            return rows
    """)
    (finding,) = found.findings
    assert finding.code == "ADV507"
    assert finding.prediction is not None


def test_what_a_with_in_brackets_holds_is_read() -> None:
    body = """
    def first(x, path):
        with (
            open(path) as one,
        ):
            for k in range(len(x)):
                x[k] += 1.0
        return x
    """
    (found,) = checked(body).findings
    assert found.code == "ADV401"


@pytest.mark.parametrize(
    "body",
    [
        """
        def first(x, n):
            if any(v > 0.5 for v in x):
                for k in range(n):
                    x[k] += 1.0
            return x
        """,
        """
        def points(x, p, n, gamma):
            s = x
            for i in range(n):
                s = np.hstack((s, x + gamma * p[:, i:i + 1]))
            return s
        """,
    ],
)
def test_loops_behind_a_condition_and_pieces_of_what_grows_are_read(body: str) -> None:
    coverage = checked(body).coverage
    assert len(coverage.analysed) == 1
    assert not coverage.not_understood
