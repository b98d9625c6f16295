"""The PGAS model: references to shared data, grouped, each group at its pattern's rate.

:mod:`costdb.pgas.partition` prices groups, :mod:`costdb.pgas.partition` finds them from references.
"""
