"""The lines model: communication and local work priced by the cache lines they touch.

:mod:`costdb.lines.coefficients` bounds the lines of a block in closed form,
:mod:`costdb.lines.model` prices work, :mod:`costdb.calibration.fitting` fits coefficients (it needs
numpy, so it is imported only where something is fitted).
"""
