"""SPMD programs as rules see them: who sends what to whom, from which memory, how often.

:mod:`~advisor.ir.spmd.steps` has communicators and partners, :mod:`~advisor.ir.spmd.memory`
arrays and views of them, :mod:`~advisor.ir.spmd.memory` what is sent,
:mod:`~advisor.ir.spmd.steps` the statements of a function, :mod:`~advisor.ir.spmd.program` whole
functions and files, and :mod:`~advisor.ir.spmd.program` what a rule offers.
"""
