h = 1e-6
def back(x): return x + h - 2 * h + h

back(0.1) - 0.1, back(0.7) - 0.7
