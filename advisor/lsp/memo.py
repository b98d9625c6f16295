"""What was said of the kernels of open files, as long as nothing that it follows from changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from advisor import engine
from advisor.engine import Options, Ranked
from advisor.ir.kernel import Kernel

MOST_KERNELS = 400


@dataclass(slots=True)
class KernelMemo:
    """Ranks kernels as :func:`advisor.engine.rank_kernel` does, unchanged ones only once.

    A kernel is unchanged where its lines are, with their text, and where all that was read of it
    is the same: declarations elsewhere, imports, sizes, what runs showed. Only the edits of its
    findings may be out of date: they tell whether there are any, and are made anew by the engine
    when somebody wants them.
    """

    _known: dict[object, tuple[object, Ranked]] = field(default_factory=dict)

    def rank(self, path: str, kernel: Kernel, options: Options) -> Ranked:
        """Return what is to be said of a kernel; with plans where they are known already.

        Raises
        ------
        SourceProblem, MachineError, Overtaken
            As the engine does.
        """
        from costdb.machines import load_machine

        context = kernel.context
        first, last = context.whole
        text = context.lines[first - 1 : last]
        read = replace(
            kernel, general=None, context=replace(context, source="", identifiers=frozenset())
        )
        rests_on = read, text, replace(options, plans=True), load_machine(options.machine or "")
        # a function that was seen with several signatures is several kernels
        name = path, kernel.name, tuple(array.dtype for array in kernel.arrays.values())
        for plans in (True, options.plans):
            before, found = self._known.get((name, plans), (None, None))
            if found is not None and before == rests_on:
                return found
        found = engine.rank_kernel(path, kernel, options)
        key = name, options.plans or not found.later
        self._known.pop(key, None)
        self._known[key] = rests_on, found
        if len(self._known) > MOST_KERNELS:
            del self._known[next(iter(self._known))]
        return found
