# needs: package
"""Datasets and loaders."""
import copy
import gzip
import pickle
import struct
from collections import namedtuple

import numpy as np
import pytest
import treadle as td
from treadle.utils.data import (DataLoader, Dataset, RandomSampler, Subset, TensorDataset,
                                default_collate)


def idx(array, *shape):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(
        f">{len(shape)}I", *shape) + bytes(array)


@pytest.fixture
def folder(tmp_path):
    for name, n in (("train", 7), ("t10k", 3)):
        pixels = [i * 5 % 256 for i in range(n * 784)]
        labels = [i % 10 for i in range(n)]
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(idx(pixels, n, 28, 28)))
        (tmp_path / f"{name}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(idx(labels, n)))
    return tmp_path


def test_image_sets(folder):
    train = td.datasets.MNIST(folder)
    assert len(train) == 7 and len(td.datasets.FashionMNIST(folder, False)) == 3
    assert train.data.shape == (7, 28, 28) and train.data.dtype is td.uint8
    image, label = train[2]
    assert image.shape == (784,) and label == 2
    assert abs(image[1].item() - (2 * 784 + 1) * 5 % 256 / 255) < 1e-7
    assert train[-1][1] == 6
    with pytest.raises(IndexError):
        train[7]


def test_loaders_over_image_sets(folder):
    train = td.datasets.MNIST(folder)
    sizes = []
    for x, y in DataLoader(train, batch_size=3):
        assert x.dtype is td.float32 and y.dtype is td.int64
        sizes.append(tuple(x.shape))
    assert sizes == [(3, 784), (3, 784), (1, 784)]
    seen = [y for _, ys in DataLoader(train, 2, shuffle=True, drop_last=True)
            for y in ys.tolist()]
    assert len(seen) == 6 and len(set(seen)) == 6


def test_image_sets_and_generators_are_copied_and_sent(folder):
    train = td.datasets.MNIST(folder)
    for other in copy.deepcopy(train), pickle.loads(pickle.dumps(train)):
        assert other.targets.tolist() == train.targets.tolist() and td.equal(other[3][0], train[3][0])
        assert td.equal(next(iter(DataLoader(other, 7)))[0], next(iter(DataLoader(train, 7)))[0])
    train.data, train.targets = train.data[4:], train.targets[4:]    # a part of it
    assert len(train) == 3 and train[0][1] == 4 and next(iter(DataLoader(train, 3)))[1].tolist() == [4, 5, 6]
    own = td.Generator().manual_seed(5)
    td.rand(3, generator=own)
    others = copy.deepcopy(own), pickle.loads(pickle.dumps(own))
    expected = td.rand(3, generator=own).tolist()
    assert all(td.rand(3, generator=g).tolist() == expected for g in others)


def test_transforms_go_item_by_item(folder):
    train = td.datasets.MNIST(folder, transform=lambda x: x.reshape(28, 28),
                              target_transform=lambda y: y + 1)
    (x, y), = DataLoader(train, batch_size=7)
    assert x.shape == (7, 28, 28) and y.tolist() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("spoil", [
    lambda p: p.unlink(), lambda p: p.write_bytes(b""),
    lambda p: p.write_bytes(p.read_bytes()[:50]),
    lambda p: p.write_bytes(gzip.compress(b"\0\0\x0d\3" + bytes(12))),
    lambda p: p.write_bytes(gzip.compress(idx([1] * 10, 2 ** 31, 28, 28)))])
def test_bad_files_are_refused_by_name(folder, spoil, no_leaks):
    spoil(folder / "train-images-idx3-ubyte.gz")
    with pytest.raises((OSError, NotImplementedError)) as caught:
        td.datasets.MNIST(folder)
    assert "train-images" in str(caught.value)


def test_missing_folder():
    with pytest.raises(OSError, match="nowhere"):
        td.datasets.MNIST("/nowhere")
    with pytest.raises(OSError):
        td.datasets.read_idx("/nowhere/file")


def test_loader_over_lists_collates():
    data = [{"x": td.ones(2) * i, "y": (i, float(i)), "name": str(i)}
            for i in range(5)]
    batches = list(DataLoader(data, batch_size=2))
    assert len(batches) == 3
    assert batches[1]["x"].tolist() == [[2.0, 2.0], [3.0, 3.0]]
    assert batches[1]["y"][0].tolist() == [2, 3]
    assert batches[1]["y"][1].dtype is td.float64
    assert batches[2]["name"] == ["4"]


def test_own_collate_and_fast_path():
    data = TensorDataset(td.arange(10.0), td.arange(10))
    assert [len(x) for x, _ in DataLoader(data, 4)] == [4, 4, 2]
    assert list(DataLoader(data, 5, collate_fn=len)) == [5, 5]
    assert data[3][1].item() == 3
    sub = Subset(data, [9, 1])
    assert [y.tolist() for _, y in DataLoader(sub, 2)] == [[9, 1]]
    with pytest.raises(ValueError):
        TensorDataset(td.ones(2), td.ones(3))


def test_the_seed_decides_the_order():
    data = TensorDataset(td.arange(20))

    def order():
        return [i for x, in DataLoader(data, 6, shuffle=True)
                for i in x.tolist()]
    td.manual_seed(5)
    first, second = order(), order()
    td.manual_seed(5)
    assert order() == first and order() == second != first
    assert sorted(first) == list(range(20))
    td.manual_seed(5)
    assert td.randperm(20).tolist() == first


def test_an_own_generator_leaves_the_default_alone():
    data = TensorDataset(td.arange(20))
    td.manual_seed(1)
    expected = td.rand(2).tolist()
    td.manual_seed(1)
    g = td.Generator().manual_seed(3)
    list(DataLoader(data, 6, shuffle=True, generator=g))
    assert td.rand(2).tolist() == expected


def test_exceptions_in_datasets_go_through():
    class Broken(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            raise KeyError("broken")
    with pytest.raises(KeyError, match="broken"):
        list(DataLoader(Broken()))
    with pytest.raises(NotImplementedError):
        Dataset()[0]


def test_bad_loader_options():
    for bad in (0, -1, 2.5, "a"):
        with pytest.raises(ValueError, match="batch_size"):
            DataLoader([1], batch_size=bad)
    assert list(DataLoader([], batch_size=2)) == []
    assert len(DataLoader([1, 2, 3], 2, drop_last=True)) == 1
    with pytest.raises(RuntimeError):
        default_collate([(1, 2), (3,)])


def test_items_of_a_subclass_are_used():
    class Distorted(TensorDataset):
        def __getitem__(self, i):
            return (self.tensors[0][i] * 100,)
    batches = [b[0].tolist() for b in DataLoader(Distorted(td.arange(4)), 2)]
    assert batches == [[0, 100], [200, 300]]


def test_a_transform_set_later_is_used(folder):
    images = td.datasets.FashionMNIST(folder)
    before = next(iter(DataLoader(images, 3)))[0]
    images.transform = lambda x: x + 1
    assert next(iter(DataLoader(images, 3)))[0].tolist() == (before + 1).tolist()
    with pytest.raises(IndexError, match="fashion-mnist: index 1000000 is out of range"):
        images[1000000]


def test_several_items_at_once_are_collated():
    class Squares:
        def __len__(self):
            return 5

        def __getitems__(self, indices):
            return [(i, float(i * i)) for i in indices]
    i, square = next(iter(DataLoader(Squares(), 4)))
    assert i.tolist() == [0, 1, 2, 3] and square.dtype is td.float64


def test_arrays_and_named_tuples_are_collated():
    Pair = namedtuple("Pair", "x y")
    batch = next(iter(DataLoader([Pair(np.ones(2) * i, np.float32(i)) for i in range(3)], 3)))
    assert isinstance(batch, Pair) and batch.x.shape == (3, 2) and batch.y.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="equal length"):
        TensorDataset(td.ones(()))


def test_options_that_contradict_each_other():
    data = TensorDataset(td.arange(7))
    for options, words in [({"num_workers": -1}, "non-negative"), ({"timeout": -1}, "non-negative"),
                           ({"num_workers": 1, "prefetch_factor": -1}, "non-negative"),
                           ({"prefetch_factor": 2}, "prefetch_factor option needs num_workers > 0"),
                           ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
                           ({"multiprocessing_context": "fork"}, "multiprocessing_context option needs"),
                           ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
                           ({"batch_sampler": [[1]], "drop_last": True}, "mutually exclusive"),
                           ({"batch_sampler": [[1]], "shuffle": True}, "mutually exclusive"),
                           ({"batch_sampler": [[1]], "sampler": [1]}, "mutually exclusive"),
                           ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
                           ({"batch_size": True}, "positive integer"), ({"batch_size": 2.0}, "positive integer")]:
        with pytest.raises(ValueError, match=words):
            DataLoader(data, **options)


class Ours(Exception):
    pass


class Items(Dataset):
    """As long as it says, with items as it says."""

    def __init__(self, item, length=4):
        self.item, self.length = item, length

    def __len__(self):
        return self.length() if callable(self.length) else self.length

    def __getitem__(self, i):
        return self.item(i) if callable(self.item) else self.item


def raises(*args):
    raise Ours


def infinite(x):
    x.append(x)
    return x


HOSTILE = {
    "length raises": (Items(1.0, raises), Ours, ""),
    "negative length": (Items(1.0, -1), ValueError, "len"),
    "length is no number": (Items(1.0, "4"), TypeError, "str"),
    "immense length": (Items(1.0, 2 ** 70), OverflowError, ""),
    "item raises": (Items(raises), Ours, ""),
    "items end early": (Items([1, 2].__getitem__), IndexError, "out of range"),
    "item ends the iteration": (Items(lambda i: next(iter(()))), RuntimeError, "raised StopIteration"),
    "None": (Items(None), TypeError, "batch must contain tensors, numpy arrays.*NoneType"),
    "an object": (Items(object()), TypeError, "batch must contain"),
    "a set": (Items({1, 2}), TypeError, "batch must contain"),
    "a type": (Items(lambda i: int), TypeError, "batch must contain"),
    "ragged tensors": (Items(lambda i: td.ones(i + 1)), RuntimeError, "stack"),
    "ragged lists": (Items(lambda i: [1] * (i + 1)), RuntimeError, "differ in length"),
    "ragged arrays": (Items(lambda i: np.ones(i + 1)), RuntimeError, "stack"),
    "tensors and numbers": (Items(lambda i: i if i % 2 else td.ones(2)), TypeError, "Tensor"),
    "numbers and tensors": (Items(lambda i: td.ones(2) if i % 2 else i), RuntimeError, ""),
    "numbers and strings": (Items(lambda i: "a" if i % 2 else i), TypeError, "str"),
    "lists and numbers": (Items(lambda i: i if i % 2 else [i]), TypeError, ""),
    "other keys": (Items(lambda i: {i: 1}), KeyError, ""),
    "arrays of words": (Items(np.array(["a"])), TypeError, ""),
    "integers beyond 64 bits": (Items(2 ** 80), OverflowError, ""),
    "a list that holds itself": (Items(infinite([])), RecursionError, ""),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("shuffle", [False, True])
def test_hostile_datasets_end_in_one_exception(name, shuffle, no_leaks):
    data, error, words = HOSTILE[name]
    if shuffle and " and " in name:
        pytest.skip("which comes first decides what is wrong with the other")
    with pytest.raises(error, match=words):
        for _ in DataLoader(data, 2, shuffle=shuffle):
            pass
    assert next(iter(DataLoader(Items(1.0), 2))).tolist() == [1, 1]


@pytest.mark.parametrize("data", [Items(1.0), TensorDataset(td.ones(4, 2))], ids=["items", "tensors"])
@pytest.mark.parametrize("sampler, error", [
    (["a", "b"], (TypeError, ValueError)), ([None], (TypeError, ValueError)), ([1.5], (TypeError, IndexError, RuntimeError)),
    ([2 ** 70], (OverflowError, IndexError)),
    ([10], IndexError), ([-10], IndexError), (3, TypeError), (Items(raises), Ours)])
def test_samplers_that_yield_nonsense(data, sampler, error, no_leaks):
    if isinstance(data, Items):
        data = Items([1.0, 2.0, 3.0, 4.0].__getitem__)
    with pytest.raises(error):
        for _ in DataLoader(data, 2, sampler=sampler):
            pass
    with pytest.raises((*(error if isinstance(error, tuple) else (error,)), TypeError)):
        for _ in DataLoader(data, batch_sampler=[sampler]):
            pass


def test_samplers_may_count_from_the_end():
    data = TensorDataset(td.arange(4))
    assert [b[0].tolist() for b in DataLoader(data, 2, sampler=[-1, 0, 2])] == [[3, 0], [2]]
    with pytest.raises(IndexError, match="out of range"):
        list(DataLoader(Items(1.0), batch_sampler=[[]]))
    with pytest.raises(TypeError):
        list(DataLoader(data, batch_sampler=[3]))


def test_nothing_is_drawn_from_nothing():
    assert list(DataLoader([], shuffle=True)) == []
    with pytest.raises(ValueError, match="5 samples cannot be drawn from no items"):
        list(RandomSampler([], num_samples=5))
    for n in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="num_samples must be a positive integer"):
            RandomSampler([1], num_samples=n)


@pytest.mark.parametrize("collate", [raises, lambda items: next(iter(())), 3, lambda: None])
def test_collate_that_fails(collate, no_leaks):
    with pytest.raises((Ours, RuntimeError, TypeError)):
        list(DataLoader(Items(td.ones(2)), 2, collate_fn=collate))
    assert list(DataLoader(Items(td.ones(2)), 2, collate_fn=lambda items: None)) == [None, None]


def test_the_loop_may_go_on_after_a_broken_item(no_leaks):
    batches = iter(DataLoader(Items(lambda i: raises() if i == 1 else i, 6), 2))
    with pytest.raises(Ours):
        next(batches)
    assert [b.tolist() for b in batches] == [[2, 3], [4, 5]]


def test_datasets_that_change_under_the_loop(no_leaks):
    shrinking, growing = [1.0, 2.0, 3.0, 4.0], [1.0]
    with pytest.raises(IndexError):
        for _ in DataLoader(shrinking, 1):
            shrinking.pop()
    seen = []
    for batch in DataLoader(growing, 1):
        growing.append(2.0)
        seen.append(batch.item())
    assert seen == [1.0]
    data = TensorDataset(td.ones(4, 2))
    with pytest.raises((IndexError, RuntimeError)):
        for _ in DataLoader(data, 2):
            data.tensors = (td.ones(1, 2),)
    lists = [[1, 2], [3, 4]]
    data = Items(lambda i: lists[i].clear() or lists[i] if i else lists[0], 2)
    with pytest.raises(RuntimeError, match="differ in length"):
        list(DataLoader(data, 2))
