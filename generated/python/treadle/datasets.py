# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Images to learn from, read by the library."""
from . import _C
from .utils.data import (Dataset, TensorDataset, _place,
                         default_collate)


class MNIST(Dataset):
    """Handwritten digits: float32 [784] in 0..1, and a class.

    root: the folder with the four files; None looks where
    TREADLE_DATA says and where Debian puts them.
    """
    name = "mnist"

    def __init__(self, root=None, train=True, transform=None,
                 target_transform=None, download=False):
        self.data, self.targets = _C._images(
            self.name, root and str(root), train)
        self.train = train
        self.transform = transform
        self.target_transform = target_transform

    def __len__(self):
        return len(self.targets)

    def _batch(self, indices):
        """A batch: images [n, 784] and classes [n]."""
        if self.transform or self.target_transform:
            return default_collate([self[i] for i in indices.tolist()])
        return [self._images(indices), self.targets[indices].long()]

    def _images(self, at):
        images = self.data[at].float() / 255
        return images if self.data.ndim > 3 else images.flatten(-2)

    def __getitem__(self, index):
        index = _place(self.name, index, len(self))
        image, label = self._images(index), self.targets[index].item()
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
# files: further names of datasets


class CIFAR10(MNIST):
    """Photographs of ten kinds of things: float32 [3, 32, 32], a class.

    root: the folder with data_batch_1.bin and the others; None looks
    where TREADLE_DATA says.  The first files are enough.
    """
    name = "cifar10"
    classes = ("airplane automobile bird cat deer dog frog horse ship "
               "truck").split()


def read_csv(path, columns=None, dtype=None, delimiter=",", header=True,
             fill=None):
    """The columns of a table of text: {name: tensor or list of str}.

    columns: the names to read, in this order, or all; without a header
    the names are 0, 1, ...  dtype: of all columns, or {name: dtype};
    str keeps text, None takes int64, float32 or text, the first that
    holds all values.  An empty value is `fill`, else NaN among real
    numbers, "" in text, and an error among whole numbers.  A file may
    be packed by gzip.

    Raises OSError for a file that is no such table and ValueError for
    a value of the wrong type; both tell the line.
    """
    table, names = _C._csv_read(path, delimiter.encode())
    if not header:
        names = list(range(len(names)))
    wanted = names if columns is None else list(columns)
    kinds = dtype if isinstance(dtype, dict) else \
        dict.fromkeys(wanted, dtype)
    unknown = {*wanted, *kinds}.difference(names)
    if unknown or len(set(names)) < len(names):
        raise ValueError(f"read_csv: no columns {unknown or 'of'} one "
                         f"name each in {path}, which has {names}")
    return {name: _C._csv_column(table, names.index(name), bool(header),
                                 kinds.get(name), fill)
            for name in wanted}


class TextDataset(TensorDataset):
    """Windows of a text: int64 [length], and the same one further on.

    path: a text in UTF-8.  Characters are numbered by their place in
    `characters`, which are those of the text unless they are given.
    """

    def __init__(self, path, length, characters=None):
        text = bytes(memoryview(_C._bytes_read(path))).decode()
        self.characters = characters or "".join(sorted(set(text)))
        if not 0 < length < len(text):
            raise ValueError(f"TextDataset: length {length} does not "
                             f"fit a text of {len(text)} characters")
        windows = self.encode(text).unfold(0, length + 1, 1)
        super().__init__(windows[:, :-1], windows[:, 1:])

    def encode(self, text):
        """The numbers of the characters of a text: int64 [n]."""
        number = {c: i for i, c in enumerate(self.characters)}
        strange = set(text).difference(number)
        if strange:
            raise ValueError("TextDataset: characters without a number:"
                             f" {sorted(strange)}")
        return _C.tensor([number[c] for c in text], dtype=_C.int64)

    def decode(self, numbers):
        """The text of a tensor or list of numbers."""
        return "".join(self.characters[int(i)] for i in numbers)
