"""What predictions of loops leave out that threads share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.ir.statements import Choice, Loop, Statement, Threads, Unrolled

_ALONE = "and the times are those of one thread: nothing says what lines cost that threads fetch"


def about_threads(body: Iterable[Statement]) -> Iterator[str]:
    """Yield a line on each ``prange`` of a kernel, in the order of the source."""
    for statement in body:
        if isinstance(statement, Choice):
            yield from about_threads((*statement.then, *statement.orelse))
        if isinstance(statement, Unrolled):
            yield from dict.fromkeys(about_threads(statement.body))
        if not isinstance(statement, Loop):
            continue
        line = statement.span.start_line
        match statement.threads:
            case Threads.SHARED:
                yield f"the `prange` of line {line} became parallel, {_ALONE}"
            case Threads.ASKED:
                yield f"the `prange` of line {line} may run in parallel, {_ALONE}"
            case Threads.REFUSED:
                yield f"the `prange` of line {line} did not become parallel: priced as sequential"
            case Threads.NO:
                pass
        yield from about_threads(statement.body)
