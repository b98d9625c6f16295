"""Array calls, short programs of them and the loops they stand for: points, actions and fits."""
