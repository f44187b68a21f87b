# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Dataset, DataLoader and what lies between."""
from .. import _C
from .._C import Tensor


class Dataset:
    """Something with __len__ and __getitem__."""

    def __getitem__(self, index):
        raise NotImplementedError


class TensorDataset(Dataset):
    """Tensors of equal first dimension, item by item."""

    def __init__(self, *tensors):
        shapes = [list(t.shape) for t in tensors]
        if not all(shapes) or len({s[0] for s in shapes}) != 1:
            raise ValueError("TensorDataset: expected tensors of equal "
                             f"length, got shapes {shapes}")
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors[0])

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def _batch(self, indices):
        """A batch at once, already collated."""
        return tuple(_C.index_select(t, 0, indices)
                     for t in self.tensors)


class Subset(Dataset):
    """Some items of a dataset, by their indices."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, list(indices)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]


def default_collate(items):
    """One batch of a list of items of equal structure."""
    first = items[0]
    if isinstance(first, Tensor):
        return _C.stack(items, 0)
    if hasattr(first, "__array__"):
        return _C.stack([_C.tensor(item) for item in items], 0)
    if isinstance(first, dict):
        return {k: default_collate([item[k] for item in items])
                for k in first}
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in items):
            raise RuntimeError("default_collate: the items of a batch "
                               "differ in length")
        columns = [default_collate(list(c)) for c in zip(*items)]
        return type(first)(*columns) if hasattr(first, "_fields") \
            else type(first)(columns)
    if isinstance(first, (str, bytes)):
        return items
    return _C.tensor(items, dtype=_C.float64
                     if isinstance(first, float) else None)


def _maker_of_batches(dataset):
    """Its _batch, unless a subclass changes what an item is."""
    for kind in type(dataset).__mro__:
        if "_batch" in vars(kind):
            return dataset._batch
        if "__getitem__" in vars(kind):
            return None
    return None


class DataLoader:
    """Batches of a dataset, in order or shuffled."""

    def __init__(self, dataset, batch_size=1, shuffle=False,
                 drop_last=False, collate_fn=None, generator=None,
                 num_workers=0):
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError("DataLoader: batch_size must be a "
                             f"positive integer, got {batch_size!r}")
        if num_workers:
            raise NotImplementedError("DataLoader: num_workers must "
                                      "be 0")
        self.dataset, self.batch_size = dataset, batch_size
        self.shuffle, self.drop_last = shuffle, drop_last
        self.collate_fn, self.generator = collate_fn, generator

    def __len__(self):
        n = len(self.dataset)
        return n // self.batch_size if self.drop_last \
            else -(-n // self.batch_size)

    def __iter__(self):
        n = len(self.dataset)
        order = _C.randperm(n, generator=self.generator) \
            if self.shuffle else _C.arange(0, n)
        return (self._batch(order[i * self.batch_size:
                                  (i + 1) * self.batch_size])
                for i in range(len(self)))

    def _batch(self, indices):
        batch = _maker_of_batches(self.dataset)
        if batch is not None and self.collate_fn is None:
            return batch(indices)
        several = getattr(self.dataset, "__getitems__", None)
        indices = indices.tolist()
        items = several(indices) if several else \
            [self.dataset[i] for i in indices]
        return (self.collate_fn or default_collate)(items)
