# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Dataset, DataLoader and what lies between."""
import itertools
import warnings
from .. import _C, Tensor
from ..func import _map


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
        return [_C.index_select(t, 0, indices) for t in self.tensors]


def _place(name, index, n):
    """index counted from the front, of n items."""
    if not -n <= index < n:
        raise IndexError(f"{name}: index {index} is out of range for "
                         f"{n} items")
    return index % n


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
    if hasattr(first, "__array__"):
        return _C.stack(items if isinstance(first, Tensor)
                        else [*map(_C.tensor, items)], 0)
    if isinstance(first, dict):
        return {k: default_collate([item[k] for item in items])
                for k in first}
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in items):
            raise RuntimeError("default_collate: the items of a batch "
                               "differ in length")
        columns = [default_collate(c) for c in zip(*items)]
        return type(first)(*columns) if hasattr(first, "_fields") \
            else columns
    if isinstance(first, (str, bytes)):
        return items
    if not isinstance(first, (int, float)):
        raise TypeError("default_collate: batch must contain tensors, "
                        "numpy arrays, numbers, dicts or lists; found "
                        f"{type(first)}")
    return _C.tensor(items, dtype=_C.float64
                     if isinstance(first, float) else None)


def default_convert(item):
    """An item with its NumPy arrays made tensors."""
    if hasattr(item, "__array__") and not isinstance(item, Tensor):
        return _C.tensor(item)
    if isinstance(item, dict):
        return {k: default_convert(v) for k, v in item.items()}
    if isinstance(item, (tuple, list)) and not hasattr(item, "_fields"):
        return [default_convert(v) for v in item]
    return item


def _maker_of_batches(dataset):
    """Its _batch, unless a subclass changes what an item is."""
    for kind in type(dataset).__mro__:
        if "_batch" in vars(kind):
            return dataset._batch
        if "__getitem__" in vars(kind):
            return None


def _expect_positive(name, n):
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"DataLoader: {name} must be a positive "
                         f"integer, got {n!r}")


class Sampler:
    """Something that is iterated for indices; has a length."""
    generator = None

    def __init__(self, data_source=None):
        self.data_source = data_source

    def __len__(self):
        return len(self.data_source)

    def state_dict(self):
        """Its random numbers, on which the next order depends."""
        return {"random": _C._random_state(self.generator)}

    def load_state_dict(self, state):
        """Go on with the order that followed state_dict."""
        _C._random_state(self.generator, *state["random"])


def _stateful(source):
    """Whoever has the state of a sampler: it, or the thread."""
    return source if hasattr(source, "state_dict") else Sampler()


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __iter__(self):
        return iter(range(len(self.data_source)))


class RandomSampler(Sampler):
    """A new order for each epoch, or draws with replacement."""

    def __init__(self, data_source, replacement=False,
                 num_samples=None, generator=None):
        self.data_source, self.replacement = data_source, replacement
        self.num_samples, self.generator = num_samples, generator
        if num_samples is not None:
            _expect_positive("num_samples", num_samples)

    def __len__(self):
        return len(self.data_source) if self.num_samples is None \
            else self.num_samples

    def __iter__(self):
        n = len(self.data_source)
        if n == 0 and len(self) > 0:
            raise ValueError(f"RandomSampler: {len(self)} samples "
                             "cannot be drawn from no items")
        if self.replacement:
            return iter(_C.randint(0, n, (len(self),),
                        generator=self.generator).tolist())
        order = []
        while len(order) < len(self):
            order += _C.randperm(n, generator=self.generator).tolist()
        return iter(order[:len(self)])


def _cut(items, size, drop_last):
    while batch := list(itertools.islice(items, size)):
        if len(batch) == size or not drop_last:
            yield batch


class BatchSampler(Sampler):
    """Lists of batch_size indices of another sampler."""

    def __init__(self, sampler, batch_size, drop_last):
        _expect_positive("batch_size", batch_size)
        self.sampler, self.batch_size = sampler, batch_size
        self.drop_last = drop_last

    def state_dict(self):
        return _stateful(self.sampler).state_dict()

    def load_state_dict(self, state):
        _stateful(self.sampler).load_state_dict(state)

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last \
            else -(-n // self.batch_size)

    def __iter__(self):
        return _cut(iter(self.sampler), self.batch_size, self.drop_last)


class IterableDataset(Dataset):
    """A dataset that is iterated, not indexed."""

    def __iter__(self):
        raise NotImplementedError


def _pinned(item):
    """An item with its tensors in page-locked memory."""
    return _map(lambda x: x.pin_memory()
                if hasattr(x, "pin_memory") else x, item)


_FRESH = {"epoch": None, "batches": 0}     # a place between epochs


class DataLoader:
    """Batches of a dataset, in order, shuffled or sampled.

    Batches are made when they are asked for, in the thread that asks;
    with num_workers > 0 by as many processes, each prefetch_factor (2)
    batches ahead, in the same order.  Random numbers in a worker depend
    on the batch and not on who makes it; get_worker_info() tells a
    dataset where it is.  timeout is in seconds.  Workers end with the
    epoch unless persistent_workers.  pin_memory puts batches into
    page-locked memory, where there is a device; else it warns.

    What a dataset, a sampler or collate_fn raises is raised where the
    batch was asked for, and the next batch may be asked for afterwards.
    """
    # layers: method that makes a loader

    def __init__(self, dataset, batch_size=1, shuffle=None,
                 sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False,
                 timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *,
                 prefetch_factor=None, persistent_workers=False,
                 pin_memory_device=""):
        vars(self).update(locals())
        del self.self, self.shuffle
        stream = isinstance(dataset, IterableDataset)
        # layers: refuse options that do not go together
        if min(num_workers, timeout, prefetch_factor or 0) < 0:
            raise ValueError("DataLoader: num_workers, timeout and "
                             "prefetch_factor should be non-negative")
        for name, value in (
                ("prefetch_factor", prefetch_factor is not None),
                ("persistent_workers", persistent_workers),
                ("multiprocessing_context", multiprocessing_context)):
            if value and not num_workers:
                raise ValueError(f"DataLoader: {name} option needs "
                                 "num_workers > 0")
        if pin_memory_device \
                and str(pin_memory_device).partition(":")[0] != "cuda":
            raise ValueError("DataLoader: expected a CUDA device as "
                             f"pin_memory_device, got {pin_memory_device!r}")
        if batch_sampler is not None and (
                batch_size != 1 or shuffle or drop_last
                or sampler is not None):
            raise ValueError("DataLoader: batch_sampler option is "
                             "mutually exclusive with batch_size, "
                             "shuffle, sampler, and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: batch_size=None is mutually "
                             "exclusive with drop_last")
        given = sampler is not None or batch_sampler is not None
        if given + bool(shuffle) + stream > 1:
            raise ValueError("DataLoader: shuffle, samplers and an "
                             "IterableDataset exclude each other")
        # layers: make the parts that were not given
        if sampler is None and not stream:
            sampler = RandomSampler(dataset, generator=generator) \
                if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(dataset if stream else sampler,
                                         batch_size, drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self._stream, self._resume = stream, None
        self._place = {**_FRESH, "number": 0}
        # workers: remember the options of workers
        self.prefetch_factor = prefetch_factor or 2
        self._ahead = None
    # workers: methods of a loader

    def _answer(self, request):
        """In a worker: the batch of a request, an epoch for a stream."""
        place = dict(_FRESH)
        if not self._stream:
            return next(self._answers(iter([request]), place))
        if self._ahead is None or self._ahead[0] != request:
            requests = iter(self._requests())
            self._ahead = request, self._answers(requests, place)
        return next(self._ahead[1])
    # layers: methods of a loader

    def __len__(self):
        return len(self._requests())

    def _requests(self):
        parts = self.batch_sampler, self.sampler, self.dataset
        return next(p for p in parts if p is not None)

    def _answers(self, requests, place):
        change = self.collate_fn or default_convert
        if self.batch_sampler is not None:
            change = self._batch
        elif not self._stream:
            return _Each(lambda i: change(self.dataset[i]), requests, place)
        return _Each(change, requests, place)

    def __iter__(self):
        source, place = _stateful(self._requests()), self._resume
        now, self._resume = source.state_dict(), None
        if place is None:
            self._place = {"epoch": now, "batches": 0,
                           "number": self._place["number"] + 1}
        else:
            source.load_state_dict(place["epoch"])
        requests = None
        if not (self._stream and self.num_workers):
            requests = iter(self._requests())
        if place is not None:
            # layers: pass over what was handed out
            for _ in range(place["batches"] if requests else 0):
                next(requests, None)
            source.load_state_dict(now)
        pin = self.pin_memory and _C._device_count() > 0
        if self.pin_memory and not pin:
            warnings.warn("DataLoader: pin_memory has no effect: no "
                          "device", stacklevel=2)
        answers = self._answers(requests, self._place)
        # workers: let workers answer the requests
        if self.num_workers > 0:
            answers = _Each(_open_answer, _begin_workers(
                self, requests, self._place), self._place)
            if place is None and str(source.state_dict()) == str(now):
                _C.rand(1)              # the next epoch has other seeds
        return map(_pinned, answers) if pin else answers

    def state_dict(self):
        """How many batches of the epoch were handed out, and which."""
        source = _stateful(self._requests())
        return {**self._place, "sampler": source.state_dict()}

    def load_state_dict(self, state):
        """Let the next iteration go on where state_dict was called."""
        if not isinstance(state, dict) or set(state) != {
                *self._place, "sampler"}:
            raise ValueError("DataLoader.load_state_dict: expected what "
                             f"state_dict returned, got {state!r}")
        _stateful(self._requests()).load_state_dict(state["sampler"])
        self._place = {k: state[k] for k in self._place}
        self._resume = None if state["epoch"] is None else self._place

    def _batch(self, indices):
        collate = self.collate_fn or default_collate
        if self._stream:
            return collate(indices)
        batch = _maker_of_batches(self.dataset)
        if batch is not None and self.collate_fn is None:
            try:
                return batch(_C.tensor(list(indices)))
            except IndexError:
                pass            # an item may be counted from the end
        several = getattr(self.dataset, "__getitems__", None)
        items = several(indices) if several else \
            [self.dataset[i] for i in indices]
        return collate(items)


class _Each:
    """function(item) for each item, also after one that raised."""

    def __init__(self, function, items, place):
        self.function, self.items, self.place = function, items, place

    def __iter__(self):
        return self

    def __next__(self):
        try:
            item = next(self.items)
        except StopIteration:
            self.place.update(_FRESH)
            raise
        self.place["batches"] += 1
        try:
            return self.function(item)
        except StopIteration as error:
            raise RuntimeError("DataLoader: the dataset or collate_fn "
                               "raised StopIteration") from error
# workers: further datasets
from ._workers import begin as _begin_workers
from ._workers import get_worker_info, open_answer as _open_answer
from ._workers import WorkerInfo
# strangers: further datasets
import bisect


class ConcatDataset(Dataset):
    """Several datasets, one behind the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        self.cumulative_sizes = list(itertools.accumulate(
            map(len, self.datasets)))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        index = _place("ConcatDataset", index, len(self))
        part = bisect.bisect_right(self.cumulative_sizes, index)
        first = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][index - first]


Dataset.__add__ = lambda self, other: ConcatDataset([self, other])


def random_split(dataset, lengths, generator=None):
    """Subsets of these lengths, or fractions, in random order."""
    n = len(dataset)
    if 0 < sum(lengths) <= 1 + 1e-9 and sum(lengths) != n:
        lengths = [int(n * share) for share in lengths]
        for i in range(n - sum(lengths)):
            lengths[i % len(lengths)] += 1
    if sum(lengths) != n:
        raise ValueError("random_split: the lengths sum to "
                         f"{sum(lengths)}, not to {n}")
    order = iter(_C.randperm(n, generator=generator).tolist())
    return [Subset(dataset, itertools.islice(order, k))
            for k in lengths]


class SubsetRandomSampler(RandomSampler):
    """Given indices in random order."""

    def __init__(self, indices, generator=None):
        super().__init__(indices, generator=generator)
        self.indices = indices

    def __iter__(self):
        return map(self.indices.__getitem__, super().__iter__())


class WeightedRandomSampler(Sampler):
    """num_samples indices, drawn in proportion to weights."""

    def __init__(self, weights, num_samples, replacement=True,
                 generator=None):
        self.weights = _C.tensor(weights, dtype=_C.float64)
        self.num_samples, self.replacement = num_samples, replacement
        self.generator = generator

    def __len__(self):
        return self.num_samples

    def __iter__(self):
        return iter(_C.multinomial(
            self.weights, self.num_samples, self.replacement,
            generator=self.generator).tolist())
# arrow: further datasets
from .._exchange import from_arrow, to_arrow


class ArrowDataset(TensorDataset):
    """Rows of an Arrow table: a tensor for each of the columns.

    source, columns and fill are those of from_arrow.
    """

    def __init__(self, source, columns=None, *, fill=None):
        found = from_arrow(source, columns, fill=fill)
        if isinstance(found, Tensor):
            found = {columns or "": found}
        super().__init__(*found.values())
        self.columns = list(found)


def _lend(self, requested_schema=None):
    """The tensors as a table; without names they are 0, 1, ..."""
    names = getattr(self, "columns", range(len(self.tensors)))
    return to_arrow(zip(map(str, names),
                        self.tensors)).__arrow_c_stream__()


TensorDataset.__arrow_c_stream__ = _lend
