"""What a day of camera pictures is put through: plain NumPy, nothing marked for any tool."""

import numpy as np


def column_means(picture):
    means = np.zeros(picture.shape[1])
    for i in range(picture.shape[0]):
        for j in range(picture.shape[1]):
            means[j] += picture[i, j]
    return means / picture.shape[0]


def box_sums(picture, width):
    total = picture.copy()
    for shift in range(1, width):
        total += np.roll(picture, shift, axis=0)
    return total


def distances(points):
    n = len(points)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = np.sqrt(((points[i] - points[j]) ** 2).sum())
    return out


def normalised(picture):
    return (picture - picture.mean(axis=0)) / picture.std(axis=0)


def longest_run(brightness):
    runs = np.array([])
    length = 0
    for value in brightness:
        length = length + 1 if value > 0.3 else 0
        runs = np.append(runs, length)
    return runs.max()


if __name__ == "__main__":
    random = np.random.default_rng(0)
    picture = random.random((1000, 1200))
    print("means", column_means(picture)[:3].round(3))
    print("box sums", box_sums(picture, 25).max().round(3))
    print("distances", distances(random.random((300, 3))).max().round(3))
    print("normalised", normalised(picture).std().round(3))
    print("longest run", longest_run(picture[0]))
