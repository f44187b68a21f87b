# SPDX-License-Identifier: MIT
# Tangled from the chapter "first-cloth": edit that, not this file.
import gzip


# first-cloth: a rule for trousers
def brightness(picture, *columns):
    return sum(picture[28 * row + column] for row in range(16, 26)
               for column in columns) / 20


def trousers(picture):
    gap, legs = brightness(picture, 13, 14), brightness(picture, 10, 17)
    return gap < 60 and legs > 100


folder = "/usr/share/datasets/fashion-mnist/t10k-"
pixels = gzip.open(folder + "images-idx3-ubyte.gz").read()[16:]
labels = gzip.open(folder + "labels-idx1-ubyte.gz").read()[8:]
pictures = [pixels[784 * n:784 * n + 784] for n in range(10000)]
said = [trousers(p) for p in pictures]
found = sum(s and t == 1 for s, t in zip(said, labels))
no_gap = sum(t == 1 and brightness(p, 13, 14) >= 60
             for p, t in zip(pictures, labels))
print(f"trousers found:           {found} of {labels.count(1)}")
print(f"missed for want of a gap: {no_gap}")
print(f"other things called that: {sum(said) - found}")
