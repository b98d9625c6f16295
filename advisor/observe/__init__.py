"""Observing one real run of a program: sizes, element types, layouts, messages, ranks."""
