# numbers: within 1e-3
# The first eight test images, one line each: 784 grey values, top row first.
"${PYTHON:-python3}" - <<'END'
import gzip
path = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz"
pixels = gzip.open(path).read(16 + 8 * 784)[16:]
print("grey values of an image, row by row")
for k in range(8):
    print(",".join(str(v) for v in pixels[784 * k:784 * (k + 1)]))
END
