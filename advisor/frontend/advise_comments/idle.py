"""Comments that call a function a kernel where no function begins."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.edits import split_lines
from advisor.finding import Remark
from advisor.frontend.advise_comments.directives import AnyDirective, KernelComment

_BEGINS = ("def ", "async def ", "@")


def marks_of_nothing(
    path: str, source: str, directives: tuple[AnyDirective, ...]
) -> Iterator[Remark]:
    """Yield a remark for every ``# advise: kernel`` that does not stand above a function.

    Between the two there may be other comments to the tool, and nothing else.
    """
    comments = [found for found in directives if isinstance(found, KernelComment)]
    if not comments:
        return
    lines = split_lines(source)
    alone = {found.line for found in directives if found.own_line}
    for comment in comments:
        below = comment.line
        while below in alone:
            below += 1
        follows = lines[below - 1].lstrip() if below <= len(lines) else ""
        if not comment.own_line or not follows.startswith(_BEGINS):
            message = "this marks no kernel: no function begins right below it"
            yield Remark(path, "", comment.span, message)
