"""How processes of this tool begin, and how it keeps out of the way of a user's own modules.

The one package whose name no program beside it has: the others, ``advisor``, ``costdb`` and
``transforms``, are words that users call their own files too.
"""
