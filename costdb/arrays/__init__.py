"""The array model: calls of an array library, priced by call, run, element and cache line.

:mod:`costdb.arrays.amounts` says how much of each coefficient a call takes,
:mod:`costdb.arrays.model` prices calls on a machine. Fitting uses the same amounts, so what is
fitted is what is predicted with.
"""
