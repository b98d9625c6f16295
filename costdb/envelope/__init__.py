"""Polynomials below and above a formula, over a region of its sizes.

:mod:`costdb.envelope.bounding` finds them, :mod:`costdb.envelope.least` compiles from them which of
several formulas is the least: a few multiplications in the place of a whole price.
"""
