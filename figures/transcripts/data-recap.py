import treadle as td
from treadle.datasets import FashionMNIST
from treadle.utils.data import DataLoader
clothes = FashionMNIST(train=True)
loader = DataLoader(clothes, 64, shuffle=True)
len(clothes), len(loader)
_ = td.manual_seed(0)
images, labels = next(iter(loader))
images.shape, images.dtype, images.max().item()
labels[:12]
