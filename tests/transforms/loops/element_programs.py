"""Programs as people write them, with loops over elements; none was written for a rule.

Above each function stands what its arguments are. A name in ``LEFT`` has no array program here.
"""

# ruff: noqa
import math

import numpy as np

LEFT = {
    "signed_rests",
    "quantiles",
    "whitened",
    "last_seen",
    "floyd",
    "floyd_if",
    "mandelbrot",
    "gauss_seidel",
    "shifted_by_argument",
}
"""Recurrences, an end that hangs on what is computed, functions of what an iteration binds."""


# advise: kernel
# advise: img: f8[H, W]
# advise: out: f8[H, W]
# advise: t: float
def threshold(img, out, t):
    h, w = img.shape
    for i in range(h):
        for j in range(w):
            if img[i, j] > t:
                out[i, j] = 255.0
            else:
                out[i, j] = 0.0


# advise: kernel
# advise: x: f8[N]
# advise: lo: float
# advise: hi: float
def clip_all(x, lo, hi):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = min(max(x[i], lo), hi)
    return y


# advise: kernel
# advise: x: f8[N, M]
def relu(x):
    out = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = max(0.0, x[i, j])
    return out


# advise: kernel
# advise: x: f8[N]
def negative_to_zero(x):
    for i in range(x.shape[0]):
        if x[i] < 0:
            x[i] = 0


# advise: kernel
# advise: img: f8[H, W]
def box(img):
    h, w = img.shape
    out = np.zeros((h, w))
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            s = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    s += img[i + di, j + dj]
            out[i, j] = s / 9.0
    return out


# advise: kernel
# advise: img: f8[H, W]
def sobel(img):
    h, w = img.shape
    out = np.zeros((h, w))
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            gx = (
                img[i - 1, j + 1]
                + 2 * img[i, j + 1]
                + img[i + 1, j + 1]
                - img[i - 1, j - 1]
                - 2 * img[i, j - 1]
                - img[i + 1, j - 1]
            )
            gy = (
                img[i + 1, j - 1]
                + 2 * img[i + 1, j]
                + img[i + 1, j + 1]
                - img[i - 1, j - 1]
                - 2 * img[i - 1, j]
                - img[i - 1, j + 1]
            )
            out[i, j] = np.sqrt(gx * gx + gy * gy)
    return out


# advise: kernel
# advise: rgb: f8[H, W, C]
def grey(rgb):
    h, w = rgb.shape[0], rgb.shape[1]
    out = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            out[i, j] = 0.299 * rgb[i, j, 0] + 0.587 * rgb[i, j, 1] + 0.114 * rgb[i, j, 2]
    return out


# advise: kernel
# advise: pos: f8[N, D]
# advise: vel: f8[N, D]
# advise: acc: f8[N, D]
# advise: dt: float
def leapfrog(pos, vel, acc, dt):
    n = pos.shape[0]
    for i in range(n):
        for d in range(3):
            vel[i, d] += acc[i, d] * dt
            pos[i, d] += vel[i, d] * dt
            if pos[i, d] < 0.0:
                pos[i, d] += 1.0
            elif pos[i, d] > 1.0:
                pos[i, d] -= 1.0


# advise: kernel
# advise: vel: f8[N, D]
# advise: mass: f8[N]
def kinetic(vel, mass):
    e = 0.0
    for i in range(vel.shape[0]):
        e += 0.5 * mass[i] * (vel[i, 0] ** 2 + vel[i, 1] ** 2 + vel[i, 2] ** 2)
    return e


# advise: kernel
# advise: u: f8[N]
# advise: c: f8[N]
# advise: dt: float
# advise: dx: float
def upwind(u, c, dt, dx):
    n = len(u)
    new = u.copy()
    for i in range(1, n - 1):
        if c[i] > 0:
            new[i] = u[i] - c[i] * dt / dx * (u[i] - u[i - 1])
        else:
            new[i] = u[i] - c[i] * dt / dx * (u[i + 1] - u[i])
    return new


# advise: kernel
# advise: x: f8[N]
def moving_sum(x, w: int):
    n = len(x)
    out = np.zeros(n - w + 1)
    for i in range(n - w + 1):
        s = 0.0
        for k in range(w):
            s += x[i + k]
        out[i] = s
    return out


# advise: kernel
# advise: x: f8[N]
# advise: h: f8[K]
def convolve(x, h):
    n = len(x)
    m = len(h)
    y = np.zeros(n - m + 1)
    for i in range(n - m + 1):
        for k in range(m):
            y[i] += x[i + k] * h[k]
    return y


# advise: kernel
# advise: x: f8[N]
# advise: idx: i8[M]
def gather(x, idx):
    out = np.empty(len(idx))
    for i in range(len(idx)):
        out[i] = x[idx[i]]
    return out


# advise: kernel
# advise: a: f8[N, M]
def row_means(a):
    n, m = a.shape
    out = np.zeros(n)
    for i in range(n):
        out[i] = np.mean(a[i, :])
    return out


# advise: kernel
# advise: a: f8[N, D]
# advise: b: f8[M, D]
def dist(a, b):
    n, d = a.shape
    m = b.shape[0]
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(d):
                diff = a[i, k] - b[j, k]
                s += diff * diff
            out[i, j] = np.sqrt(s)
    return out


# advise: kernel
# advise: a: f8[N, D]
# advise: b: f8[M, D]
def dist_rows(a, b):
    n = a.shape[0]
    m = b.shape[0]
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            out[i, j] = np.sqrt(np.sum((a[i] - b[j]) ** 2))
    return out


# advise: kernel
# advise: a: f8[N]
# advise: b: f8[M]
def outer(a, b):
    out = np.zeros((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            out[i, j] = a[i] + b[j]
    return out


# advise: kernel
# advise: x: f8[N]
# advise: y: f8[N]
def every_other(x, y):
    for i in range(0, len(x), 2):
        y[i] = x[i] * 2.0


# advise: kernel
# advise: x: f8[N]
# advise: t: float
def count_big(x, t):
    n = 0
    for i in range(len(x)):
        if x[i] > t:
            n += 1
    return n


# advise: kernel
# advise: a: f8[N, N]
def triangle(a):
    n = a.shape[0]
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            out[i, j] = a[i, j]
    return out


# advise: kernel
# advise: a: f8[N, N]
def symmetrise(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            a[j, i] = a[i, j]


# advise: kernel
# advise: grid: i8[N, M]
# advise: new: i8[N, M]
def life_inner(grid, new):
    n, m = grid.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            s = (
                grid[i - 1, j - 1]
                + grid[i - 1, j]
                + grid[i - 1, j + 1]
                + grid[i, j - 1]
                + grid[i, j + 1]
                + grid[i + 1, j - 1]
                + grid[i + 1, j]
                + grid[i + 1, j + 1]
            )
            if s == 3 or (s == 2 and grid[i, j] == 1):
                new[i, j] = 1
            else:
                new[i, j] = 0


# advise: kernel
# advise: d: f8[N, N]
def floyd(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


# advise: kernel
# advise: d: f8[N, N]
def floyd_if(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


# advise: kernel
# advise: a: f8[N, N]
def lu(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


# advise: kernel
# advise: a: f8[N, K]
# advise: b: f8[K, M]
def matmul(a, b):
    n, k = a.shape
    m = b.shape[1]
    c = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            for p in range(k):
                c[i, j] += a[i, p] * b[p, j]
    return c


# advise: kernel
# advise: l: f8[N, N]
# advise: b: f8[N]
def forward(l, b):
    n = l.shape[0]
    x = np.zeros(n)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= l[i, j] * x[j]
        x[i] = s / l[i, i]
    return x


# advise: kernel
# advise: re: f8[N]
# advise: im: f8[M]
# advise: maxiter: int
def mandelbrot(re, im, maxiter):
    n = len(re)
    m = len(im)
    out = np.zeros((m, n), dtype=np.int64)
    for i in range(m):
        for j in range(n):
            c = complex(re[j], im[i])
            z = 0j
            for k in range(maxiter):
                if abs(z) > 2.0:
                    break
                z = z * z + c
                out[i, j] = k
    return out


# advise: kernel
# advise: a: f8[N, M]
# advise: q: float
def smooth_rows(a, q):
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = q * a[i, j - 1] + (1.0 - q) * a[i, j]


# advise: kernel
# advise: v: f8[N, M]
def normalised(v):
    for i in range(v.shape[0]):
        total = 0.0
        for j in range(v.shape[1]):
            total += v[i, j] * v[i, j]
        for j in range(v.shape[1]):
            v[i, j] = v[i, j] / np.sqrt(total)


# advise: kernel
# advise: pos: f8[N]
# advise: vel: f8[N]
# advise: size: float
def bounce(pos, vel, size):
    for i in range(pos.shape[0]):
        if pos[i] < 0.0 or pos[i] > size:
            vel[i] = -vel[i]


# advise: kernel
# advise: u: f8[N]
def red_sweep(u):
    for i in range(1, len(u) - 1, 2):
        u[i] = 0.5 * (u[i - 1] + u[i + 1])


# advise: kernel
# advise: u: f8[N]
def gauss_seidel(u):
    for i in range(1, len(u) - 1):
        u[i] = 0.5 * (u[i - 1] + u[i + 1])


# advise: kernel
# advise: x: f8[N]
def positive_sum(x):
    s = 0.0
    for v in x:
        if v > 0:
            s += v
    return s


# advise: kernel
# advise: x: f8[N]
# advise: y: f8[N]
def polynomial(x, y):
    for i, v in enumerate(x):
        y[i] = (2.0 * v + 1.0) * v - 3.0


# advise: kernel
# advise: a: f8[N, M]
# advise: b: f8[N, M]
def agreement(a, b):
    t = 0.0
    for p, q in zip(a, b):
        t += p @ q
    return t


# advise: kernel
# advise: a: f8[N, M]
def centred(a):
    for row in a:
        row[:] = row - row.max()


# advise: kernel
# advise: x: f8[N]
def last_seen(x):
    for v in x:
        if v > 0:
            x[0] = v
    return v


# advise: kernel
# advise: x: i8[N]
# advise: w: f8[N]
def where_it_is_set(x, w):
    out = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] - 1:
            out[i] = w[i]
    return out


# advise: kernel
# advise: x: f8[N]
def set_ones(x):
    n = 0
    for v in x:
        if v:
            n += 1
    return n


# advise: kernel
# advise: img: f8[H, W]
# advise: cx: float
# advise: r: float
def aperture(img, cx, r):
    total = 0.0
    for y in range(img.shape[0]):
        for x in range(img.shape[1]):
            if (x - cx) ** 2 + (y - 1.5) ** 2 <= r * r:
                total += img[y, x]
    return total


# advise: kernel
# advise: a: f8[N, N]
def plus_trace(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


# advise: kernel
# advise: a: f8[N, N]
# advise: out: f8[N]
def above_diagonal(a, out):
    for i in range(a.shape[0] - 1):
        out[i] = 2 * a[i, i + 1]


# advise: kernel
# advise: x: f8[N]
def rosenbrock_gradient(x):
    n = len(x)
    g = np.zeros(n)
    for i in range(n - 1):
        g[i] += -400 * x[i] * (x[i + 1] - x[i] * x[i]) - 2 * (1 - x[i])
        g[i + 1] += 200 * (x[i + 1] - x[i] * x[i])
    return g


# advise: kernel
# advise: w: f8[N, N]
# advise: p: f8[N]
def others(w, p):
    for i in range(len(p)):
        for j in range(len(p)):
            if i != j:
                p[i] += w[i, j]


# advise: kernel
# advise: reads: i8[N, L]
def hamming(reads):
    n = len(reads)
    d = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            for p, q in zip(reads[i], reads[j]):
                if p != q:
                    d[i, j] += 1
    return d


# advise: kernel
# advise: x: f8[N]
# advise: k: float
def despiked(x, w: int, k):
    out = x.copy()
    for i in range(w, len(x) - w):
        window = x[i - w : i + w + 1]
        med = np.median(window)
        mad = np.median(np.abs(window - med))
        if np.abs(x[i] - med) > k * mad:
            out[i] = med
    return out


# advise: kernel
# advise: a: f8[N, D]
# advise: out: f8[N]
# advise: t: float
def rows_above(a, out, t):
    for i in range(a.shape[0]):
        top = a[i].max()
        if top > t:
            out[i] = top
        else:
            out[i] = a[i].sum()


# advise: kernel
# advise: field: f8[T, H, W]
# advise: w: f8[H]
# advise: out: f8[T]
def area_mean(field, w, out):
    for t in range(field.shape[0]):
        num = den = 0.0
        for i in range(field.shape[1]):
            for j in range(field.shape[2]):
                if not np.isnan(field[t, i, j]):
                    num += w[i] * field[t, i, j]
                    den += w[i]
        out[t] = num / den


# advise: kernel
# advise: x: f8[N, D]
# advise: mean: f8[D]
# advise: cov: f8[D, D]
def mahalanobis(x, mean, cov):
    d2 = np.zeros(len(x))
    for i, p in enumerate(x):
        diff = p - mean
        d2[i] = diff @ np.linalg.inv(cov) @ diff
    return d2


# advise: kernel
# advise: data: f8[N]
# advise: radius: f8[N]
def mean_by_ring(data, radius, w: int):
    top = radius.max()
    out = np.zeros(w)
    for i in range(w):
        low = top * i / w
        high = top * (i + 1) / w
        ring = np.logical_and(low <= radius, radius < high)
        out[i] = data[ring].mean()
    return out


# advise: kernel
# advise: x: f8[N]
# advise: keys: i8[N]
# advise: sums: f8[M]
# advise: counts: i8[M]
def by_key(x, keys, sums, counts):
    for k in range(sums.shape[0]):
        sums[k] = x[keys == k].sum()
        counts[k] = np.sum(keys == k)


# advise: kernel
# advise: x: f8[N]
# advise: edges: f8[M+1]
# advise: counts: i8[M]
def within(x, edges, counts):
    edges = np.sort(edges)
    for k in range(counts.shape[0]):
        counts[k] = np.sum((x >= edges[k]) & (x < edges[k + 1]))


# advise: kernel
# advise: a: f8[N, D]
# advise: s: f8[N]
def by_first(a, s):
    for i in range(a.shape[0]):
        if a[i, 0] > 0:
            s[i] = 3
        elif a[i, 0] < -1:
            s[i] = a[i, 1]
        else:
            top = a[i].max()
            s[i] += top


# advise: kernel
# advise: x: f8[N]
# advise: qs: f8[M]
def quantiles(x, qs):
    table = np.zeros(len(qs))
    for i, q in enumerate(qs):
        table[i] = np.percentile(x, abs(q))
    return table


# advise: kernel
# advise: x: f8[N, D]
# advise: cov: f8[D, D]
# advise: out: f8[N, D]
def whitened(x, cov, out):
    for i in range(len(x)):
        m = cov + np.eye(3) * 20
        out[i] = np.linalg.inv(m) @ x[i]


# advise: kernel
# advise: x: f8[N]
# advise: y: f8[N]
def bearings(x, y):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = math.degrees(math.atan2(y[i], x[i])) + math.asin(math.sin(math.hypot(x[i], 2.0)))
    return out


# advise: kernel
# advise: x: f8[N]
def whole_steps(x):
    out = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        out[i] = math.floor(x[i] * 3) - math.ceil(x[i])
    return out


# advise: kernel
# advise: x: f8[N]
def logs_of_numbers(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        if math.isnan(x[i]) or x[i] <= 0:
            out[i] = -1.0
        else:
            out[i] = math.log10(x[i]) * math.erf(0.5)
    return out


# advise: kernel
# advise: s: f8[H, W]
def bonds(s):
    h, w = s.shape
    out = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            out[i, j] = s[i, j] * (s[(i + 1) % h, j] + s[(i - 1) % h, j] + s[i, (j + 2) % w])
    return out


# advise: kernel
# advise: x: f8[N]
def periodic_mean(x):
    n = len(x)
    y = np.empty(n)
    for i in range(n):
        y[i] = (x[(i - 1) % n] + x[i] + x[(i + 1) % n]) / 3.0
    return y


# advise: kernel
# advise: g: f8[N]
# advise: at: i8[M]
# advise: v: f8[M]
def stored_at_places(g, at, v):
    for i in range(at.shape[0]):
        g[at[i]] = v[i]


# advise: kernel
# advise: x: f8[N]
# advise: w: f8[N]
def signed_rests(x, w):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = math.remainder(x[i], 0.7) + math.fmod(w[i], 0.3)
    return out


# advise: kernel
# advise: s: f8[H, W]
# advise: k: int
def shifted_by_argument(s, k):
    h, w = s.shape
    out = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            out[i, j] = s[(i + k) % h, j]
    return out
