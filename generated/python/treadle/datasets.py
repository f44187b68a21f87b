# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Images to learn from, read by the library."""
from . import _C
from .utils.data import Dataset, _place, default_collate


class MNIST(Dataset):
    """Handwritten digits: float32 [784] in 0..1, and a class.

    root: the folder with the four files; None looks where
    TREADLE_DATA says and where Debian puts them.
    """
    name = "mnist"

    def __init__(self, root=None, train=True, transform=None,
                 target_transform=None, download=False):
        root = None if root is None else str(root)
        self._dataset, self.data, self.targets = _C._images(
            self.name, root, train)
        self.train = train
        self.transform = transform
        self.target_transform = target_transform

    def __len__(self):
        return len(self.targets)

    def _batch(self, indices):
        """A batch: images [n, 784] and classes [n]."""
        if self.transform or self.target_transform:
            return default_collate([self[i] for i in indices.tolist()])
        return list(_C._batch(self._dataset, indices))

    def __getitem__(self, index):
        index = _place(self.name, index, len(self))
        images, labels = _C._batch(self._dataset, _C.tensor([index]))
        image, label = images[0], labels[0].item()
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label


class FashionMNIST(MNIST):
    """Ten kinds of clothes, in the same form."""
    name = "fashion-mnist"


def read_idx(path):
    """The uint8 tensor of an IDX file, plain or compressed."""
    return _C._idx_read(path)
