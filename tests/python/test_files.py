# needs: metrics transforms files porting
"""CIFAR-10, tables and texts; transforms; metrics."""
import csv
import gzip
import io
import os
import random
from pathlib import Path

import pytest
import treadle as td
from treadle import metrics
from treadle.datasets import CIFAR10, TextDataset, read_csv
from treadle.transforms import (Compose, Flatten, Normalize, OneHot, RandomCrop,
                                RandomHorizontalFlip, ToTensor)
from treadle.utils.data import DataLoader, TensorDataset

np = pytest.importorskip("numpy")
DATA = Path(os.environ.get("TREADLE_DATA", "/nowhere"))


# ---- CIFAR-10 ---------------------------------------------------------------

def records(n, first=0):
    return b"".join(bytes([(first + i) % 10]) + bytes((7 * j + 3 * i) % 256 for j in range(3072)) for i in range(n))


@pytest.fixture
def cifar(tmp_path):
    (tmp_path / "data_batch_1.bin").write_bytes(records(5))
    (tmp_path / "data_batch_2.bin.gz").write_bytes(gzip.compress(records(2, 5)))
    (tmp_path / "test_batch.bin").write_bytes(records(3))
    return tmp_path


def test_cifar_records_become_images_of_three_planes(cifar):
    train = CIFAR10(cifar)
    assert train.data.shape == (7, 3, 32, 32) and train.targets.tolist() == list(range(7))
    image, label = train[1]
    assert image.shape == (3, 32, 32) and image.dtype is td.float32 and label == 1
    assert image[2, 1, 4].item() == pytest.approx((7 * (2048 + 36) + 3) % 256 / 255)
    x, y = next(iter(DataLoader(CIFAR10(cifar, train=False), 2)))
    assert x.shape == (2, 3, 32, 32) and y.tolist() == [0, 1]
    assert len(train.classes) == 10


@pytest.mark.parametrize("bad, words", [
    (records(2)[:-1], "data_batch_1.bin has 6145 bytes"), (b"", "has 0 bytes"), (records(1) + b"\x0a" + bytes(3072), "record 1"),
    (b"\x1f\x8b" + bytes(9), "data_batch_1.bin")])
def test_bad_cifar_files_are_refused(cifar, bad, words, no_leaks):
    (cifar / "data_batch_1.bin").write_bytes(bad)
    with pytest.raises(OSError, match=words):
        CIFAR10(cifar)


def test_missing_cifar_files_are_named(cifar, tmp_path):
    (cifar / "test_batch.bin").unlink()
    with pytest.raises(OSError, match="test_batch"):
        CIFAR10(cifar, train=False)
    with pytest.raises(OSError, match="data_batch_1.bin"):
        CIFAR10("/nowhere")


def test_the_subset_of_cifar():
    if not (DATA / "cifar10-subset").is_dir():
        pytest.skip("no cifar10-subset in TREADLE_DATA")
    train, test = (CIFAR10(DATA / "cifar10-subset", part) for part in (True, False))
    assert len(train) == 10000 and len(test) == 1000
    assert train.targets.bincount().tolist() == [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981]
    mean = train.data.float().mean((0, 2, 3)) / 255
    assert [round(m, 4) for m in mean.tolist()] == [0.4935, 0.4834, 0.4472]


# ---- tables -----------------------------------------------------------------

def table(folder, text, **options):
    path = folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_csv(path, **options)


def test_columns_take_the_narrowest_type(tmp_path):
    t = table(tmp_path, 'a,b,c\n1,1.5,x\n-2, 3 ,"y, ""z"""\r\n3,1e3,""')
    assert t["a"].tolist() == [1, -2, 3] and t["a"].dtype is td.int64
    assert t["b"].tolist() == [1.5, 3, 1000] and t["b"].dtype is td.float32
    assert t["c"] == ["x", 'y, "z"', ""]


def test_missing_values(tmp_path):
    t = table(tmp_path, "a,b\n1,\n,x\n")
    assert t["a"][0].item() == 1 and t["a"][1].isnan() and t["b"] == ["", "x"]
    assert table(tmp_path, "a\n1\n\"\"\n", dtype=td.int32, fill=-7)["a"].tolist() == [1, -7]
    with pytest.raises(ValueError, match=r"t.csv, line 3, column 1 \(a\): expected int64, got ''"):
        table(tmp_path, 'a\n1\n""\n', dtype=td.int64)


@pytest.mark.parametrize("dtype, fill", [(td.int64, 1.5), (td.int64, float("nan")), (td.uint8, -1), (td.int8, 300), (td.bool, 2),
                                         (td.int64, 2.0 ** 63), (td.float16, 1e6)])
def test_what_fills_a_gap_must_fit(tmp_path, dtype, fill):
    with pytest.raises(ValueError, match="line 2, column 2"):
        table(tmp_path, "a,b\n1,\n", dtype=dtype, fill=fill)
    assert table(tmp_path, "a,b\n1,0\n", dtype=dtype, fill=fill)["b"].dtype is dtype
    assert table(tmp_path, "a,b\n1,\n0,1\n", dtype=dtype, fill=1)["b"].tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["float32", np.float32, object])
def test_what_is_no_dtype_is_not_text(tmp_path, dtype):
    with pytest.raises(TypeError, match="is no dtype, str or None"):
        table(tmp_path, "a\n1\n", dtype=dtype)


def test_options_of_tables(tmp_path):
    t = table(tmp_path, "1;2\n3;4", delimiter=";", header=False, columns=[1], dtype={1: td.float64})
    assert list(t) == [1] and t[1].tolist() == [2, 4] and t[1].dtype is td.float64
    assert table(tmp_path, b"\xef\xbb\xbfa\n1\n\n\n2\n")["a"].tolist() == [1, 2]
    assert table(tmp_path, gzip.compress(b"a\n5\n"))["a"].tolist() == [5]
    assert table(tmp_path, "a\n5\n", dtype=str)["a"] == ["5"] and table(tmp_path, "a\n0x10\n1\n")["a"] == ["0x10", "1"]
    assert table(tmp_path, "") == {} and len(table(tmp_path, "a,b\n")["b"]) == 0


@pytest.mark.parametrize("text, words", [
    ("a,b\n1,2\n\n3\n", "line 4: expected 2 values, got 1"), ("a,b\n1,2,3\n", "line 2: expected 2 values, got 3"),
    ('a\n"x\n\n', "line 2: a quotation mark is never closed"), ('a\n"x""', "line 2: a quotation mark is never closed"),
    ('a\n"', "never closed"), ('a\n"x\ny"z\n', "line 3: text follows a closing quotation mark"),
    ("a,b\r1,2\r", "line 1: a carriage return ends no line"), ("a\n1\r2\n", "line 2: a carriage return ends no line"),
    (b"a\0b", "zero byte"), (b"\x1f\x8bnot", "t.csv")])
def test_tables_that_are_none_name_the_line(tmp_path, text, words, no_leaks):
    with pytest.raises(OSError, match=words):
        table(tmp_path, text)


@pytest.mark.parametrize("text, dtype, words", [
    ('a,b\n1,"2\n"\nx,3\n', td.int64, r"line 4, column 1 \(a\): expected int64, got 'x'"),
    ("a\n300\n", td.uint8, "got '300'"), ("a\n1.5\n", td.int32, "got '1.5'"), ("a\n99999999999999999999\n", td.int64, "got '999"),
    ("a\n-1\n", td.uint8, "got '-1'"), ("a\n-255\n", td.uint8, "got '-255'"), ("a\n2\n", td.bool, "got '2'"), ("a\n70000\n", td.float16, "got '70000'"),
    ("a\n0x10\n", td.float32, "got '0x10'"), ("a\n0x10\n", td.int64, "got '0x10'"), ("a\n1e\n", td.float32, "got '1e'"), ("a\n1 2\n", td.float32, "got '1 2'")])
def test_values_of_the_wrong_type_name_the_line(tmp_path, text, dtype, words):
    with pytest.raises(ValueError, match=words):
        table(tmp_path, text, dtype={"a": dtype})


def test_bad_arguments_of_tables(tmp_path):
    for options in ({"delimiter": "\n"}, {"delimiter": '"'}, {"columns": ["z"]}, {"dtype": {"z": td.int64}}):
        with pytest.raises(ValueError):
            table(tmp_path, "a\n1\n", **options)
    with pytest.raises(ValueError, match="one name"):
        table(tmp_path, "a,a\n1,2\n")
    with pytest.raises(TypeError):
        table(tmp_path, "a\n1\n", delimiter=",,")
    with pytest.raises(OSError):
        read_csv("/nowhere")


def test_tables_agree_with_the_module_csv(tmp_path):
    draw = random.Random(3)
    for _ in range(300):
        columns = draw.randint(1, 4)
        rows = [["".join(draw.choice('a,"\n\r \'é1') for _ in range(draw.randint(0, 4))) for _ in range(columns)]
                for _ in range(draw.randint(1, 6))]
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator=draw.choice(["\n", "\r\n"])).writerows(rows)
        got = table(tmp_path, out.getvalue(), header=False, dtype=str)
        assert [list(row) for row in zip(*got.values())] == rows


SEEDS = [b"a,b\n1,2\n", b'"a","b\n"\r\n"1","2"\r\n', b'a\n"x""y"\n', b"\xef\xbb\xbf\n,\n", b'"', b'""', b'"""', b"\r", b"\n\r\n",
         b"1e999,nan,0x1p3,-inf\n", gzip.compress(b"a,b\n1,2")]


def test_spoilt_tables_are_read_or_refused(tmp_path, no_leaks):
    draw = random.Random(5)
    for _ in range(int(os.environ.get("TREADLE_FUZZ", 1500))):
        text = bytearray(draw.choice(SEEDS))
        for _ in range(draw.randint(0, 4)):
            at = draw.randint(0, len(text))
            text[at:at + draw.randint(0, 2)] = draw.choice([b'"', b",", b"\n", b"\r", b"9", b"\0", bytes([draw.randint(0, 255)])])
        try:
            t = table(tmp_path, bytes(text), header=draw.random() < 0.5, dtype=draw.choice([None, str, td.float32, td.int8]))
            assert len({len(column) for column in t.values()}) <= 1
        except (OSError, ValueError):
            pass


def test_spoilt_records_are_read_or_refused(cifar, no_leaks):
    draw = random.Random(6)
    good = [records(2), gzip.compress(records(2))]
    for _ in range(100):
        data = bytearray(draw.choice(good))
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(data))
            data[at:at + draw.randint(0, 2)] = bytes([draw.randint(0, 255)])
        (cifar / "data_batch_1.bin").write_bytes(data)
        try:
            assert int(CIFAR10(cifar).targets.max()) < 10
        except OSError:
            pass


def test_real_tables():
    if not (DATA / "timeseries").is_dir():
        pytest.skip("no timeseries in TREADLE_DATA")
    t = read_csv(DATA / "timeseries/airline-passengers.csv")
    assert t["Passengers"].sum().item() == 40363 and t["Month"][-1] == "1960-12"
    t = read_csv(DATA / "timeseries/daily-min-temperatures.csv")
    assert len(t["Temp"]) == 3650 and round(t["Temp"].mean().item(), 4) == 11.1778
    t = read_csv(DATA / "digits/digits.csv.gz", header=False)
    assert t[64].bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


# ---- text -------------------------------------------------------------------

def test_windows_of_a_text(tmp_path):
    (tmp_path / "t").write_text("abcabd\n")
    text = TextDataset(tmp_path / "t", 3)
    assert text.characters == "\nabcd" and len(text) == 4
    x, y = text[1]
    assert text.decode(x) == "bca" and text.decode(y.tolist()) == "cab"
    assert text.encode("dab").tolist() == [4, 1, 2]
    (xs, ys), = DataLoader(text, 4)
    assert xs.shape == ys.shape == (4, 3) and (xs[:, 1:] == ys[:, :-1]).all()
    other = TextDataset(tmp_path / "t", 2, characters="dcba\n")
    assert other.encode("d").item() == 0
    for bad, words in ((0, "length 0"), (7, "length 7")):
        with pytest.raises(ValueError, match=words):
            TextDataset(tmp_path / "t", bad)
    with pytest.raises(ValueError, match="without a number"):
        TextDataset(tmp_path / "t", 2, characters="abc")


# ---- transforms -------------------------------------------------------------

def test_to_tensor():
    image = np.arange(60, dtype="uint8").reshape(4, 5, 3)
    assert np.array_equal(ToTensor()(image).numpy(), (image.transpose(2, 0, 1) / np.float32(255)).astype("f4"))
    assert ToTensor()(image[..., 0]).shape == (1, 4, 5)
    assert ToTensor()(image.astype("f4")).max().item() == 59
    x = td.rand(3, 2, 2)
    assert ToTensor()(x) is x

    class Picture:
        mode, size = "RGB", (5, 4)

        def tobytes(self):
            return image.tobytes()
    assert (ToTensor()(Picture()) == ToTensor()(image)).all()
    with pytest.raises(TypeError, match="ToTensor.*got 'a'"):
        ToTensor()("a")


def test_normalize():
    x = td.rand(2, 3, 4, 5)
    mean, std = (0.1, 0.2, 0.3), (1.5, 2.5, 3.5)
    y = Normalize(mean, std)(x)
    for c in range(3):
        assert td.allclose(y[:, c], (x[:, c] - mean[c]) / std[c])
    assert td.allclose(Normalize(0.5, 2)(td.ones(7)), td.full((7,), 0.25))
    assert Normalize(mean, std, inplace=True)(x) is x and td.allclose(x, y)
    with pytest.raises(ValueError, match="std evaluated to zero"):
        Normalize(mean, (1, 0, 1))(x)
    with pytest.raises(TypeError, match="real numbers"):
        Normalize(0, 1)(td.ones(3, dtype=td.uint8))
    with pytest.raises(RuntimeError):
        Normalize((1, 2), (1, 2))(x)


def test_random_crop():
    x = td.arange(30.0).view(1, 5, 6)
    seen = set()
    td.manual_seed(1)
    for _ in range(200):
        y = RandomCrop((3, 4))(x)
        top, left = divmod(int(y[0, 0, 0]), 6)
        assert (y == x[:, top:top + 3, left:left + 4]).all()
        seen.add((top, left))
    assert len(seen) == 9
    assert (RandomCrop((5, 6))(x) == x).all()
    y = RandomCrop(9, padding=2, fill=-1)(x[..., :5])
    assert (y[:, 2:7, 2:7] == x[..., :5]).all() and (y[:, :2] == -1).all()
    assert RandomCrop((7, 12), padding=(3, 1))(x).shape == (1, 7, 12)
    assert RandomCrop((5, 9), padding=(1, 0, 2, 0), padding_mode="edge")(x)[0, 0].tolist() == [0, 0, 1, 2, 3, 4, 5, 5, 5]
    assert RandomCrop((8, 8), pad_if_needed=True)(x).shape == (1, 8, 8)
    for bad in (lambda: RandomCrop((6, 6))(x), lambda: RandomCrop(3, padding=(1, 2, 3)), lambda: RandomCrop((1, 2, 3))):
        with pytest.raises(ValueError, match="RandomCrop"):
            bad()
    with pytest.raises(TypeError):
        RandomCrop(2)([1])


def test_random_flip_one_hot_and_composition():
    x = td.arange(6.0).view(1, 2, 3)
    td.manual_seed(2)
    flips = [bool((RandomHorizontalFlip(0.25)(x) != x).any()) for _ in range(800)]
    assert 0.2 < sum(flips) / 800 < 0.3
    assert (RandomHorizontalFlip(1)(x) == x.flip(-1)).all() and RandomHorizontalFlip(0)(x) is x
    with pytest.raises(ValueError, match="probability"):
        RandomHorizontalFlip(1.5)
    with pytest.raises(TypeError, match="float"):
        OneHot(3)(1.5)
    assert OneHot(4)(2).tolist() == [0, 0, 1, 0] and OneHot(3)(td.tensor(1)).dtype is td.float32
    both = Compose([Normalize(1, 2), Flatten()])
    assert both(x).tolist() == [-0.5, 0, 0.5, 1, 1.5, 2]
    assert repr(both) == "Compose(transforms=[Normalize(mean=1, std=2, inplace=False), Flatten()])"


def test_a_seed_or_a_generator_repeats_what_is_drawn():
    x = td.rand(1, 12, 12)
    draw = Compose([RandomCrop(5), RandomHorizontalFlip()])
    runs = []
    for _ in range(2):
        td.manual_seed(3)
        runs.append([draw(x).tolist() for _ in range(9)])
    assert runs[0] == runs[1] and runs[0][0] != runs[0][1]
    g = td.Generator()
    own = RandomCrop(5, generator=g)
    runs = []
    for _ in range(2):
        g.manual_seed(4)
        runs.append([own(x).tolist() for _ in range(9)])
        td.rand(3)
    assert runs[0] == runs[1]


# ---- metrics ----------------------------------------------------------------

def by_hand(p, t, k):
    m = np.zeros((k, k), int)
    for i, j in zip(t, p):
        m[i, j] += 1
    return m


def test_confusion_and_its_scores():
    draw = np.random.RandomState(0)
    p, t = draw.randint(0, 5, 97), draw.randint(0, 5, 97)
    t[t == 3] = 2
    m = by_hand(p, t, 6)
    P, T = td.tensor(p), td.tensor(t)
    assert metrics.confusion_matrix(P, T, 6).tolist() == m.tolist()
    assert metrics.confusion_matrix(P, T).shape == (5, 5)
    assert td.allclose(metrics.confusion_matrix(P, T, 6, "true").sum(1), td.tensor([1., 1, 1, 0, 1, 0]))
    assert metrics.confusion_matrix(P, T, 6, "all").sum().item() == pytest.approx(1)
    with np.errstate(all="ignore"):
        pre, rec = (np.nan_to_num(m.diagonal() / m.sum(d)) for d in (0, 1))
        f1 = np.nan_to_num(2 * m.diagonal() / (m.sum(0) + m.sum(1)))
    there = m.sum(0) + m.sum(1) > 0
    for f, each in ((metrics.precision, pre), (metrics.recall, rec), (metrics.f1_score, f1)):
        assert np.allclose(f(P, T, 6, average=None).numpy(), each)
        assert f(P, T, 6, average="macro").item() == pytest.approx(each[there].mean())
        assert f(P, T, 6, average="weighted").item() == pytest.approx((each * m.sum(1)).sum() / 97)
        assert f(P, T, 6).item() == pytest.approx((p == t).mean())
        assert f(td.tensor(m), average="macro").item() == pytest.approx(each[there].mean())
        assert f.__name__ in f.__doc__ or f.__doc__
    sk = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    assert metrics.f1_score(P, T, 6, "macro").item() == pytest.approx(sk.f1_score(t, p, average="macro"))


def test_accuracy():
    s = td.tensor([[.1, .5, .4], [.3, .3, .4], [.2, .2, .2]])
    t = td.tensor([2, 0, 1])
    assert [metrics.accuracy(s, t, top_k=k).item() for k in (1, 2, 3)] == pytest.approx([0, 1, 1])
    assert metrics.accuracy(s, td.tensor([1, 2, 0])).item() == 1
    assert metrics.accuracy(td.tensor([1, 1, 0]), td.tensor([1, 0, 0])).item() == pytest.approx(2 / 3)
    assert metrics.accuracy(td.tensor([1, 1, 0]), td.tensor([1, 0, 0]), average="macro").item() == pytest.approx(0.75)


@pytest.mark.parametrize("dtype, k", [(td.uint8, 20), (td.uint8, 300), (td.int8, 100), (td.int16, 300), (td.int32, 300)])
def test_narrow_labels_do_not_wrap_around(dtype, k):
    y = td.arange(min(k, 127), dtype=dtype)
    m = metrics.confusion_matrix(y, y, k)
    assert m.dtype is td.int64 and m.trace().item() == len(y) and metrics.f1_score(y, y).item() == 1
    assert metrics.accuracy(td.eye(len(y)), y).item() == 1


@pytest.mark.parametrize("bad, words", [
    (lambda: metrics.confusion_matrix(td.tensor([0, 1]), td.tensor([0])), "shapes"),
    (lambda: metrics.confusion_matrix(td.tensor([0, 1]), td.tensor([0, 4]), 3), "4 is none of 3 classes"),
    (lambda: metrics.confusion_matrix(td.tensor([0, -1]), td.tensor([0, 1])), "-1 is none"),
    (lambda: metrics.confusion_matrix(td.tensor([0]), td.tensor([0]), normalize="x"), "normalize must be"),
    (lambda: metrics.precision(td.tensor([0]), td.tensor([0]), average="x"), "average must be"),
    (lambda: metrics.accuracy(td.tensor([0]), td.tensor([0]), top_k=2), "top_k needs"),
    (lambda: metrics.accuracy(td.eye(3)[:, :2], td.tensor([[0], [1], [0]])), "shapes"),
    (lambda: metrics.accuracy(td.eye(3)[:, :2], td.tensor([0])), "shapes"),
    (lambda: metrics.accuracy(td.eye(2), td.tensor([0, 2])), "2 is none of 2"),
    (lambda: metrics.accuracy(td.eye(2), td.tensor([0, -1])), "-1 is none of 2")])
def test_bad_arguments_of_metrics(bad, words):
    with pytest.raises(ValueError, match=words):
        bad()


def test_running_metrics_and_train_epoch():
    mean = metrics.MeanMetric()
    assert np.isnan(mean.compute())
    mean.update(td.tensor([1.0, 2.0]))
    mean.update(6.0, weight=2)
    assert mean.compute() == pytest.approx(15 / 4)
    m = metrics.ConfusionMatrix(3)
    for _ in range(2):
        m.update(td.tensor([0, 1]), td.tensor([0, 2]))
    assert m.compute().tolist() == [[2, 0, 0], [0, 0, 0], [0, 2, 0]]
    m.reset()
    assert m.compute().sum().item() == 0
    td.manual_seed(0)
    x = td.randn(20, 3)
    net = td.nn.Linear(3, 1)
    net.eval()
    sgd = td.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 8)
    losses = [td.train_epoch(net, loader, sgd, td.nn.functional.mse_loss) for _ in range(30)]
    assert net.training and losses[-1] < 0.01 * losses[0]
    assert isinstance(losses[0], float)


def test_a_header_is_any_truth_value(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    for header in (-1, 7, [0]):
        assert read_csv(path, header=header)["b"].tolist() == [2]


def test_bytes_that_are_no_text_do_not_silence_an_error(tmp_path):
    table = tmp_path / os.fsdecode(b"n\xffme.csv")
    table.write_bytes(b"a,b\xe9\n1\n")
    with pytest.raises(OSError, match="csv_read: .*n\ufffdme.csv, line 2: expected 2 values, got 1"):
        td.datasets.read_csv(table)
    table.write_bytes(b"a\n1\nx\xe9y\n")
    with pytest.raises(ValueError, match="line 3.*expected int64, got 'x\ufffdy'"):
        td.datasets.read_csv(table, dtype=td.int64)


def test_what_does_not_fit_a_crop_is_refused():
    for size in -1, 0, (2, -1):
        with pytest.raises(ValueError, match="sizes > 0"):
            RandomCrop(size)
    with pytest.raises(RuntimeError, match="300 does not fit uint8"):
        RandomCrop(2, padding=1, fill=300)(td.ones(1, 2, 2, dtype=td.uint8))
