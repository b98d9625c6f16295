"""The one exception of the expression language."""


class ExprError(ValueError):
    """An expression that cannot be built, read or evaluated; the message is one line."""
