# numbers: 0
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@cat > build/rule.py <<'END'
@import gzip
@folder = "/usr/share/datasets/fashion-mnist/t10k-"
@pixels = gzip.open(folder + "images-idx3-ubyte.gz").read()[16:]
@labels = gzip.open(folder + "labels-idx1-ubyte.gz").read()[8:]
@def trousers(picture):
@    rows = [picture[28 * r:28 * r + 28] for r in range(16, 26)]
@    gap = sum(row[13] + row[14] for row in rows) / 20
@    legs = sum(row[10] + row[17] for row in rows) / 20
@    return gap < 60 and legs > 100
@said = [trousers(pixels[784 * n:784 * n + 784]) for n in range(10000)]
@found = sum(s and t == 1 for s, t in zip(said, labels))
@print(f"trousers found:           {found} of {sum(t == 1 for t in labels)}")
@gap = lambda n: sum(pixels[784 * n + 28 * r + 13] + pixels[784 * n + 28 * r + 14] for r in range(16, 26)) / 20
@print(f"missed for want of a gap: {sum(t == 1 and gap(n) >= 60 for n, t in enumerate(labels))}")
@print(f"other things called that: {sum(said) - found}")
@END
sed -n 5,9p build/rule.py
python3 build/rule.py
@rm -f build/rule.py
