# quiet: ADV101
# unknown: no function begins right below
"""A comment that marks nothing must not pass for one that does."""

import numpy as np

# advise: kernel N=1000  # <--
LIMIT = 3


def kernel(image):
    return image
