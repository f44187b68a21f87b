# needs: trainings porting
# SPDX-License-Identifier: MIT
"""The six trainings of the package, what their command says, and runs that are killed, stopped and gone on with."""
import csv
import os
import pty
import random
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import treadle as td
from treadle import programs
from treadle.programs import TASKS, Loop

STAGE = Path(td.__file__).parents[1]
DATA = Path(os.environ.get("TREADLE_DATA") or "data")
FILES = "model.safetensors", "log.csv", "curves.svg"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Every data set, very small, with something to learn in each."""
    root, draw = tmp_path_factory.mktemp("data"), random.Random(7)
    for folder in "fashion-mnist", "mnist":
        (root / folder).mkdir()
        for part, n in ("train", 100), ("t10k", 23):
            labels = [draw.randrange(10) for _ in range(n)]
            pixels = b"".join(bytes(min(255, 20 * k + draw.randrange(60)) for _ in range(784)) for k in labels)
            (root / folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, n, 28, 28) + pixels)
            (root / folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, n) + bytes(labels))
    (root / "cifar10-subset").mkdir()
    for name, n in ("data_batch_1", 50), ("test_batch_first1000", 11):
        (root / "cifar10-subset" / f"{name}.bin").write_bytes(b"".join(
            bytes([i % 10]) + draw.randbytes(3072) for i in range(n)))
    (root / "timeseries").mkdir()
    for name in "airline-passengers", "daily-min-temperatures":
        rows = "".join(f'"{i}",{20 + i / 3 + 5 * (i % 7) + draw.random():.3f}\r\n' for i in range(131))
        (root / "timeseries" / f"{name}.csv").write_text('"When","What"\r\n' + rows)
    (root / "text").mkdir()
    (root / "text" / "tinyshakespeare.txt").write_text("".join(
        draw.choice(("to be\n", "or not ", "that is ", "the question\n")) for _ in range(400)))
    return root


RUN = """
import os, signal, sys
from treadle import programs
from treadle.__main__ import main
programs.Shakespeare.draws, kill_at, learn = 80, int(sys.argv.pop(1)), programs.Loop.learn
def learned(self, *batch):
    loss = learn(self, *batch)
    print(self.step + 1, loss.hex(), flush=True)
    if self.step + 1 == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return loss
programs.Loop.learn = learned
sys.argv[0] = "treadle"
sys.exit(main())
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(STAGE), **more}


def training(data, *words, kill_at=0):
    return subprocess.run([sys.executable, "-c", RUN, str(kill_at), "train", *map(str, words), "--data", str(data)],
                          capture_output=True, text=True, timeout=300, env=environment())


def command(*words, **more):
    return subprocess.run([sys.executable, "-m", "treadle", *map(str, words)], capture_output=True, text=True,
                          timeout=300, env=environment(**more))


def losses(done):
    return dict(re.findall(r"^(\d+) (-?0x\S+)$", done.stdout, re.M))


@pytest.mark.parametrize("task, size", [("fashion", 25), ("mnist", 40), ("resnet", 10), ("airline", 16), ("temperatures", 16),
                                        ("shakespeare", 16)])
def test_a_killed_training_goes_on_to_the_same_bits(data, tmp_path, task, size):
    """Killed in the second epoch, between two checkpoints, and again at once; to the same losses, weights and files."""
    words = task, "--epochs", 3, "--batch-size", size, "--save-every", 3
    whole = training(data, *words, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    n = len(losses(whole)) // 3
    assert n >= 3
    killed = training(data, *words, "--out", tmp_path / "cut", kill_at=n + 3)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = training(data, task, "--resume", "--save-every", 3, "--out", tmp_path / "cut", kill_at=2 * n)
    assert again.returncode == -signal.SIGKILL, again.stderr
    end = training(data, task, "--resume", "--out", tmp_path / "cut")
    assert end.returncode == 0, end.stderr
    wanted, seen = losses(whole), {}
    for part in killed, again, end:
        assert losses(part).items() <= wanted.items()
        seen.update(losses(part))
    assert seen == wanted and min(map(int, losses(end))) > n
    for name in FILES:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    over = training(data, task, "--resume", "--out", tmp_path / "cut")
    assert over.returncode == 0 and not losses(over)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_training_that_is_asked_to_stop_saves_and_tells(data, tmp_path, number):
    words = ["train", "airline", "--epochs", "400", "--save-every", "100000", "--data", str(data)]
    run = subprocess.Popen([sys.executable, "-m", "treadle", *words, "--out", tmp_path / "a"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, env=environment())
    for _ in range(2):
        assert run.stdout.readline().startswith("epoch ")
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 128 + number and err == ""
    step = int(re.search(r"stopped at step (\d+); --resume goes on\n$", out).group(1))
    state = td.load(tmp_path / "a" / "checkpoint.pt")
    assert state["step"] == step > 2 * len(Loop("airline", data).loader) and state["options"]["epochs"] == 400
    assert state["schedule"]["last_epoch"] == step == state["optimiser"]["state"][0]["step"].item()


def states_equal(a, b):
    if isinstance(a, td.Tensor):
        return a.dtype == b.dtype and bytes(memoryview(a.detach().contiguous())) == bytes(memoryview(b.detach().contiguous()))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(states_equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(states_equal, a, b))
    return a == b


def steps(loop, n):
    left = [n]

    def stopped():
        left[0] -= 1
        return left[0] == 0
    loop.run(stopped=stopped, show=lambda text: None)
    return loop


def test_a_state_is_taken_over_and_stays_the_callers(data, tmp_path):
    first = steps(Loop("airline", data, epochs=4, seed=3), 8)
    td.save(first.state_dict(), tmp_path / "state")
    state = td.load(tmp_path / "state")
    second = steps(Loop("airline", data, epochs=4, seed=3), 13)      # was elsewhere
    second.load_state_dict(state)
    assert states_equal(second.state_dict(), state)
    steps(second, 9)
    assert states_equal(state, td.load(tmp_path / "state"))
    first.load_state_dict(state)                                     # the random numbers are the thread's
    steps(first, 9)
    assert states_equal(first.state_dict(), second.state_dict())


@pytest.mark.parametrize("name, value", [("epochs", 5), ("batch_size", 8), ("lr", 0.5), ("seed", 4), ("task", "temperatures")])
def test_a_state_of_other_settings_is_refused_before_anything_changes(data, name, value):
    state = steps(Loop("airline", data, epochs=4, seed=3, batch_size=16, lr=0.1), 8).state_dict()
    given = {"task": "airline", "epochs": 4, "seed": 3, "batch_size": 16, "lr": 0.1, name: value}
    other = Loop(data=data, **given)
    before = other.state_dict()
    before = {k: {n: t.clone() for n, t in v.items()} if k == "model" else v for k, v in before.items()}
    with pytest.raises(ValueError, match=f"has {name} .*, not {value!r}"):
        other.load_state_dict(state)
    assert states_equal(other.state_dict(), before)


def test_asking_how_good_it_is_changes_nothing(data):
    loop = steps(Loop("resnet", data, epochs=2, batch_size=10), 2)
    td.save(loop.state_dict(), out := str(data / "asked.pt"))
    assert loop.evaluate() == loop.evaluate() and loop.model.training
    assert states_equal(loop.state_dict(), td.load(out))
    os.remove(out)


def test_compiled_steps_learn_the_same(data):
    plain, compiled = (Loop("airline", data, epochs=3, compile=c) for c in (False, True))
    rows = []
    for loop in plain, compiled:
        td.manual_seed(1)
        loop.run(show=lambda text: None)
        rows.append([row["train"] for row in loop.history])
    assert rows[0] == pytest.approx(rows[1], rel=1e-3) and rows[0][0] > rows[0][-1]


@pytest.mark.parametrize("task", ["airline", "temperatures"])
def test_the_forecasts_beat_persistence(task):
    if not (DATA / "timeseries").is_dir():
        pytest.skip("no timeseries in TREADLE_DATA")
    loop = Loop(task, DATA, epochs=None if task == "airline" else 3)
    loop.run(show=lambda text: None)
    last = loop.history[-1]
    assert last["error"] < (0.6 if task == "airline" else 0.93) * last["persistence"]
    assert loop.history[0]["persistence"] == last["persistence"]


def test_the_loss_of_an_epoch_is_the_mean_of_its_batches(data, tmp_path):
    loop, seen = Loop("temperatures", data, epochs=2), []
    learn = loop.learn
    loop.learn = lambda *batch: seen.append(learn(*batch)) or seen[-1]
    loop.run(show=lambda text: None)
    n = len(loop.loader)
    assert [row["train"] for row in loop.history] == [sum(seen[:n]) / n, sum(seen[n:]) / n] and loop.step == 2 * n


def test_the_log_is_a_table_of_the_history(data, tmp_path):
    assert command("train", "airline", "--epochs", 2, "--data", data, "--out", tmp_path / "run").returncode == 0
    with open(tmp_path / "run" / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    state = td.load(tmp_path / "run" / "checkpoint.pt")
    assert [{k: float(v) for k, v in row.items()} for row in rows] == [
        {"epoch": i, **row} for i, row in enumerate(state["history"], 1)]
    picture = (tmp_path / "run" / "curves.svg").read_text()
    from xml.etree import ElementTree
    lines = [e.get("d") for e in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}path")]
    assert [line.count("L") for line in lines if line.startswith("M")][-2:] == [1, 1]
    evaluated = command("eval", "airline", "--data", data, "--out", tmp_path / "run")
    found = dict(line.split() for line in evaluated.stdout.splitlines())
    assert {k: float(v) for k, v in found.items()} == pytest.approx(
        {k: v for k, v in state["history"][-1].items() if k != "train"}, abs=6e-5)


def test_a_training_that_diverges_goes_on_to_the_end(data, tmp_path):
    done = command("train", "airline", "--epochs", 2, "--lr", 1e30, "--data", data, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "train nan" in done.stdout.splitlines()[-1] and {"model.safetensors", "curves.svg", "log.csv"} <= {*os.listdir(tmp_path)}


def test_models_that_write(data, tmp_path, monkeypatch):
    monkeypatch.setattr(programs.Shakespeare, "draws", 48)
    for task in "airline", "shakespeare":
        loop, folder = Loop(task, data, epochs=1), tmp_path / task
        folder.mkdir()
        loop.run(folder / "checkpoint.pt", show=lambda text: None)
    words = "--data", data, "--length", 70
    out = command("sample", "shakespeare", *words, "--out", tmp_path / "shakespeare", "--seed", 5)
    assert len(out.stdout) == 71 and set(out.stdout) <= set("to be\nor not that is the question\n"), out.stderr
    assert command("sample", "shakespeare", *words, "--out", tmp_path / "shakespeare", "--seed", 5).stdout == out.stdout
    assert command("sample", "shakespeare", *words, "--out", tmp_path / "shakespeare", "--seed", 6).stdout != out.stdout
    series = command("sample", "airline", *words, "--out", tmp_path / "airline")
    assert len([float(v) for v in series.stdout.split()]) == 70


C_FILES = "checkpoint.safetensors", "model.safetensors", "log.csv", "curves.svg"


@pytest.fixture
def in_c(data):
    """Runs a program of examples/ on the small data sets; its status is asserted."""
    def run(name, *words, returncode=0, TREADLE_DATA=str(data)):
        program = Path(os.environ.get("TREADLE_BUILD", "build")) / "examples" / name
        if not program.exists():
            pytest.skip(f"examples/{name} is not built")
        done = subprocess.run([program, *map(str, words)], env=environment(TREADLE_DATA=TREADLE_DATA), capture_output=True, text=True)
        assert done.returncode == returncode, done
        return done
    return run


@pytest.mark.parametrize("name, epochs, cuts", [("fashion", 4, (3, 5)), ("resnet", 3, (1, 2)), ("forecast airline", 40, (101, 233)),
                                                ("forecast temperatures", 60, (101, 102)), ("shakespeare", 2, (14, 20))])
def test_a_program_in_c_that_is_killed_goes_on_to_the_same_bits(in_c, tmp_path, name, epochs, cuts):
    words = *name.split(), epochs
    whole = in_c(*words, tmp_path / "whole").stdout.splitlines()
    assert [line.split(":")[0] for line in whole[:epochs]] == [f"epoch {i + 1}" for i in range(epochs)]
    seen = []
    for cut in cuts:
        seen += in_c(*words, tmp_path / "cut", cut, returncode=9).stdout.splitlines()
    end = in_c(*words, tmp_path / "cut").stdout.splitlines()
    assert sorted({*seen, *end[:end.index(whole[epochs - 1]) + 1]}) == sorted(whole[:epochs])
    assert end[end.index(whole[epochs - 1]):] == whole[epochs - 1:]        # and what it tells at the end
    for file in C_FILES:
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    state = td.load_file(tmp_path / "whole" / "checkpoint.safetensors")
    model = td.load_file(tmp_path / "whole" / "model.safetensors")
    assert state["place"][-2] == epochs and all((state[name] == x).all() for name, x in model.items())
    table = list(csv.reader(open(tmp_path / "whole" / "log.csv")))
    assert len(table) == epochs + 1 and table[0][:3] == ["epoch", "train", "loss"]
    assert f"train {float(table[-1][1]):.4g}, loss {float(table[-1][2]):.4g}" in whole[epochs - 1]
    assert (tmp_path / "whole" / "curves.svg").read_text().count("<polyline") == 2


def test_a_program_in_c_believes_no_checkpoint(in_c, tmp_path):
    words, folder = ("forecast", "airline", 4), tmp_path / "run"
    in_c(*words, folder, 13, returncode=9)
    checkpoint = folder / "checkpoint.safetensors"
    whole = td.load_file(checkpoint)
    assert whole["place"][-1] == 12 and len(whole) == 6 + 6 * 3 + 2 and whole["history"].shape == (3, 4)
    for name, broken in ("optimiser.4.1", td.ones(3)), ("fc.bias", td.ones(2)), ("place", td.ones(2)), ("history", td.ones(3, 4)):
        td.save_file({**whole, name: broken}, checkpoint)
        assert in_c(*words, folder, returncode=1).stderr.count("\n") == 1
        td.save_file({n: x for n, x in whole.items() if n != name}, checkpoint)
        assert name in in_c(*words, folder, returncode=1).stderr
    td.save_file(whole, checkpoint)
    assert "has epochs 4, not 5" in in_c("forecast", "airline", 5, folder, returncode=1).stderr
    in_c(*words, folder)
    assert "usage" in in_c("forecast", "weather", returncode=2).stderr
    assert "expected a number, got '2x'" in in_c("forecast", "airline", "2x", returncode=2).stderr
    assert "expected a number, got '--help'" in in_c("forecast", "airline", "--help", returncode=2).stderr


@pytest.mark.parametrize("name, file", [("resnet", "cifar10-subset"), ("forecast airline", "airline-passengers"),
                                        ("shakespeare", "tinyshakespeare")])
def test_a_program_in_c_without_data_says_so_in_a_line(in_c, tmp_path, name, file):
    done = in_c(*name.split(), returncode=1, TREADLE_DATA=str(tmp_path))
    assert done.stderr.count("\n") == 1 and file in done.stderr, done.stderr


def test_a_program_in_c_that_is_asked_to_stop_saves_and_tells(data, tmp_path):
    program = Path(os.environ.get("TREADLE_BUILD", "build")) / "examples" / "forecast"
    if not program.exists():
        pytest.skip("examples/forecast is not built")
    run = subprocess.Popen([program, "airline", "4000", tmp_path / "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=environment(TREADLE_DATA=str(data)))
    for _ in range(2):
        assert run.stdout.readline().startswith("epoch ")
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 128 + signal.SIGTERM and err == ""
    step = int(re.search(r"stopped at step (\d+); the same command goes on\n$", out).group(1))
    assert td.load_file(tmp_path / "run" / "checkpoint.safetensors")["place"][-1] == step >= 12


def test_the_model_of_a_program_in_c_is_a_model_of_python(in_c, data, tmp_path):
    """Its weights answer in Python as they did in C: the losses of the test are those of its last line."""
    for name, task in ("fashion", "fashion"), ("resnet", "resnet"), ("forecast airline", "airline"), ("shakespeare", "shakespeare"):
        in_c(*name.split(), 1, tmp_path / task)
        loop = Loop(task, data)
        loop.model.load_state_dict(td.load_file(tmp_path / task / "model.safetensors"))
        row = list(csv.DictReader(open(tmp_path / task / "log.csv")))[-1]
        for measure, value in loop.evaluate().items():
            assert float(row[measure]) == pytest.approx(value, rel=2e-4), (name, measure)


# -- the line of progress --

def test_progress_is_quiet_where_nobody_looks(data, tmp_path):
    done = command("train", "airline", "--epochs", 1, "--data", data, "--out", tmp_path / "run")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1


def test_progress_on_a_terminal(data, tmp_path):
    mine, theirs = pty.openpty()
    run = subprocess.Popen([sys.executable, "-m", "treadle", "train", "airline", "--epochs", "2", "--data", str(data), "--out",
                            tmp_path / "run"], stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment())
    os.close(theirs)
    assert run.wait(60) == 0
    text = b""
    while True:
        try:
            piece = os.read(mine, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    lines = text.decode().replace("\r\n", "\n").splitlines()
    assert len(lines) >= 2
    last = [line for line in text.decode().split("\r") if "epoch 2" in line][-1]
    n = len(Loop("airline", data).loader)
    assert re.fullmatch(rf"\|#{{20}}\| {n}/{n}  epoch 2  loss \d+\.\d{{4}}  \d+\.\d/s  0:00 left\x1b\[K", last), last


def test_progress_hands_on_what_it_is_given_and_lets_go():
    closed = []

    def items():
        try:
            yield from "abc"
        finally:
            closed.append(True)
    assert list(programs.progress(items(), 3)) == ["a", "b", "c"]
    for item in programs.progress(items(), 3):
        break
    assert len(closed) == 2


# -- bad input --

@pytest.mark.parametrize("words, text", [
    (["train", "fashoin"], "invalid choice: 'fashoin' (choose from 'fashion', 'mnist'"),
    (["trian", "fashion"], "invalid choice: 'trian' (choose from 'train', 'eval'"),
    ([], "the following arguments are required: COMMAND"),
    (["train", "airline", "--epochs", "0"], "argument --epochs: invalid count value: '0'"),
    (["train", "airline", "--lr", "nan"], "argument --lr: invalid amount value: 'nan'"),
    (["train", "airline", "--batch-size", "-3"], "argument --batch-size: invalid count value: '-3'"),
    (["train", "airline", "--save-every", "0"], "argument --save-every: invalid count value: '0'"),
    (["train", "airline", "--threads", "0"], "argument --threads: invalid count value: '0'"),
    (["sample", "airline", "--temperature", "-1"], "invalid amount value: '-1'"),
    (["sample", "airline", "--length", "0"], "argument --length: invalid count value: '0'"),
    (["train", "airline", "--epochs", "two"], "invalid count value: 'two'")])
def test_words_that_make_no_sense(words, text):
    done = command(*words)
    assert done.returncode == 2 and text in done.stderr and "Traceback" not in done.stderr


def test_errors_of_a_person_are_a_line(data, tmp_path):
    def fails(text, *words):
        done = command(*words, TREADLE_DATA=str(data))
        assert done.returncode == 1 and done.stdout == "", done
        assert done.stderr.startswith("treadle: ") and done.stderr.count("\n") == 1 and text in done.stderr, done.stderr
    run = tmp_path / "run"
    fails("no timeseries/airline-passengers.csv in", "train", "airline", "--data", tmp_path)
    fails("`make data` fetches it; then set TREADLE_DATA", "train", "shakespeare", "--data", tmp_path)
    fails("checkpoint.pt", "train", "airline", "--resume", "--out", run)
    fails("checkpoint.pt", "eval", "airline", "--out", run)
    assert command("train", "airline", "--epochs", 1, "--out", run, "--data", data).returncode == 0
    fails("is there already: --resume goes on with it", "train", "airline", "--out", run)
    fails("the checkpoint has epochs 1, not 2", "train", "airline", "--resume", "--epochs", 2, "--out", run)
    fails("the checkpoint has task 'airline', not 'temperatures'", "eval", "temperatures", "--out", run)
    fails("cuda", "bench", "airline", "--device", "cuda") if not td.cuda.is_available() else None
    fails("device must be 'cpu', 'cuda'", "bench", "airline", "--device", "toaster")
    whole = (run / "checkpoint.pt").read_bytes()
    (run / "checkpoint.pt").write_bytes(whole[:len(whole) // 2])
    fails("checkpoint.pt", "train", "airline", "--resume", "--out", run)
    for other in {"weights": td.ones(2)}, {"options": None}:
        td.save(other, run / "checkpoint.pt")
        fails("is no checkpoint of a training", "eval", "airline", "--out", run)
    with pytest.raises(ValueError, match=r"task must be one of \['fashion', 'mnist', .*\], got 'knitting'"):
        Loop("knitting", data)
    with pytest.raises(ValueError, match="sample: this task names pictures"):
        Loop("fashion", data).task.sample(3, 1.0)


def test_programs_for_pytorch_still_run(tmp_path):
    (tmp_path / "train.py").write_text("import sys, torch; print(torch.ones(2), sys.argv[1:])")
    done = command(tmp_path / "train.py", "--epochs", 3)
    assert done.stdout == "tensor([1., 1.]) ['--epochs', '3']\n", done.stderr


def test_info_tells_where_data_lies(data, tmp_path):
    done = command("info", "--data", data, "--threads", 1)
    assert done.returncode == 0 and td.__version__ in done.stdout and ", 1 threads, " in done.stdout and str(td.cpu_info()) in done.stdout
    assert [*td.cpu_info()] == ["isa", "l1", "l2", "l3"] and td.cpu_info()["l1"] in range(1 << 20)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == list(TASKS)
    assert f"airline       {data / 'timeseries' / 'airline-passengers.csv'}\n" in done.stdout
    assert "airline       no timeseries/airline-passengers.csv in" in command("info", "--data", tmp_path).stdout


def test_bench_times_steps(data):
    done = command("bench", "airline", "--steps", 3, "--data", data, "--threads", 1)
    assert re.fullmatch(r"airline: \d+\.\d\d ms a step of 16, 1 threads\n", done.stdout), done.stderr


def test_the_command_is_installed():
    folder = Path(__file__).parents[2] / "python"
    if not folder.is_dir():
        pytest.skip("no sources")
    sys.path.insert(0, str(folder))
    try:
        import treadle_build
    finally:
        sys.path.pop(0)
    script = "treadle = treadle.__main__:main"
    assert treadle_build.metadata()["entry_points.txt"] == f"[console_scripts]\n{script}\n"
    assert 'treadle = "treadle.__main__:main"' in (folder / "pyproject.toml").read_text()
    from treadle.__main__ import main
    assert callable(main)


# -- what is in a file --

def listed(path):
    done = command("inspect", path)
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.splitlines()
    found = [re.fullmatch(r"(\S*) +(\S+) +(\[.*\]) +([\d,]+)", row).groups() for row in rows]
    return [(name, dtype, shape, int(size.replace(",", ""))) for name, dtype, shape, size in found], last


def test_inspect_lists_tensors(tmp_path):
    state = {"w": td.ones(3, 5), "deep": {"list": [td.zeros(2, dtype=td.int64), 7, td.tensor(True)]}, "word": "x"}
    td.save(state, tmp_path / "a.pt")
    rows = [("w", "float32", "[3, 5]", 60), ("deep.list.0", "int64", "[2]", 16), ("deep.list.2", "bool", "[]", 1)]
    assert listed(tmp_path / "a.pt") == (rows, "3 tensors, 77 bytes")
    td.save_file({"b": td.ones(2, 3, dtype=td.bfloat16), "a": td.ones(4, dtype=td.bool)}, tmp_path / "a.safetensors")
    assert sorted(listed(tmp_path / "a.safetensors")[0]) == [("a", "BOOL", "[4]", 4), ("b", "BF16", "[2, 3]", 12)]


def test_inspect_lists_types_that_cannot_be_read(tmp_path):
    head = b'{"x":{"dtype":"F8_E4M3","shape":[3,2],"data_offsets":[0,6]},"y":{"dtype":"F4","shape":[4],"data_offsets":[6,8]}}'
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(8))
    assert listed(tmp_path / "x.safetensors") == ([("x", "F8_E4M3", "[3, 2]", 6), ("y", "F4", "[4]", 2)], "2 tensors, 8 bytes")


def test_inspect_lists_arrays_of_numpy(tmp_path):
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "a.npy", np.ones((3, 5), dtype=">f8"))
    assert listed(tmp_path / "a.npy")[0] == [(str(tmp_path / "a.npy"), ">f8", "[3, 5]", 120)]
    for save in np.savez, np.savez_compressed:
        save(tmp_path / "a.npz", x=np.zeros((2, 3), dtype="i2"), y=np.array("word"))
        assert listed(tmp_path / "a.npz") == ([("x", "<i2", "[2, 3]", 12), ("y", "<U4", "[]", 16)], "2 tensors, 28 bytes")


def test_inspect_reads_files_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(3, 2)
    torch.save({"net": net.state_dict(), "epoch": 3}, tmp_path / "a.pth")
    assert listed(tmp_path / "a.pth")[0] == [("net.weight", "float32", "[2, 3]", 24), ("net.bias", "float32", "[2]", 8)]


class Evil:
    def __reduce__(self):
        return os.system, (f"touch {os.environ['EVIL']}",)


def test_inspect_refuses_what_is_broken_or_runs(tmp_path, monkeypatch):
    def refuses(name, content, text=""):
        (tmp_path / name).write_bytes(content)
        done = command("inspect", tmp_path / name)
        assert done.returncode == 1 and done.stderr.startswith("treadle: ") and done.stderr.count("\n") == 1, (name, done)
        assert text in done.stderr
    monkeypatch.setenv("EVIL", str(tmp_path / "evil"))
    import pickle
    with zipfile.ZipFile(tmp_path / "evil.pt", "w") as archive:
        archive.writestr("evil/data.pkl", pickle.dumps(Evil(), 2))
        archive.writestr("evil/version", "3\n")
    refuses("evil.pt", (tmp_path / "evil.pt").read_bytes(), "weights_only")
    assert not (tmp_path / "evil").exists()
    td.save({"w": td.ones(40)}, tmp_path / "whole.pt")
    td.save_file({"w": td.ones(40)}, tmp_path / "whole.safetensors")
    for name in "pt", "safetensors":
        whole = (tmp_path / f"whole.{name}").read_bytes()
        for keep in 0, 1, 9, len(whole) // 2, len(whole) - 1:
            refuses(f"cut.{name}", whole[:keep], "cut")
    good = b"\x93NUMPY\1\0" + struct.pack("<H", 54) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"[:54].ljust(54)
    for name, content in {"empty": b"", "magic": b"\x93NUMPZ" + good[7:], "head": good[:30], "call": good[:10] + b"__import__('os')",
                          "list": good[:8] + struct.pack("<H", 2) + b"[]", "keys": good[:8] + struct.pack("<H", 2) + b"{}",
                          "long": b"\x93NUMPY\2\0" + struct.pack("<I", 1 << 30) + b"{" * 2000}.items():
        refuses(f"{name}.npy", content)
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "whole.npy", np.ones((3, 5)))
    refuses("cut.npy", (tmp_path / "whole.npy").read_bytes()[:-1], "cut.npy is cut off")
    np.savez_compressed(tmp_path / "whole.npz", x=np.arange(5000))
    whole = bytearray((tmp_path / "whole.npz").read_bytes())
    whole[60:90] = bytes(30)
    refuses("spoilt.npz", whole)
    refuses("no.npz", b"PK\3\4 and nothing else")
    refuses("what.txt", b"words", "is none of .safetensors, .pt, .pth, .npy, .npz")
    done = command("inspect", tmp_path / "absent.npy")
    assert done.returncode == 1 and "absent.npy" in done.stderr
