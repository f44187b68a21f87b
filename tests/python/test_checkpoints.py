# needs: checkpoints porting
"""Files of PyTorch, read without running them, and runs that go on after a kill."""
import collections
import concurrent.futures
import functools
import io
import os
import pickle
import random
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
import treadle as td
from conftest import STAGE

ROOT = Path(__file__).resolve().parents[2]
PEERS = [p for p in (str(ROOT / ".peers/bin/python"), "/usr/bin/python3") if os.path.exists(p)]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
PLAIN = {"epoch": 3, "big": 2**40, "vast": -2**70, "rate": 0.1, "name": "näme", "none": None, "yes": True, "no": False, "raw": b"\x00\xff",
         "array": bytearray(b"ab"), "z": 1 + 2j, "set": {1, 2}, "deep": [1, (2, (3, ()), [4, {5: 6}])], (1, "a"): 7, b"k": 8,
         "empty": [[], {}, (), set(), "", b"", bytearray()], "ordered": collections.OrderedDict(a=1),
         "counter": collections.Counter("aab"), "many": list(range(3000)), "frozen": frozenset([1])}


# --- files --------------------------------------------------------------------

def test_a_file_keeps_what_was_saved(tmp_path):
    assert td.serialization.save is td.save and td.serialization.load is td.load
    w = td.nn.Parameter(td.arange(6.0).reshape(2, 3))
    state = collections.OrderedDict(w=w, row=w.data[1], n=3, half=td.ones(2, dtype=td.bfloat16), mask=td.tensor([True]),
                                    kind=td.int64, shape=td.Size((2, 3)), place=td.device("cuda:1"), more={"k": [td.tensor(1.5), None, {1, 2}]})
    path = tmp_path / "state.pt"
    td.save(state, path)
    for options in ({}, {"weights_only": False}, {"mmap": True}):
        got = td.load(path, map_location="cpu", **options)
        assert type(got) is collections.OrderedDict and list(got) == list(state)
        assert isinstance(got["w"], td.nn.Parameter) and got["w"].requires_grad and not got["row"].requires_grad
        assert td.equal(got["w"], w) and got["half"].dtype is td.bfloat16 and got["kind"] is td.int64
        assert got["shape"] == state["shape"] and type(got["shape"]) is td.Size
        assert got["place"] == td.device("cuda", 1)
        got["row"][0] = 9
        assert got["w"][1, 0].item() == 9, "views of one memory stay views"
        assert got["more"]["k"][0].item() == 1.5 and got["more"]["k"][2] == {1, 2}
    assert os.listdir(tmp_path) == ["state.pt"]
    buffer = io.BytesIO()
    td.save([td.ones(2)], buffer)
    assert td.load(buffer, lambda storage, place: storage)[0].tolist() == [1, 1]
    assert td.load(buffer, {"cpu": "cpu"})[0].tolist() == td.load(buffer, td.device("cpu"))[0].tolist() == [1, 1]


@pytest.mark.parametrize("safe", [True, False])
def test_python_values_come_back_as_they_were(tmp_path, safe):
    td.save(PLAIN, tmp_path / "plain")
    got = td.load(tmp_path / "plain", weights_only=safe)
    assert got == PLAIN and {k: type(v) for k, v in got.items()} == {k: type(v) for k, v in PLAIN.items()}
    shared = [td.ones(2)] * 2
    shared.append(shared)
    td.save(shared, tmp_path / "shared")
    got = td.load(tmp_path / "shared", weights_only=safe)
    assert got[0] is got[1] and got[2] is got


@pytest.mark.parametrize("make", [lambda: td.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1), lambda: td.zeros(0, 3), lambda: td.tensor(7),
                                  lambda: td.arange(10)[::3], lambda: td.ones(1).expand(4, 5), lambda: td.zeros(2, 3)[:0],
                                  lambda: td.tensor([float("nan"), float("inf"), -0.0]), lambda: td.ones([1] * 8)])
@pytest.mark.parametrize("mmap", [False, True])
def test_layouts_come_back(tmp_path, make, mmap):
    x = make()
    td.save({"x": x}, tmp_path / "x.pt")
    y = td.load(tmp_path / "x.pt", mmap=mmap)["x"]
    assert y.dtype is x.dtype and y.shape == x.shape and y.stride() == x.stride() and y.storage_offset() == x.storage_offset()
    assert bytes(memoryview(x.contiguous())) == bytes(memoryview(y.contiguous()))


def test_a_tensor_with_attributes_and_a_module_need_trust(tmp_path):
    x = td.ones(3)
    x.note = "kept"
    model = td.nn.Sequential(td.nn.Linear(3, 2), td.nn.ReLU())
    td.save([x, model], tmp_path / "m")
    got, copy = td.load(tmp_path / "m", weights_only=False)
    assert got.note == "kept" and td.equal(got, x) and td.equal(copy(x), model(x))
    with pytest.raises(pickle.UnpicklingError, match=r"asks for treadle\._exchange\._rebuild, which is neither"):
        td.load(tmp_path / "m")


def test_two_types_over_one_storage_are_refused(tmp_path):
    bits = td._C._over_storage(td._C._storage(x := td.ones(2))[1], td.int32, (2,), (1,), 0)
    with pytest.raises(RuntimeError, match="two types, treadle.float32 and treadle.int32, share one storage"):
        td.save([x, bits], tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_a_mapped_file_is_read_late_and_never_written(tmp_path):
    path = tmp_path / "big.pt"
    td.save({"w": td.arange(1000.0), "odd": td.ones(3, dtype=td.uint8), "v": td.ones(5)}, path)
    before = path.read_bytes()
    state = td.load(path, mmap=True)
    assert state["w"].data_ptr() % 64 == 0 and state["v"].data_ptr() % 64 == 0
    state["w"].mul_(2)
    assert state["w"][999].item() == 1998 and path.read_bytes() == before
    path.unlink()
    assert state["v"].tolist() == [1] * 5, "the pages outlive the name"
    with pytest.raises(ValueError, match="mmap needs a path"):
        td.load(io.BytesIO(before), mmap=True)
    with zipfile.ZipFile(io.BytesIO(before)) as archive:
        assert archive.testzip() is None and {e.compress_type for e in archive.infolist()} == {0}
        for e in archive.infolist():
            n, m = struct.unpack_from("<2H", before, e.header_offset + 26)
            assert (e.header_offset + 30 + n + m) % 64 == 0


def test_a_model_may_live_in_a_mapped_file(tmp_path):
    def build():
        return td.nn.Sequential(td.nn.Linear(5, 4), td.nn.BatchNorm1d(4))
    net, path = build(), tmp_path / "net.pt"
    td.save(net.state_dict(), path)
    other, state, before = build(), td.load(path, mmap=True), path.read_bytes()
    optim = td.optim.SGD(other.parameters(), 0.1)
    assert not any(other.load_state_dict(state, assign=True))
    assert all(v.data_ptr() == state[k].data_ptr() for k, v in other.state_dict().items())
    x = td.randn(3, 5)
    assert td.equal(other(x), net(x)) and other[0].weight.requires_grad and isinstance(other[0].weight, td.nn.Parameter)
    other(x).square().sum().backward()
    optim.step()
    assert not td.equal(other[0].weight, net[0].weight) and path.read_bytes() == before
    with pytest.raises(RuntimeError, match="size mismatch for 0.weight"):
        other.load_state_dict({**state, "0.weight": td.ones(2)}, assign=True)


# What PyTorch writes, and what it asserts of ours; it runs in a process of its own.
THEIRS = textwrap.dedent("""
    import collections, sys
    import torch as t
    folder, DTYPES = sys.argv[1] + "/", sys.argv[3].split()
    values = [[0, 1, 0], [1, 1, 0]]
    SMALL = {"set": {1, 2}, "deep": [1, (2, (3, ()), [4, {5: 6}])], "counter": collections.Counter("aab"), "raw": b"a\\xff",
             "array": bytearray(b"ab"), "z": 1 + 2j, "big": 2**40, "ordered": collections.OrderedDict(a=1)}

    def build(t):
        net = t.nn.Sequential(t.nn.Conv2d(1, 3, 3), t.nn.BatchNorm2d(3), t.nn.Flatten(), t.nn.Linear(48, 5))
        return net, t.optim.AdamW(net.parameters(), lr=0.01)

    def step(t, net, optim):
        x = t.arange(72.0).reshape(2, 1, 6, 6).sin()
        optim.zero_grad()
        net(x).square().mean().backward()
        optim.step()
        return net(x).flatten().tolist()
    """)
WRITES = THEIRS + textwrap.dedent("""
    for name in DTYPES:
        x = t.tensor(values).to(getattr(t, name)).t()
        t.save({"x": x, "d": x.dtype}, folder + name)
    w = t.nn.Parameter(t.arange(6.0).reshape(2, 3))
    t.save([w, w.data[1], t.zeros(0), t.tensor(3), w, SMALL, t.Size((1, 2)), t.device("cpu")], folder + "shared")
    net, optim = build(t)
    step(t, net, optim)
    t.save({"net": net.state_dict(), "optim": optim.state_dict()}, folder + "model")
    t.save(step(t, net, optim), folder + "after")
    t.save([t.ones(1)], folder + "legacy", _use_new_zipfile_serialization=False)
    t.jit.save(t.jit.script(t.nn.Linear(2, 2)), folder + "script")
    t.save(t.zeros(2, dtype=t.complex64), folder + "complex")
    t.save(t.ones([1] * 9), folder + "rank")
    """)
READS = THEIRS + textwrap.dedent("""
    for name in DTYPES:
        got = t.load(folder + name)
        x = t.tensor(values).to(getattr(t, name)).t()
        assert got["d"] is x.dtype is got["x"].dtype and got["x"].stride() == x.stride() and t.equal(got["x"], x), name
    w, row, none, three, again, small, size, place = t.load(folder + "shared")
    row[0] = 9
    assert w[1, 0] == 9 and again is w and isinstance(w, t.nn.Parameter) and none.shape == (0,) and three == 3
    assert small == SMALL and {k: type(v) for k, v in small.items()} == {k: type(v) for k, v in SMALL.items()}
    assert size == (1, 2) and isinstance(size, t.Size) and place == t.device("cpu")
    state = t.load(folder + "model")
    net, optim = build(t)
    net.load_state_dict(state["net"])
    optim.load_state_dict(state["optim"])
    t.testing.assert_close(t.tensor(step(t, net, optim)), t.tensor(t.load(folder + "after")), rtol=1e-4, atol=1e-5)
    if "mmap" in t.load.__code__.co_varnames:
        assert t.load(folder + "float32", mmap=True)["x"].tolist() == [[0, 1], [1, 1], [0, 0]]
    """)


def peer(python, folder, program):
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([python, "-c", program, folder, "x", " ".join(DTYPES)], capture_output=True, text=True, timeout=300, env=env)
    if "No module named 'torch'" in done.stderr:
        pytest.skip(f"{python} has no PyTorch, which writes and reads the files of this test")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("python", PEERS)
def test_we_read_what_torch_wrote(tmp_path, python):
    peer(python, tmp_path, WRITES)
    space = {}
    exec(THEIRS.replace("import torch as t", "import treadle as t").replace("sys.argv[1]", "''").replace("sys.argv[3]", "''"), space)
    for name in DTYPES:
        for options in ({}, {"mmap": True}, {"weights_only": False}):
            got = td.load(tmp_path / name, **options)
            assert got["d"] is getattr(td, name) is got["x"].dtype and got["x"].stride() == (1, 3)
            assert got["x"].t().to(td.int64).tolist() == space["values"]
    w, row, none, three, again, small, size, place = td.load(tmp_path / "shared")
    row[0] = 9
    assert w[1, 0].item() == 9 and again is w and isinstance(w, td.nn.Parameter) and none.shape == (0,) and three.item() == 3
    assert small == space["SMALL"] and {k: type(v) for k, v in small.items()} == {k: type(v) for k, v in space["SMALL"].items()}
    assert size == (1, 2) and type(size) is td.Size and place == td.device("cpu")
    state, (net, optim) = td.load(tmp_path / "model"), space["build"](td)
    net.load_state_dict(state["net"])
    optim.load_state_dict(state["optim"])
    assert space["step"](td, net, optim) == pytest.approx(td.load(tmp_path / "after"), rel=1e-4, abs=1e-5)
    for name, why in [("legacy", "no zip archive, as PyTorch writes since 1.6"), ("script", "program of TorchScript"),
                      ("complex", "torch.ComplexFloatStorage"), ("rank", "storage: 9 dimensions, at most 8")]:
        with pytest.raises(pickle.UnpicklingError, match=why):
            td.load(tmp_path / name)


@pytest.mark.parametrize("python", PEERS)
def test_torch_reads_what_we_wrote(tmp_path, python):
    space = {}
    exec(THEIRS.replace("import torch as t", "import treadle as t").replace("sys.argv[1]", "''").replace("sys.argv[3]", "''"), space)
    for name in DTYPES:
        td.save({"x": td.tensor(space["values"]).to(getattr(td, name)).t(), "d": getattr(td, name)}, tmp_path / name)
    w = td.nn.Parameter(td.arange(6.0).reshape(2, 3))
    td.save([w, w.data[1], td.zeros(0), td.tensor(3), w, space["SMALL"], td.Size((1, 2)), td.device("cpu")], tmp_path / "shared")
    net, optim = space["build"](td)
    space["step"](td, net, optim)
    td.save({"net": net.state_dict(), "optim": optim.state_dict()}, tmp_path / "model")
    td.save(space["step"](td, net, optim), tmp_path / "after")
    peer(python, tmp_path, READS)


# --- files that are whole -------------------------------------------------------

class Refuses:
    def __reduce__(self):
        raise OSError("half-way")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "state.pt"
    td.save(td.ones(3), path)
    with pytest.raises(OSError, match="half-way"):
        td.save([td.zeros(100000), Refuses()], path)
    assert os.listdir(tmp_path) == ["state.pt"] and td.load(path).tolist() == [1, 1, 1]
    with pytest.raises(FileNotFoundError):
        td.save(td.ones(3), tmp_path / "no" / "state.pt")
    for named in ({"pickle_module": io}, {"_use_new_zipfile_serialization": False}):
        with pytest.raises(ValueError, match="only pickle writes these files"):
            td.save(1, path, **named)
    for call in (lambda: td.load(0), lambda: td.save(1, 5), lambda: td.load(None)):
        with pytest.raises(TypeError, match="expected str, bytes or os.PathLike object, not"):
            call()
    with pytest.raises(ValueError, match="only pickle reads"):
        td.load(path, pickle_module=io)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed: it kills the writer at each system call")
@pytest.mark.parametrize("call", ["openat", "write", "fsync", "rename", "lseek"])
def test_a_kill_at_any_system_call_leaves_the_old_or_the_new_file(tmp_path, call):
    path = tmp_path / "state.pt"
    program = f"import treadle as td, os; open({str(tmp_path / 'mark')!r}); td.save([td.full((5,), 2.0)], {str(path)!r})"
    trace = tmp_path / "trace"
    run = functools.partial(subprocess.run, env={**os.environ, "PYTHONPATH": str(STAGE)}, capture_output=True, text=True, timeout=120)
    (tmp_path / "mark").touch()
    probe = run(["strace", "-f", "-o", trace, "-e", f"trace={call},openat", sys.executable, "-c", program])
    if probe.returncode:
        pytest.skip("strace may not trace here: " + probe.stderr[-200:])
    lines = [line for line in trace.read_text().splitlines() if f" {call}(" in line or "mark" in line]
    began = next(i for i, line in enumerate(lines) if "mark" in line)
    before = sum(f" {call}(" in line for line in lines[:began])
    calls = [i for i, line in enumerate(lines[began:]) if f" {call}(" in line and (call != "openat" or "mark" not in line)]
    for k in sorted({1, (len(calls) + 1) // 2, len(calls)} - {0}):
        td.save([td.full((5,), 1.0)], path)
        at = before + (call == "openat") + k
        killed = run(["strace", "-f", "-o", trace, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={at}",
                      sys.executable, "-c", program])
        assert killed.returncode != 0
        assert td.load(path)[0].tolist() in ([1] * 5, [2] * 5)


def test_nobody_writes_into_the_file_of_another(tmp_path):
    path = tmp_path / "state.pt"

    class Nested:
        def __reduce__(self):
            td.save(td.ones(7), path)
            return int, (5,)
    td.save([td.ones(5000), Nested()], path)
    assert td.load(path, weights_only=False)[1] == 5

    def many(value):
        for _ in range(20):
            td.save(td.full((20000 * value,), value), path)
            x = td.load(path)
            assert x.numel() == 20000 * x[0].item() and (x == x[0]).all()
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        list(threads.map(many, (1, 2, 3)))
    assert os.listdir(tmp_path) == ["state.pt"]


def test_links_rights_and_pipes_stay_what_they_are(tmp_path):
    real, link, pipe = tmp_path / "real.pt", tmp_path / "link.pt", tmp_path / "pipe"
    td.save(td.ones(3), real)
    real.chmod(0o600)
    link.symlink_to(real.name)
    td.save(td.ones(4), link)
    assert link.is_symlink() and td.load(real).numel() == 4 and real.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        read = threads.submit(pipe.read_bytes)
        td.save(td.ones(5), pipe)
        assert td.load(io.BytesIO(read.result(20))).numel() == 5 and pipe.is_fifo()


# --- files that are not to be trusted ---------------------------------------------

class Program:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_weights_only_runs_nothing(tmp_path):
    folder = str(tmp_path / "made")
    td.save({"w": td.ones(2), "x": Program(folder)}, tmp_path / "bad")
    with pytest.raises(pickle.UnpicklingError, match=r"weights_only is set, and the file asks for posix.mkdir"):
        td.load(tmp_path / "bad")
    assert not os.path.exists(folder)
    td.load(tmp_path / "bad", weights_only=False)
    assert os.path.exists(folder)


def archive(program, entries=None, folder="archive/", **options):
    """A file of PyTorch with this pickle."""
    file = io.BytesIO()
    entries = {"data.pkl": program, "data/0": bytes(16), "version": b"3\n", "byteorder": b"little", **(entries or {})}
    with zipfile.ZipFile(file, "w", **options) as z:
        for name, data in entries.items():
            if data is not None:
                z.writestr(folder + name, data)
    return file.getvalue()


def storage(kind=b"Float", key=b"0", n=4):
    return (b"(U\x07storagectorch\n" + kind + b"Storage\nU" + bytes([len(key)]) + key + b"U\x03cpuJ" + struct.pack("<i", n) + b"tQ")


def tensor(offset=0, size=(4,), stride=(1,), name=b"torch._utils\n_rebuild_tensor_v2\n", what=None, **named):
    def numbers(values):
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", v) for v in values) + b"t"
    return (b"c" + name + b"(" + (what or storage(**named)) + b"\x8a\x08" + struct.pack("<q", offset) + numbers(size) + numbers(stride)
            + b"\x89ccollections\nOrderedDict\n)RtR")


HEAD = b"\x80\x02"
DEEP = b"(K\x01q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"t"      # a tuple of two tuples of two tuples ...
BAD = [
    ("BINUNICODE8", b"\x8d\x01\0\0\0\0\0\0\0a."), ("uses STACK_GLOBAL", b"U\x02osU\x06system\x93."), ("uses INST", b"(ios\nsystem\n."),
    ("uses OBJ", b"(cbuiltins\nset\no."), ("uses EXT1", b"\x82\x01."), ("uses FRAME", b"\x95" + bytes(8) + b"N."), ("uses PERSID", b"P0\n."),
    ("uses NEWOBJ_EX", b"cbuiltins\nset\n)}\x92."), ("uses MEMOIZE", b"N\x94."), ("uses DUP", b"N2."), ("uses POP", b"NN0."),
    ("os.system", b"cos\nsystem\nU\x02ls\x85R."), ("__builtin__.eval", b"c__builtin__\neval\nU\x011\x85R."),
    ("builtins.getattr", b"cbuiltins\ngetattr\n."), ("torch.load", b"ctorch\nload\n."), ("torch.uint32", b"ctorch\nuint32\n."),
    ("treadle.serialization", b"ctreadle.serialization\nload\n."), ("collections OrderedDict.x|collections.OrderedDict.x",
                                                                   b"ccollections\nOrderedDict.x\n."),
    ("", b""), ("", b"."), ("", b"N"), ("", b"t."), ("", b"\x87."), ("finds too little", b"N\x86."), ("", b"h\x05."), ("", b"a."), ("", b"]."[:1]),
    ("", b"R."), ("", b"q\x00."), ("", b"X\xff\xff\xff\x7fab."), ("", b"\x8a\xff\x00."), ("", b"U\xffab."), ("", b"]r\xff\xff\xff\xffh\xff."),
    ("APPEND does not fit", b"}K\x01a."), ("SETITEM does not fit", b"]K\x01K\x02s."), ("SETITEMS does not fit", b"N(K\x01K\x02u."),
    ("BUILD does not fit", b"}}b."), ("BUILD does not fit", tensor() + b"}b."), ("REDUCE does not fit", b"cbuiltins\nset\n]R."),
    ("not callable", b"])R."), ("not callable", b"ctorch\nfloat32\n)R."), ("not callable", b"ctorch\nFloatStorage\n)R."),
    ("a list cannot be a key", b"}]K\x01s."), ("a tuple cannot be a key", b"}K\x01\x85\x85K\x01s."), ("cannot be a key", b"}" + DEEP + b"Ns."),
    ("cannot be a key", b"cbuiltins\nset\n]" + DEEP + b"a\x85R."), ("cannot be a key", b"}" + tensor() + b"Ns."),
    ("", b"cbuiltins\nbytearray\n\x8a\x06" + b"\xff" * 5 + b"\x7f\x85R."), ("", b"c_codecs\nencode\nU\x01aU\x03zip\x86R."),
    ("no storage", b"NQ."), ("no storage", b"(U\x07storageNNNNtQ."), ("no storage", b"(U\x07storagectorch\nFloatStorage\nK\x00U\x03cpuGxxxxxxxxtQ."),
    ("it has no data/1", tensor(key=b"1") + b"."), ("it has no data/", tensor(key=b"../0") + b"."),
    ("has 16 bytes, not 5 elements of 4", tensor(n=5) + b"."), ("not -4 elements", tensor(n=-4) + b"."), ("not 4 elements of 8", tensor(kind=b"Double") + b"."),
    ("not 3 elements", tensor(n=3, size=(3,)) + b"."), ("leave the 16 bytes", tensor(size=(5,)) + b"."), ("leave the 16 bytes", tensor(offset=1) + b"."),
    ("leave the 16 bytes", tensor(offset=-1) + b"."), ("leave the 16 bytes", tensor(stride=(2,)) + b"."), ("leave the 16 bytes", tensor(stride=(-1,), offset=3) + b"."),
    ("leave the 16 bytes", tensor(size=(2**40,), stride=(2**40,)) + b"."), ("negative", tensor(size=(-1,)) + b"."),
    ("more elements", tensor(size=(2**62, 4), stride=(0, 0)) + b"."), ("leave the 16 bytes", tensor(size=(4, 1)) + b"."),
    ("storage: 9 dimensions, at most 8", tensor(size=(1,) * 9, stride=(1,) * 9) + b"."), ("a tensor has no storage", tensor(what=b"N") + b"."),
    ("a tensor has no storage", tensor(what=b"NN\x86") + b"."), ("", tensor(name=b"torch._utils\n_rebuild_parameter\n") + b"."),
    ("", b"ctorch._utils\n_rebuild_parameter\n]\x88N\x87R."), ("bools of other bytes", None), ("", b"ctorch\ndevice\nU\x04qpu0\x85R."),
    ("", b"ctorch\nSize\nK\x05\x85R.")]


@pytest.mark.parametrize("why, program", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("mmap", [False, True])
def test_a_hostile_pickle_is_refused(tmp_path, why, program, mmap):
    data = archive(HEAD + program) if program is not None else archive(
        HEAD + tensor(kind=b"Bool", n=16, size=(16,)) + b".", {"data/0": bytes([2] * 16)})
    (tmp_path / "hostile.pt").write_bytes(data)
    with pytest.raises(pickle.UnpicklingError, match=r"load: .*hostile\.pt: .*(" + why + ")"):
        td.load(tmp_path / "hostile.pt", mmap=mmap)


GOOD = HEAD + b"]" + tensor() + b"a" + tensor(kind=b"Int") + b"a."[:0] + b"."


@pytest.mark.parametrize("why, data", [
    ("no zip archive", b""), ("no zip archive", b"\x80\x02N."), ("", b"PK\3\4 a zip of PyTorch"), ("no zip archive", pickle.dumps([1])),
    ("it has no data.pkl", archive(None)), ("it has no version", archive(GOOD, {"version": None})),
    ("version b'11'", archive(GOOD, {"version": b"11"})), ("version b'0'", archive(GOOD, {"version": b"0"})),
    ("version b'-3'", archive(GOOD, {"version": b"-3"})), ("other order of bytes", archive(GOOD, {"byteorder": b"big"})),
    ("TorchScript", archive(GOOD, {"constants.pkl": b""})), ("compressed", archive(GOOD, compression=zipfile.ZIP_DEFLATED)),
    ("not one of a single folder", archive(GOOD, folder="")), ("not one of a single folder", archive(GOOD, {"../x/data.pkl": GOOD}, folder="")),
], ids=range(14))
def test_an_archive_of_another_kind_is_refused(tmp_path, why, data):
    (tmp_path / "other.pt").write_bytes(data)
    for options in ({}, {"mmap": True}, {"weights_only": False}):
        with pytest.raises(pickle.UnpicklingError, match=r"load: .*other\.pt: .*(" + why + ")"):
            td.load(tmp_path / "other.pt", **options)
    with pytest.raises(FileNotFoundError):
        td.load(tmp_path / "nothing")


def test_entries_that_lie_over_each_other_are_refused():
    """A megabyte that two hundred entries claim, as a bomb would."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("a/version", b"3\n")
        z.writestr("a/data/0", bytes(1 << 20))
        first = z.infolist()[1]
        for i in range(1, 200):
            again = zipfile.ZipInfo(f"a/data/{i}")
            again.header_offset, again.file_size, again.compress_size, again.CRC = first.header_offset, first.file_size, first.compress_size, first.CRC
            z.filelist.append(again)
            z.NameToInfo[again.filename] = again
        z._didModify = True
    with pytest.raises(pickle.UnpicklingError, match="overlap"):
        td.load(file)


def test_a_flipped_bit_is_seen_by_its_check_sum(tmp_path):
    td.save({"w": td.arange(5000.0)}, tmp_path / "w")
    data = bytearray((tmp_path / "w").read_bytes())
    data[data.index(struct.pack("<3f", 100, 101, 102)) + 1] ^= 8
    with pytest.raises(pickle.UnpicklingError, match="CRC"):
        td.load(io.BytesIO(data))


# Seeds of the fuzzers: what a mutation starts from.  TREADLE_FUZZ says how many rounds, TREADLE_SEED from where.
def seeds():
    file = io.BytesIO()
    td.save({"p": td.nn.Parameter(td.ones(2, 3)), "plain": PLAIN, "kind": td.float16, "row": td.arange(4)[1:], "b": td.tensor([True])}, file)
    yield file.getvalue()
    yield archive(GOOD)
    yield archive(HEAD + b"(" + tensor() + b"ccollections\nOrderedDict\n)R}U\x01aK\x01sb]q\x00h\x00e}(K\x01K\x02u\x85t."[:0] + b"N.")
    yield from (archive(HEAD + program) for _, program in BAD if program)


def mutated(data, chance):
    """A few bytes changed, inserted, cut out, or copied from elsewhere."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at, n = chance.randrange(len(data) + 1), chance.choice([1, 1, 2, 4, 9])
        part = bytes(chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)]) for _ in range(n))
        other = chance.randrange(len(data) + 1)
        data[at:at + chance.choice([0, n])] = chance.choice([part, b"", data[other:other + n]])
    return bytes(data)


def holds_sense(value):
    """All that was read can be looked at."""
    if isinstance(value, td.Tensor):
        assert value.numel() >= 0 and (value.numel() > 1 << 16 or bytes(memoryview(value.detach().clone())) is not None)
    elif isinstance(value, dict):
        for item in value.values():
            holds_sense(item)
    elif isinstance(value, (list, tuple)) and not any(item is value for item in value):
        for item in value:
            holds_sense(item)


@pytest.mark.filterwarnings("ignore:invalid escape sequence")      # of an argument of an instruction that is refused next
def test_mutated_files_are_read_or_refused(tmp_path):
    chance, corpus = random.Random(int(os.environ.get("TREADLE_SEED", 0))), list(seeds())
    outcomes = collections.Counter()
    for k in range(int(os.environ.get("TREADLE_FUZZ", 1500))):
        data = chance.choice(corpus[:3]) if k % 2 else chance.choice(corpus)
        if k % 3:                                   # the pickle alone, in a sound archive
            with zipfile.ZipFile(io.BytesIO(data)) as z:
                inside = {name.partition("/")[2]: z.read(name) for name in z.namelist()}
            data = archive(mutated(inside.pop("data.pkl"), chance), inside)
        else:
            data = mutated(data, chance)
        path = tmp_path / f"{k % 7}.pt"
        path.write_bytes(data)
        try:
            holds_sense(td.load(path, mmap=k % 2 == 0))
            outcomes["read"] += 1
        except pickle.UnpicklingError:
            outcomes["refused"] += 1
        except RecursionError:
            outcomes["deep"] += 1
    assert outcomes["read"] and outcomes["refused"], outcomes


# --- states ---------------------------------------------------------------------

def orders(loader, epochs=1):
    return [[int(v) for v in batch[0].flatten()] for _ in range(epochs) for batch in loader]


DATA = td.utils.data.TensorDataset(td.arange(23))
LOADERS = {
    "thread": lambda: td.utils.data.DataLoader(DATA, batch_size=4, shuffle=True),
    "own": lambda: td.utils.data.DataLoader(DATA, batch_size=4, shuffle=True, generator=td.Generator().manual_seed(5)),
    "plain": lambda: td.utils.data.DataLoader(DATA, batch_size=4, drop_last=True),
    "weighted": lambda: td.utils.data.DataLoader(DATA, batch_size=3, sampler=td.utils.data.WeightedRandomSampler(
        td.arange(23.0).tolist(), 17, generator=td.Generator().manual_seed(2))),
    "subset": lambda: td.utils.data.DataLoader(DATA, batch_sampler=td.utils.data.BatchSampler(
        td.utils.data.SubsetRandomSampler(list(range(19))), 4, False)),
    "single": lambda: td.utils.data.DataLoader(DATA, batch_size=None, shuffle=True),
    "listed": lambda: td.utils.data.DataLoader(DATA, batch_size=2, sampler=[3, 1, 4, 1, 5, 9]),
    "lazy": lambda: td.utils.data.DataLoader(DATA, batch_size=4, sampler=Lazy()),
    "stream": lambda: td.utils.data.DataLoader(Stream(), batch_size=4),
}


class Lazy(td.utils.data.Sampler):
    """Draws its order when the first index is asked for."""

    def __iter__(self):
        yield from td.randperm(23).tolist()

    def __len__(self):
        return 23


class Stream(td.utils.data.IterableDataset):
    def __iter__(self):
        return iter([(v,) for v in td.randperm(14)])


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_a_loader_goes_on_in_the_middle_of_an_epoch(tmp_path, kind, taken):
    td.manual_seed(11)
    loader = LOADERS[kind]()
    first = orders(loader)
    batches = iter(loader)
    got = [[int(v) for v in next(batches)[0].flatten()] for _ in range(taken)]
    td.rand(7)                                      # of a dropout, say
    td.save(loader.state_dict(), tmp_path / "state")
    wanted = [[int(v) for v in b[0].flatten()] for b in batches] + [td.rand(2).tolist()] + orders(loader, 2)
    td.manual_seed(99)
    again = LOADERS[kind]()
    again.load_state_dict(td.load(tmp_path / "state"))
    assert td.load(tmp_path / "state") == again.state_dict()
    if kind in ("own", "weighted"):                 # the thread's numbers are not theirs
        td.manual_seed(11)
        td.random.set_rng_state(td.random.get_rng_state())
        assert orders(again) == wanted[:len(first) - taken]
        td.rand(2)
        assert orders(again, 2) == wanted[len(first) - taken + 1:]
        return
    assert orders(again) + [td.rand(2).tolist()] + orders(again, 2) == wanted
    assert len(got) == taken


def test_the_last_batch_of_an_epoch_is_the_last(tmp_path):
    loader, states = LOADERS["own"](), []
    for _ in loader:
        states.append(loader.state_dict())
    wanted = orders(loader)
    again = LOADERS["own"]()
    again.load_state_dict(states[-1])
    assert orders(again) == [] and orders(again) == wanted
    again = LOADERS["own"]()
    fresh = again.state_dict()
    first = orders(again)
    assert again.state_dict()["epoch"] is None
    again.load_state_dict(fresh)
    assert orders(again) == first
    for bad in (None, {}, {"epoch": 1}, 3):
        with pytest.raises(ValueError, match="expected what state_dict returned"):
            again.load_state_dict(bad)
    with pytest.raises((TypeError, KeyError)):
        again.load_state_dict({"epoch": None, "batches": 0, "number": 0, "sampler": {"random": "no"}})


def test_an_epoch_that_was_left_is_resumed_where_it_was_left():
    loader = LOADERS["own"]()
    for n, batch in enumerate(loader):
        if n == 2:
            break
    again = LOADERS["own"]()
    again.load_state_dict(loader.state_dict())
    assert len(orders(again)) == 3


RUN = textwrap.dedent("""
    import os, signal, sys
    import treadle as td
    kind, path, kill_at, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    F = td.nn.functional
    td.manual_seed(3)
    net = td.nn.Sequential(td.nn.Linear(6, 16), td.nn.BatchNorm1d(16), td.nn.ReLU(), td.nn.Dropout(0.3), td.nn.Linear(16, 3))
    optim, plan, generator = {
        "sgd": lambda: (td.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True), None, None),
        "adamw": lambda: (td.optim.AdamW([{"params": net[0].parameters(), "lr": 0.01}, {"params": net[4].parameters()}], lr=0.02,
                                         amsgrad=True), td.optim.lr_scheduler.CosineAnnealingLR, td.Generator().manual_seed(8)),
        "rmsprop": lambda: (td.optim.RMSprop(net.parameters(), 0.01, momentum=0.5, centered=True),
                            lambda o, n: td.optim.lr_scheduler.OneCycleLR(o, 0.05, total_steps=n), None),
        "chain": lambda: (td.optim.Adagrad(net.parameters(), 0.05), lambda o, n: td.optim.lr_scheduler.SequentialLR(o, [
            td.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=5), td.optim.lr_scheduler.MultiStepLR(o, [4, 9])], [5]), None),
        "plateau": lambda: (td.optim.Adam(net.parameters(), 0.05), lambda o, n: td.optim.lr_scheduler.ReduceLROnPlateau(o, patience=1), None),
    }[kind]()
    plan = plan and plan(optim, 24)
    x = td.arange(180.0).reshape(30, 6).sin()
    data = td.utils.data.TensorDataset(x, (x.sum(1) > 0).long() + (x[:, 0] > 0.5).long())
    loader = td.utils.data.DataLoader(data, batch_size=4, shuffle=True, generator=generator)
    parts = {"net": net, "optim": optim, "loader": loader, **({"plan": plan} if plan else {})}
    epoch, steps = 0, 0
    if os.path.exists(path):
        state = td.load(path)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        td.set_rng_state(state["random"])
        epoch, steps = state["epoch"], state["steps"]
    for epoch in range(epoch, 3):
        for a, b in loader:
            optim.zero_grad()
            loss = F.cross_entropy(net(a + 0.01 * td.randn_like(a)), b)
            loss.backward()
            optim.step()
            if plan:
                plan.step(*([loss.item()] if kind == "plateau" else []))
            steps += 1
            if steps % 5 == 0:
                td.save({"epoch": epoch, "steps": steps, "random": td.get_rng_state(),
                         **{name: part.state_dict() for name, part in parts.items()}}, path)
            if steps == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
    td.save({"net": net.state_dict(), "optim": optim.state_dict(), "random": td.get_rng_state(), "steps": steps}, out)
""")


def bits(value):
    if isinstance(value, td.Tensor):
        return str(value.dtype), tuple(value.shape), bytes(memoryview(value.detach().contiguous()))
    if isinstance(value, dict):
        return {k: bits(v) for k, v in value.items()}
    return [bits(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("kind", ["sgd", "adamw", "rmsprop", "chain", "plateau"])
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, kind):
    def run(path, kill_at, out):
        return subprocess.run([sys.executable, "-c", RUN, kind, tmp_path / path, str(kill_at), tmp_path / out], timeout=300,
                              env={**os.environ, "PYTHONPATH": str(STAGE)}, capture_output=True, text=True)
    straight = run("a.pt", 0, "straight")
    assert straight.returncode == 0, straight.stderr
    for kill_at in (7, 14, 20) if kind == "adamw" else (13,):       # in the first epoch, the second, and right after a checkpoint
        assert run("b.pt", kill_at, "resumed").returncode == -signal.SIGKILL
    resumed = run("b.pt", 0, "resumed")
    assert resumed.returncode == 0, resumed.stderr
    one, two = td.load(tmp_path / "straight"), td.load(tmp_path / "resumed")
    assert one["steps"] == two["steps"] == 24 and len(one["net"]) == 9
    assert bits(one) == bits(two)
