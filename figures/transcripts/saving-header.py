import treadle as td
from treadle.safetensors import save
data = save({"w": td.ones(2, 3), "b": td.zeros(3, dtype=td.uint8)}, {"epoch": "3"})
len(data), int.from_bytes(data[:8], "little")
print(data[8:-27].decode().replace(':{"', ':\n  {"').strip())
