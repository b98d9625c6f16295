"""What several ranks do: messages, collectives, pickles, one-sided references, work at once."""
