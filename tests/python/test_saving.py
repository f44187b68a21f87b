# needs: saving-more
# SPDX-License-Identifier: MIT
"""Files of tensors as the package safetensors reads and writes them, and what the trained files of others reach."""
import os
import struct
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.safetensors import SafetensorError, load, save
from treadle import nn
from treadle.nn import functional as F

np = pytest.importorskip("numpy")
DATA = Path(os.environ.get("TREADLE_DATA", "/nowhere")) / "safetensors"
needs_data = pytest.mark.skipif(not (DATA / "mnist_cnn.safetensors").exists(), reason="TREADLE_DATA holds no safetensors/")
TYPES = [td.float32, td.float64, td.int64, td.int32, td.int16, td.int8, td.uint8, td.bool, td.float16]


@pytest.fixture
def peer():
    return pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed (make deps-peers)")


def some():
    td.manual_seed(3)
    made = {f"t.{k}": (td.randn(3, 5) * 9).to(dtype) for k, dtype in enumerate(TYPES)}
    return {**made, "scalar\n\"": td.tensor(2.5), "empty": td.zeros(0, 3), "\u20ac\U0001f600": td.arange(3)}


def header(data):
    return data[8:8 + struct.unpack("<Q", data[:8])[0]]


def file_of(text, data=b""):
    text = text.encode() + b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


# --- against the package ---------------------------------------------------------

def test_our_files_are_read_by_the_package(peer, tmp_path):
    given = some()
    td.save_file(given, tmp_path / "a", {"who": "we"})
    got = peer.load_file(tmp_path / "a")
    assert set(got) == set(given)
    for name, x in given.items():
        assert got[name].dtype == x.numpy().dtype and got[name].shape == tuple(x.shape)
        assert got[name].tobytes() == x.numpy().tobytes()


def test_files_of_the_package_are_read_by_us(peer, tmp_path):
    given = {name: np.array(x.numpy(), ndmin=0) for name, x in some().items()}
    peer.save_file(given, tmp_path / "a", {"who": "they"})
    for backend in ("mmap", "pread"):
        got = td.load_file(tmp_path / "a", backend=backend)
        assert set(got) == set(given)
        for name, x in given.items():
            assert got[name].numpy().dtype == x.dtype and got[name].numpy().tobytes() == x.tobytes()
    assert td.safe_open(tmp_path / "a").metadata() == {"who": "they"}


def test_both_write_the_same_bytes(peer):
    given = some()
    theirs = peer.save({name: np.array(x.numpy(), ndmin=0) for name, x in given.items()}, {"k\t": "v"})
    assert save(given, {"k\t": "v"}) == theirs
    assert save({}) == peer.save({})


def test_a_transposed_array_is_written_in_its_order(peer):
    x = td.arange(6).reshape(2, 3)
    assert (peer.load(save({"x": x.t()}))["x"] == x.numpy().T).all()


def test_what_the_package_refuses_we_refuse(peer):
    """Files that are changed at one place: whoever accepts one accepts it as the other does, or we are the stricter."""
    data = save({"a": td.arange(4), "b": td.ones(2, 3), "c": td.tensor([True])}, {"k": "v"})
    random, accepted = np.random.RandomState(1), 0
    for _ in range(3000):
        changed = bytearray(data)
        at = random.randint(len(data)) if random.randint(4) == 0 else 8 + random.randint(len(header(data)))
        if random.randint(2):
            changed[at] = random.choice(list(b'{}[]",:0123456789 -.e\\abFIU'))
        else:
            changed[at] ^= 1 << random.randint(8)
        try:
            ours = load(bytes(changed))
        except SafetensorError:
            continue
        theirs = peer.load(bytes(changed))          # raises if they refuse
        assert {n: x.numpy().tobytes() for n, x in ours.items()} == {n: x.tobytes() for n, x in theirs.items()}
        accepted += 1
    assert accepted > 100


def test_slices_as_the_package_takes_them(peer, tmp_path):
    safe_open = pytest.importorskip("safetensors").safe_open
    td.save_file({"x": td.arange(24.).reshape(4, 6)}, tmp_path / "a")
    ours = td.safe_open(tmp_path / "a").get_slice("x")
    pytest.importorskip("torch")
    theirs = safe_open(tmp_path / "a", "pt").get_slice("x")
    assert ours.get_shape() == list(theirs.get_shape()) and ours.get_dtype() == theirs.get_dtype() == "F32"
    S = slice
    for index in (0, -1, -4, S(1, 3), S(None), S(2, 2), S(0, 4), (1, 2), (S(1, 3), S(0, 2)), ..., (..., 1), (2, ...), (S(None), -1),
                  S(-1, None), S(0, 5), S(3, 1), S(None, None, 2), 4, -5, None, [0], ([0, 1], [2, 3]), np.int64(1), (0, 0, 0), (0, ..., 0, 0)):
        try:
            expected = theirs[index]
        except Exception:
            with pytest.raises(IndexError):
                ours[index]
        else:
            assert ours[index].tolist() == expected.tolist(), index


def test_transformers_names_survive(peer):
    names = [f"h.{i}.attn.c_attn.weight" for i in range(12)] + ["x" * 300]
    assert sorted(peer.load(save({n: td.zeros(1) for n in names}))) == sorted(names)


# --- alone --------------------------------------------------------------------------

def test_round_trip_of_all_types(tmp_path):
    given = {**some(), "half": td.ones(3).to(td.bfloat16)}
    td.save_file(given, tmp_path / "a")
    for got in (td.load_file(tmp_path / "a"), load((tmp_path / "a").read_bytes()), load(bytearray(save(given)))):
        assert {n: (x.dtype, x.shape, x.tolist()) for n, x in got.items()} \
            == {n: (x.dtype, x.shape, x.tolist()) for n, x in given.items()}


def test_keys_and_closing(tmp_path):
    td.save_file({"b": td.ones(2), "a": td.ones(2), "c": td.ones(1, dtype=td.int64)}, tmp_path / "a", {})
    with td.safe_open(str(tmp_path / "a"), framework="pt", device="cpu") as f:
        assert f.keys() == ["a", "b", "c"] and f.offset_keys() == ["c", "a", "b"]
        x, part = f.get_tensor("a"), f.get_slice("b")
        assert sorted(f.get_tensors()) == ["a", "b", "c"]
        with pytest.raises(SafetensorError, match="no tensor 'd'"):
            f.get_tensor("d")
    assert x.tolist() == [1, 1]
    for late in (lambda: f.get_tensor("a"), lambda: part[0]):
        with pytest.raises(SafetensorError, match="closed"):
            late()
    assert isinstance(td.safe_open(tmp_path / "a", "np").get_tensor("a"), np.ndarray)


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError):
        td.load_file(tmp_path / "absent")
    with pytest.raises(SafetensorError, match="regular file"):
        td.load_file(tmp_path)
    (tmp_path / "a").write_bytes(save({"a": td.ones(2)})[:-1])
    with pytest.raises(SafetensorError, match="cut off"):
        td.load_file(tmp_path / "a")
    for wrong in ({"framework": "tf"}, {"backend": "ram"}):
        with pytest.raises(SafetensorError, match="safe_open"):
            td.safe_open(tmp_path / "a", **wrong)
    with pytest.raises(TypeError, match="expected bytes"):
        load("a")


def test_what_cannot_be_saved(tmp_path):
    x = td.zeros(4)
    for wrong, error, words in (([x], ValueError, "expected a dict"), ({"a": [1]}, ValueError, "'a' is invalid"), ({1: x}, TypeError, "not a str"),
                                ({"a": x, "b": x}, RuntimeError, "'a' and 'b' share|'b' and 'a' share"), ({"a\0": x}, ValueError, "zero byte"),
                                ({"__metadata__": x}, ValueError, "name is taken")):
        with pytest.raises(error, match=words):
            td.save_file(wrong, tmp_path / "a")
    for metadata in ({"a": 1}, {1: "a"}):
        with pytest.raises(TypeError, match="not a str"):
            td.save_file({"a": x}, tmp_path / "a", metadata)
    with pytest.raises(TypeError, match="a dict as metadata"):
        td.save_file({"a": x}, tmp_path / "a", "x")
    with pytest.raises(SafetensorError, match="No such file"):
        td.save_file({"a": x}, tmp_path / "no" / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_mapped_file_may_be_written_over(tmp_path):
    td.save_file({"x": td.arange(5000.)}, tmp_path / "a")
    got = td.load_file(tmp_path / "a")
    got["x"].add_(1)
    assert td.load_file(tmp_path / "a")["x"][0] == 0
    td.save_file(got, tmp_path / "a")
    assert td.load_file(tmp_path / "a")["x"].tolist() == [i + 1. for i in range(5000)]
    assert os.listdir(tmp_path) == ["a"]


def test_only_touched_pages_are_read(tmp_path):
    (tmp_path / "a").write_bytes(file_of('{"x":{"dtype":"F32","shape":[65536,1024],"data_offsets":[0,268435456]}}'))
    with open(tmp_path / "a", "r+b") as f:
        f.truncate(f.seek(0, 2) + 268435456)                # a hole: nothing on the disk

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    before = resident()
    rows = td.safe_open(tmp_path / "a").get_slice("x")[1000:1004]
    assert rows.sum() == 0 and rows.shape == (4, 1024)
    assert resident() - before < 20e6


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.says = nn.Embedding(7, 3), nn.Linear(3, 7, bias=False)
        self.says.weight = self.words.weight


def test_a_model_with_a_shared_weight(tmp_path):
    a, b = Tied(), Tied()
    with pytest.raises(RuntimeError, match="share memory"):
        td.save_file(a.state_dict(), tmp_path / "a")
    td.save_model(a, tmp_path / "a", {"step": "3"})
    assert td.safe_open(tmp_path / "a").metadata() == {"step": "3", "says.weight": "words.weight"}
    assert td.load_model(b, tmp_path / "a") == ([], [])
    assert b.says.weight is b.words.weight and td.equal(a.words.weight, b.words.weight)
    td.save_file({"says.weight": a.words.weight.detach() + 1}, tmp_path / "b")       # under the other name
    td.load_model(b, tmp_path / "b")
    assert td.equal(b.words.weight, a.words.weight + 1)
    with pytest.raises(RuntimeError, match="missing"):
        td.load_model(nn.Linear(2, 2), tmp_path / "a")


@pytest.mark.parametrize("part", [lambda x: x.t(), lambda x: x[:2], lambda x: x[1:]], ids=["turned", "first", "last"])
def test_what_shares_memory_and_is_no_twin_is_refused(tmp_path, part):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(td.randn(3, 3))
            self.register_buffer("b", part(self.a.data))
    with pytest.raises(RuntimeError, match="'a' and 'b' share memory"):
        td.save_model(Net(), tmp_path / "net")
    td.save_file({"a": td.arange(9.).view(3, 3)}, tmp_path / "net")
    with pytest.raises(RuntimeError, match="missing.*b"):
        td.load_model(Net(), tmp_path / "net")


def test_a_file_is_no_part_of_a_trace(tmp_path):
    td.save_file({"x": td.ones(3)}, tmp_path / "a")
    step = td.jit(lambda x: x + td.load_file(tmp_path / "a", backend="pread")["x"])
    assert step(td.ones(3)).tolist() == [2, 2, 2]


# --- files of others ------------------------------------------------------------------

@needs_data
def test_all_types_of_the_proposed_sample():
    got = td.load_file(DATA / "all_dtypes.safetensors")
    most = {"B": 2**8 - 1, "H": 2**16 - 1, "I": 2**32 - 1}
    for name, x in got.items():
        expected = [most[name] - 2, most[name] - 1, most[name], 0, 1, 2] if name in most else [-3, -2, -1, 0, 1, 2]
        assert x.tolist() == expected, name
    assert (got["H"].dtype, got["I"].dtype, got["d"].dtype) == (td.int32, td.int64, td.float64)
    with pytest.raises(SafetensorError, match="no room for its header"):
        td.load_file(DATA / "invalid_header_length.safetensors")
    assert [list(x.shape) for x in td.load_file(DATA / "two_f64.safetensors").values()] == [[8, 8], [16, 16]]


@needs_data
def test_the_small_network_of_others():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.norm1, self.fc1 = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(256, 16)

        def forward(self, x):
            return self.fc1(self.norm1(self.conv1(x)).relu().flatten(1))
    net = Net().eval()
    td.load_model(net, DATA / "multi_layer.safetensors")
    expected = [0.0497156, -0.1684973, 0.0518285, -0.1803268, 0.2313837, 0.0504187, 0.1300591, -0.3220293, -0.0791569, -0.0323246,
                -0.1979029, -0.1747653, -0.1962759, -0.2175769, -0.3137644, 0.0837784]
    with td.no_grad():
        assert td.allclose(net(td.ones(1, 3, 8, 8))[0], td.tensor(expected), atol=2e-6)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3), nn.Conv2d(16, 24, 3)
        self.norm1, self.norm2 = nn.BatchNorm2d(24), nn.BatchNorm1d(10)
        self.fc1, self.fc2 = nn.Linear(11616, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.conv3(self.conv2(self.conv1(x).relu()).relu()).relu()
        return F.log_softmax(self.norm2(self.fc2(self.fc1(self.norm1(x).flatten(1)).relu())), 1)


@needs_data
@pytest.mark.skipif(not (DATA.parent / "mnist").exists(), reason="TREADLE_DATA holds no mnist/")
def test_the_trained_network_of_others_reads_digits_as_it_says():
    net = Digits().eval()
    td.load_model(net, DATA / "mnist_cnn.safetensors")
    data = td.datasets.MNIST(train=False)
    right = loss = 0
    with td.no_grad():
        for i in range(0, 10000, 500):
            x = (data.data[i:i + 500].unsqueeze(1) / 255. - 0.1307) / 0.3081
            scores, y = net(x), data.targets[i:i + 500].long()
            right += (scores.argmax(1) == y).sum().item()
            loss += F.nll_loss(scores, y, reduction="sum").item()
    assert right == 9917 and abs(loss / 10000 - 0.02809) < 1e-5


@pytest.mark.parametrize("metadata", [0, 1.5, [], "words"])
def test_metadata_is_a_dict(metadata):
    with pytest.raises((AttributeError, TypeError)):
        save({"a": td.ones(2)}, metadata)
