"""The SMP interval model: a superstep's time lies between the best and the worst locality.

:mod:`costdb.smp.functions` holds the two families of cost functions and the price of a superstep,
:mod:`costdb.calibration.supersteps` those that a machine is measured with.
"""
