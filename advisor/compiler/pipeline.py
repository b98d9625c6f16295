"""The compiler pass: it looks at what others found and changes nothing."""

from __future__ import annotations

from typing import Any

from numba.core.compiler import Compiler, CompilerBase
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import NopythonTypeInference, ParforPreLoweringPass

from advisor.compiler.record import guarded, note


@register_pass(mutates_CFG=False, analysis_only=True)
class ObserveFacts(AnalysisPass):  # type: ignore[misc]
    """Note types, layouts and parallel loops of a function; never fails and never mutates."""

    _name = "advise_observe_facts"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Note the facts of a function.

        Parameters
        ----------
        state : numba.core.compiler.StateDict

        Returns
        -------
        bool
            False: nothing was changed.
        """
        with guarded("looking at a compiled function"):
            note(state)
        return False


def with_facts(pipelines: list[Any]) -> list[Any]:
    """Add the pass to pipelines of numba, after parallel loops are found.

    A pipeline that infers no types, as in object mode, stays as it is.
    """
    for pipeline in pipelines:
        plain = list(pipeline.passes)
        with guarded("adding a pass to the compiler"):
            try:
                _add_to(pipeline)
            except Exception:
                # half of a change would leave a pipeline that numba refuses to run
                pipeline.passes[:] = plain
                pipeline.finalize()
                raise
    return pipelines


def _add_to(pipeline: Any) -> None:
    passes = [kind for kind, _ in pipeline.passes]
    for late in (ParforPreLoweringPass, NopythonTypeInference):
        if late in passes and ObserveFacts not in passes:
            pipeline.add_pass_after(ObserveFacts, late)
            pipeline.finalize()
            return


class AdvisedCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's own compiler with one more pass, for ``pipeline_class=``."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipelines with the pass in them."""
        return with_facts(define_plainly(self))


define_plainly = Compiler.define_pipelines
