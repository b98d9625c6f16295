"""The papers' own experiments repeated on a machine: what they print beside what was measured.

Import its modules only to validate; they need numpy.
"""
