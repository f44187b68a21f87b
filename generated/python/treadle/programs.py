# SPDX-License-Identifier: MIT
# Tangled from the chapter "trainings": edit that, not this file.
# needs: models
"""Six trainings, and the loop that they share.

>>> from treadle.programs import Loop
>>> loop = Loop("airline", epochs=5)
>>> loop.run("airline.pt")
"""
import os
import sys
import time
from . import (cat, get_rng_state, jit, manual_seed, no_grad, save,
               set_rng_state)
from .datasets import (CIFAR10, MNIST, FashionMNIST, TextDataset,
                       read_csv)
from .metrics import MeanMetric
from .models import CNN, GPT, Forecaster, GPTConfig, resnet20
from .nn import functional as F
from .nn.utils import clip_grad_norm_
from .optim import SGD, AdamW
from .optim.lr_scheduler import OneCycleLR
from .transforms import Compose, RandomCrop, RandomHorizontalFlip
from ._tensor import _choose
from .utils.data import DataLoader, RandomSampler, TensorDataset


# trainings: function find
def find(data, *names):
    """The first of these that is there, in the folder of data sets."""
    folder = data or os.environ.get("TREADLE_DATA") or "data"
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(
        f"no {names[0]} in {folder!r}: `make data` fetches it; then "
        "set TREADLE_DATA")


# trainings: class Task
class Task:
    """What is to be learned: train, test, model, and a measure."""
    epochs, batch_size, lr, draws = 5, 64, 2e-3, None

    def optimiser(self, lr):
        return AdamW(self.model.parameters(), lr)

    def measure(self, x, y):
        """Means over a batch, by name."""
        scores = self.model(x)
        return {"loss": F.cross_entropy(scores, y), "accuracy":
                100 * (scores.argmax(1) == y).float().mean()}

    def sample(self, length, temperature):
        raise ValueError("sample: this task names pictures")


# trainings: tasks about pictures
class Fashion(Task):
    images, names = FashionMNIST, (
        "fashion-mnist", "/usr/share/datasets/fashion-mnist")

    def __init__(self, path):
        self.train, self.test = (self.images(path, part)
                                 for part in (True, False))
        self.model = CNN()


class Digits(Fashion):
    images, names = MNIST, ("mnist",)


class Photographs(Fashion):
    images, epochs, lr = CIFAR10, 20, 0.1
    names = "cifar-10-batches-bin", "cifar10-subset"

    def __init__(self, path):
        super().__init__(path)
        self.train.transform = Compose([RandomCrop(32, 4),
                                        RandomHorizontalFlip()])
        self.model = resnet20()

    def optimiser(self, lr):
        return SGD(self.model.parameters(), lr, 0.9, nesterov=True,
                   weight_decay=5e-4)


# trainings: tasks about series
class Airline(Task):
    names = "timeseries/airline-passengers.csv",
    epochs, batch_size, window = 100, 16, 24

    def __init__(self, path):
        self.series = list(read_csv(path).values())[1].float()
        rows = self.series.unfold(0, self.window + 1, 1)
        cut = len(rows) - len(self.series) // 5
        self.train, self.test = (
            TensorDataset(part[:, :-1], part[:, -1:])
            for part in (rows[:cut], rows[cut:]))
        self.model = Forecaster(hidden_size=32)

    # trainings: methods of a forecast
    def guess(self, x):
        last, scale = x[:, -1:], x.std(1, keepdim=True) + 1e-3
        change = self.model(((x - last) / scale).unsqueeze(2))
        return last + scale * change, scale

    def measure(self, x, y):
        guess, scale = self.guess(x)
        return {"loss": ((guess - y) / scale).square().mean(),
                "error": (guess - y).abs().mean(),
                "persistence": (x[:, -1:] - y).abs().mean()}

    def sample(self, length, temperature):
        x = self.series.unsqueeze(0)
        for _ in range(length):
            x = cat([x, self.guess(x[:, -self.window:])[0]], 1)
        return " ".join(f"{v:.1f}" for v in x[0, -length:].tolist())


class Temperatures(Airline):
    names = "timeseries/daily-min-temperatures.csv",
    epochs, batch_size, window = 20, 64, 32


# trainings: task about a text
class Shakespeare(Task):
    names = "text/tinyshakespeare.txt",
    epochs, batch_size, lr, draws, places = 10, 16, 3e-3, 4000, 64

    def __init__(self, path):
        self.text = TextDataset(path, self.places)
        x, y = self.text.tensors
        cut = len(x) * 9 // 10
        asked = slice(cut + self.places, None, self.places)
        self.train = TensorDataset(x[:cut], y[:cut])
        self.test = TensorDataset(x[asked], y[asked])
        self.model = GPT(GPTConfig(
            len(self.text.characters), self.places, 96, 3, 4,
            positions="rotary", norm="rms", bias=False))

    def measure(self, x, y):
        return {"loss": F.cross_entropy(self.model(x).flatten(0, 1),
                                        y.flatten())}

    # trainings: write with half a window of memory
    def sample(self, length, temperature):
        ids, text = self.text.encode("\n").unsqueeze(0), ""
        half = self.places // 2
        while len(text) < length:
            ids = self.model.generate(ids[:, -half:], half, temperature)
            text += self.text.decode(ids[0, -half:])
        return text[:length]


TASKS = {"fashion": Fashion, "mnist": Digits, "resnet": Photographs,
         "airline": Airline, "temperatures": Temperatures,
         "shakespeare": Shakespeare}


# trainings: function progress
def progress(items, total, done=0, note=str):
    """Hand out items; on a terminal, a line says how it goes."""
    begun = shown = time.monotonic()
    first, terminal = done, sys.stderr.isatty()
    try:
        for item in items:
            yield item
            done, now = done + 1, time.monotonic()
            if terminal and (now - shown > 0.1 or done == total):
                shown, rate = now, (done - first) / (now - begun)
                # trainings: write the line over the last one
                left, bar = (total - done) / rate, "#" * (20 * done // total)
                print(f"\r|{bar:20}| {done}/{total}  {note()}  {rate:.1f}/s  "
                      f"{left // 60:.0f}:{left % 60:02.0f} left\x1b[K", end="",
                      file=sys.stderr, flush=True)
    finally:
        if terminal:
            print(file=sys.stderr)


# trainings: class Loop
class Loop:
    """One training of a task: what moves it, and all that moves."""

    def __init__(self, task, data=None, epochs=None, batch_size=None,
                 lr=None, seed=0, device="cpu", compile=False):
        kind, self.device = _choose("task", task, TASKS), device
        given = {"epochs": epochs, "batch_size": batch_size, "lr": lr}
        self.options = o = {"task": task, "seed": seed, **{
            name: getattr(kind, name) if value is None else value
            for name, value in given.items()}}
        manual_seed(seed)
        self.task = kind(find(data, *kind.names))
        # trainings: make what moves
        data, self.model = self.task.train, self.task.model.to(device)
        self.optimiser = self.task.optimiser(o["lr"])
        self.loader = DataLoader(data, o["batch_size"], sampler=RandomSampler(
            data, kind.draws is not None, kind.draws))
        self.schedule = OneCycleLR(self.optimiser, o["lr"],
                                   o["epochs"] * len(self.loader) + 1)
        self._slope = jit(self._backward) if compile else self._backward
        self.epoch = self.step = 0
        self.history, self.losses = [], MeanMetric()

    # trainings: methods of a loop
    def _backward(self, *batch):
        self.optimiser.zero_grad()
        loss = self.task.measure(*batch)["loss"]
        loss.backward()
        return loss

    def learn(self, *batch):
        """Take a step; the loss of the batch before it."""
        loss = self._slope(*(x.to(self.device) for x in batch))
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.schedule.step()
        return loss.item()

    @no_grad()
    def evaluate(self):
        """Means over the test data, by name."""
        means = {}
        self.model.eval()
        for batch in DataLoader(self.task.test, 500):
            found = self.task.measure(*(x.to(self.device) for x in batch))
            for name, value in found.items():
                means.setdefault(name, MeanMetric()).update(
                    value.item(), len(batch[0]))
        self.model.train()
        return {name: mean.compute() for name, mean in means.items()}

    def run(self, path=None, every=200, stopped=lambda: False, show=print):
        """Train to the end, or until stopped(); whether it is the end.

        The state goes to path after every so many steps, after each epoch,
        and when it stops; show(text) hears of each epoch.
        """
        while self.epoch < self.options["epochs"]:
            begun = self.loader.state_dict()["batches"]
            for batch in progress(
                    self.loader, len(self.loader), begun,
                    lambda: f"epoch {self.epoch + 1}  "
                            f"loss {self.losses.compute():.4f}"):
                self.losses.update(self.learn(*batch))
                self.step += 1
                ends = stopped()
                if path and (ends or self.step % every == 0):
                    save(self.state_dict(), path)
                if ends:
                    return False
            # trainings: end the epoch
            row = {"train": self.losses.compute(), **self.evaluate()}
            self.history.append(row)
            self.losses.reset()
            self.epoch += 1
            if path:
                save(self.state_dict(), path)
            show(f"epoch {self.epoch}: " + ", ".join(
                f"{name} {value:.4g}" for name, value in row.items()))
        return True

    def _parts(self):
        return {"model": self.model, "optimiser": self.optimiser,
                "schedule": self.schedule, "loader": self.loader}

    def state_dict(self):
        """All that the steps to come depend on, and what was seen."""
        return {"options": dict(self.options), "epoch": self.epoch,
                "step": self.step, "history": list(self.history),
                "losses": dict(vars(self.losses)),
                "random": get_rng_state(),
                **{name: part.state_dict()
                   for name, part in self._parts().items()}}

    def load_state_dict(self, state):
        """Go on where state_dict was called, to the same bits."""
        # resume: exercise resume
        for name, mine in self.options.items():
            theirs = state["options"][name]
            if theirs != mine:
                raise ValueError(f"the checkpoint has {name} {theirs!r}, "
                                 f"not {mine!r}")
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        vars(self.losses).update(state["losses"])
        self.epoch, self.step = state["epoch"], state["step"]
        self.history = list(state["history"])
        set_rng_state(state["random"])
