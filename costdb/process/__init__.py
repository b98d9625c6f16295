"""The process algebra: terms, their compilation to closed-form costs, and their text form."""
