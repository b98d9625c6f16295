"""Rules for loops over elements: their order, array statements, what they fetch and count."""
