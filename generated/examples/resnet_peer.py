# SPDX-License-Identifier: MIT
# Tangled from the chapter "trainings": edit that, not this file.
"""ResNet-20 as `treadle train resnet`, in PyTorch, for comparison.

usage: resnet_peer.py FOLDER [EPOCHS]: the folder holds data_batch_1.bin
"""
import glob
import sys
import torch
from torch import nn
from torch.nn import functional as F

# trainings: the ResNet-20 in PyTorch
class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.more = outside - inside
        self.stride = 2 if self.more else 1
        self.conv1 = nn.Conv2d(inside, outside, 3, self.stride, 1,
                               bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = (nn.BatchNorm2d(outside) for _ in range(2))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        x = x[:, :, ::self.stride, ::self.stride]
        half = self.more // 2
        return F.relu(y + F.pad(x, (0, 0, 0, 0, half, half)))


def resnet20():
    sizes = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
        nn.ReLU(), *map(Block, sizes, sizes[1:]),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out",
                                    nonlinearity="relu")
    return net


# trainings: photographs for PyTorch
def photographs(pattern):
    data = b"".join(open(path, "rb").read()
                    for path in sorted(glob.glob(pattern)))
    rows = torch.frombuffer(bytearray(data), dtype=torch.uint8) \
        .view(-1, 3073)
    return rows[:, 1:].reshape(-1, 3, 32, 32) / 255, rows[:, 0].long()


def cut(x):
    """Each image cut from a larger frame, and mirrored by chance."""
    wide, places = F.pad(x, (4,) * 4), torch.randint(0, 9, (len(x), 2))
    x = torch.stack([image[:, i:i + 32, j:j + 32] for image, (i, j)
                     in zip(wide, places.tolist())])
    return torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)


# trainings: train the ResNet-20 in PyTorch
def main(folder, epochs=20, rate=0.1):
    torch.manual_seed(0)
    (x, y), (asked, right) = (photographs(f"{folder}/{part}*.bin")
                              for part in ("data_batch", "test_batch"))
    net = resnet20()
    sgd = torch.optim.SGD(net.parameters(), rate, 0.9, nesterov=True,
                          weight_decay=5e-4)
    steps = int(epochs) * -(-len(x) // 64)
    plan = torch.optim.lr_scheduler.OneCycleLR(sgd, rate, steps + 1)
    for epoch in range(1, int(epochs) + 1):
        net.train()
        for rows in torch.randperm(len(x)).split(64):
            sgd.zero_grad()
            F.cross_entropy(net(cut(x[rows])), y[rows]).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            sgd.step()
            plan.step()
        net.eval()
        with torch.no_grad():
            named = torch.cat([net(part).argmax(1)
                               for part in asked.split(500)])
        share = 100 * (named == right).double().mean().item()
        print(f"epoch {epoch}: accuracy {share:.4g}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
