# says: ADV401 loop over `j`
# advise: kernel N=3000 K=90 P=1
# advise: x: f8[N]
# advise: h: f8[K]
# advise: y: f8[N+K-1]
def conv(x, h, y):
    for i in range(x.shape[0]):
        for j in range(h.shape[0]):
            y[i + j] += x[i] * h[j]
    return y
