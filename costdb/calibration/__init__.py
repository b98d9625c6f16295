"""Measures the machine it runs on and fits the models' coefficients to what it saw.

A *section* (:mod:`costdb.calibration.section`) knows what to time and how to fit it; it knows
neither the clock nor the store. The harness launches sections in fresh processes, times their
actions, keeps every raw sample, and puts the fitted parts together to a profile.
"""
