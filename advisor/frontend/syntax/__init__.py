"""From text to trees: what is passed over or refused unread, parsing, and how trees are walked."""
