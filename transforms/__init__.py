"""The choices: one module each, in folders by what they rewrite.

A transform sees the kernel's intermediate form and nothing else.

It proposes variants with a legality argument, and rewrites source only when somebody looks.
"""
