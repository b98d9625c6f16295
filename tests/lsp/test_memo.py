"""Which kernels are ranked again after an edit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from advisor import engine
from advisor.engine import FileResult, Options, check_source
from advisor.finding import Ranked
from advisor.ir.kernel import Kernel
from advisor.lsp.analyses import KernelMemo
from tests.lsp.typed_files import PLANNED

BRIEF = Options("t3e", {}, (), (), 1.01, details=False, plans=False)
Checked = Callable[[str, Options], tuple[FileResult, list[str]]]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Checked:
    """Return what checks a text with one memo, and tells which kernels were ranked for it."""
    memo, ranked, by_text = KernelMemo(), list[str](), dict[str, FileResult]()
    rank_kernel = engine.rank_kernel

    def counted(path: str, kernel: Kernel, options: Options) -> Ranked:
        ranked.append(kernel.name)
        return rank_kernel(path, kernel, options)

    def check(text: str, options: Options) -> tuple[FileResult, list[str]]:
        with monkeypatch.context() as patched:
            patched.setattr(engine, "rank_kernel", counted)
            ranked.clear()
            found = check_source("kernels.py", text, options, memo.rank)
        if text not in by_text:
            by_text[text] = check_source("kernels.py", text, options)
        wanted = by_text[text]
        assert found.findings == wanted.findings
        assert set(found.remarks) >= set(wanted.remarks)
        return found, list(ranked)

    return check


def test_only_kernels_that_an_edit_concerns_are_ranked_again(checked: Checked) -> None:
    both = ["eliminate", "smooth"]
    assert checked(PLANNED, BRIEF)[1] == both
    for text, again in (
        (PLANNED, []),
        (PLANNED.replace("before\n", "behind\n"), ["smooth"]),
        (PLANNED.replace("[:, 1:]", "[:, 2:]").replace("[:, :-1]", "[:, :-2]"), ["smooth"]),
        (PLANNED.replace("shape[0] - 1", "shape[0] - 2"), ["eliminate"]),
        (PLANNED.replace("layers = 3", "layers = 3  # above all"), []),
        (PLANNED.replace("rank=16", "rank=8"), both),
        (PLANNED.replace("layers = 3", "layers = 4"), both),
        (PLANNED.replace("layers", "np"), both),
        (f"\n{PLANNED}", both),
    ):
        assert checked(text, BRIEF)[1] == again, text
        checked(PLANNED, BRIEF)
