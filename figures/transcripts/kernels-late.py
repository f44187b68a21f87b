import os
os.environ["TREADLE_CUDA"] = "emulate"
import treadle as td
x = td.arange(4.).to("cuda")
y = x[td.tensor([0, 7]).to("cuda")]
z = 2 * y
z.cpu()
