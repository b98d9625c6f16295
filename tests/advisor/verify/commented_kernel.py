"""A kernel with comments for annotations, which runs as it stands."""


def box_sum_text(size: int, width: int) -> str:
    """Return a box sum by shifts over `size` x `size` elements, with windows of `width`."""
    return f'''"""A kernel."""
import numpy as np
# advise: kernel N={size} b={width}
# advise: image: i4[N, N] over (block(row), none) on mesh(row=4)
def box_sum(image, b):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[:, 1:] = moved[:, :-1]
        moved[:, 0] = 0
        total += moved
    return total
'''
