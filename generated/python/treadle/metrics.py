# SPDX-License-Identifier: MIT
# Tangled from the chapter "metrics": edit that, not this file.
# needs: layers
"""How well a classifier does, and the loop that trains one."""
from . import _C
from ._tensor import _choose


def _checked(preds, target, k):
    """Both as rows of [2, n], of k classes or as many as occur; k."""
    if preds.ndim == 2:
        k = k or preds.shape[1]
        preds = preds.argmax(1)
    if preds.ndim != 1 or preds.shape != target.shape:
        raise ValueError("metrics: expected classes [n] or scores "
                         "[n, K], classes [n], got shapes "
                         f"{list(preds.shape)}, {list(target.shape)}")
    both = _C.stack([preds, target])
    if not both.is_floating_point():
        both = both.long()
    k = k or int(both.max()) + 1
    wrong = both[(both < 0) | (both >= k)]
    if len(wrong):
        raise ValueError(f"metrics: {wrong[0].item()} is none of {k} "
                         "classes")
    return both, k


def confusion_matrix(preds, target, num_classes=None, normalize=None):
    """Counts [K, K]: rows are true classes, columns predictions.

    preds: classes [n] or scores [n, K]; target: classes [n].
    normalize: "true" divides rows by their sums, "pred" columns, "all"
    everything; 0 / 0 is 0.
    """
    dims = _choose("confusion_matrix: normalize", normalize, {
        "true": (1,), "pred": (0,), "all": (0, 1), None: ()})
    (preds, target), k = _checked(preds, target, num_classes)
    m = (target * k + preds).bincount(minlength=k * k).view(k, k)
    return m if normalize is None else \
        m / m.sum(dims, True).clamp(min=1)


def _average(m, average, hit, whole):
    """hit / whole of each class, averaged."""
    weights = _choose("average", average, {
        "micro": None, "none": None, None: None, "weighted":
        m.sum(1).float(), "macro": (m.sum(0) + m.sum(1) > 0).float()})
    if average == "micro":
        hit, whole = hit.sum(), whole.sum()
    each = hit / whole.clamp(min=1)
    return each if weights is None else \
        (each * weights).sum() / weights.sum().clamp(min=1)


def _metric(name, text, whole, twice=1):
    def metric(preds, target=None, num_classes=None, average="micro"):
        m = preds if target is None else confusion_matrix(
            preds, target, num_classes)
        return _average(m, average, m.diagonal() * twice, whole(m))
    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = text + """

    preds: classes [n] or scores [n, K]; target: classes [n], or None
    where preds is a confusion matrix.  average: "micro" of all
    examples, "macro" of the classes that occur, "weighted" by how
    often, "none" of each class.  0 / 0 is 0.
    """
    return metric


precision = _metric("precision", "Right ones among those predicted.",
                    lambda m: m.sum(0))
recall = _metric("recall", "Found ones among those that are there.",
                 lambda m: m.sum(1))
f1_score = _metric("f1_score", "Harmonic mean of precision and recall.",
                   lambda m: m.sum(0) + m.sum(1), 2)



def accuracy(preds, target, num_classes=None, average="micro", top_k=1):
    """Right ones among all examples; by class it is recall.

    preds: classes [n] or scores [n, K]; target: classes [n].  An
    example is right if its class is among the top_k best scores.
    """
    if preds.ndim == 1 or average != "micro":
        if top_k != 1:
            raise ValueError("accuracy: top_k needs scores [n, K] and "
                             "average='micro'")
        return recall(preds, target, num_classes, average)
    (_, target), _ = _checked(preds, target, None)
    best = preds.topk(top_k, 1)[1]
    return (best == target.unsqueeze(1)).any(1).float().mean()


class MeanMetric:
    """A running mean, by weight."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Forget everything."""
        self.total = self.weight = 0.0

    def update(self, value, weight=1.0):
        """Add a number, or all elements of a tensor."""
        if isinstance(value, _C.Tensor):
            weight = weight * value.numel()
            value = value.double().mean().item() if weight else 0.0
        self.total += value * weight
        self.weight += weight

    def compute(self):
        """The mean so far; NaN of nothing."""
        return self.total / self.weight if self.weight else float("nan")


class ConfusionMatrix:
    """A confusion matrix over many batches."""

    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.reset()

    def reset(self):
        """Forget everything."""
        self.matrix = _C.zeros(self.num_classes, self.num_classes,
                               dtype=_C.int64)

    def update(self, preds, target):
        """Count a batch."""
        self.matrix += confusion_matrix(preds, target,
                                        self.num_classes)

    def compute(self):
        """int64 [K, K]; precision(it), say, is that of all batches."""
        return self.matrix



def train_epoch(model, loader, optimizer, criterion):
    """Train on each batch of a loader; the mean of their losses.

    A batch is inputs and a target: criterion(model(*inputs), target).
    """
    model.train()
    mean = MeanMetric()
    for *inputs, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(*inputs), target)
        loss.backward()
        optimizer.step()
        mean.update(loss.item())
    return mean.compute()
