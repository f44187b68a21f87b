# numbers: within 1e-6
import treadle as td
_ = td.manual_seed(2)
parts = list(td.randn(8))
first, last = sum(parts), sum(parts[::-1])
print(f"{first.item():.9f} {last.item():.9f}")
