# SPDX-License-Identifier: MIT
# Tangled from the chapter "recurrence": edit that, not this file.
# needs: layers
"""Recurrent networks and their cells as modules."""
import warnings
from functools import partialmethod
from .. import _C, Tensor
from . import init
from .module import Module

_WEIGHTS = "weight_ih", "weight_hh", "bias_ih", "bias_hh"


class _Recurrent(Module):
    """Weights, their names and first values; a state that may lack."""
    _printed, _usual = "input_size hidden_size", {"bias": True}

    # recurrence: make the weights of cells
    def _begin(self, given, ends):
        """Four parameters for each of {end of the name: inputs}."""
        self.bias, m = given["bias"], given["hidden_size"]
        if m <= 0:
            raise ValueError(f"{type(self).__name__}: hidden_size must "
                             f"be positive, got {m}")
        rows = m * {"LSTM": 4, "GRU": 3}.get(given["mode"], 1)
        bias = self.bias and (rows,)
        super()._begin(given, **{
            name + end: shape for end, n in ends.items() for name, shape in
            zip(_WEIGHTS, ((rows, n), (rows, m), bias, bias))})

    def reset_parameters(self):
        """Draw all uniformly from +-1/sqrt(hidden_size)."""
        init._draw(self.hidden_size, *self.parameters())

    # recurrence: run a module without batch
    def _run(self, input, hx, at, batch, lead, end, *given):
        """The results of an operator, by the end of its name, as a list.

        It gets a batch at dimension `at`; the state is [*lead, N, m], and
        the input's dimension `batch` is N.
        """
        if not isinstance(input, Tensor):
            raise TypeError(f"{type(self).__name__}: expected a Tensor, "
                            f"got {type(input).__name__}; there are no "
                            "packed sequences of single steps")
        alone, pair = input.ndim == at + 1, self.mode == "LSTM"
        if alone:
            input = input.unsqueeze(at)
        if hx is None:
            state = [input.new_zeros(
                (*lead, input.shape[batch], self.hidden_size))] * 2
        else:
            state = [x.unsqueeze(at) if alone else x
                     for x in (hx if pair else [hx])]
        out = getattr(_C, self.mode.lower() + end)(
            input, state if pair else state[0], *given)
        out = [out] if isinstance(out, Tensor) else out
        return [x.squeeze(at) for x in out] if alone else out


class RNNBase(_Recurrent):
    """A recurrence over sequences; see RNN, LSTM and GRU."""
    _usual = {"num_layers": 1, "bias": True, "batch_first": False,
              "dropout": 0.0, "bidirectional": False}

    def __init__(self, mode, input_size, hidden_size, num_layers=1,
                 bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None,
                 dtype=None):
        # recurrence: refuse layers that cannot be
        if proj_size:
            raise NotImplementedError(
                f"{type(self).__name__}: proj_size must be 0, got {proj_size}: "
                "there are no projections")
        if num_layers <= 0:
            raise ValueError(f"{type(self).__name__}: num_layers must be "
                             f"positive, got {num_layers}")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{type(self).__name__}: dropout must be a number "
                             f"between 0 and 1, got {dropout!r}")
        if dropout and num_layers == 1:
            warnings.warn(f"{type(self).__name__}: dropout acts between "
                          "layers, and num_layers is 1")
        dropout, bidirectional = float(dropout), bool(bidirectional)
        self._ends = {
            f"_l{layer}{side}": hidden_size * (1 + bidirectional)
            if layer else input_size for layer in range(num_layers)
            for side in ("", "_reverse")[:1 + bidirectional]}
        self._begin(locals(), self._ends)

    # recurrence: run a module over a sequence
    @property
    def all_weights(self):
        """The parameters of each layer and direction, in lists."""
        return [[getattr(self, name + end)
                 for name in _WEIGHTS[:4 if self.bias else 2]]
                for end in self._ends]

    def flatten_parameters(self):
        """Does nothing: there is no other layout."""

    def forward(self, input, hx=None):
        """input: [T, N, n], with batch_first [N, T, n], or [T, n].

        Returns the states of the last layer, [T, N, m] (twice m if
        bidirectional), and the last state of each layer and side.
        """
        if hasattr(input, "_through"):      # a PackedSequence
            return input._through(self, hx)
        turned = self.batch_first and input.ndim == 3
        weights = [w for cell in self.all_weights for w in cell]
        output, *last = self._run(
            input, hx, 1, not turned, (len(self._ends),), "", weights,
            self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, turned)
        return output, tuple(last) if self.mode == "LSTM" else last[0]


class RNNCellBase(_Recurrent):
    """One step of a recurrence."""
    def __init__(self, mode, input_size, hidden_size, bias=True,
                 device=None, dtype=None):
        self._begin(locals(), {"": input_size})

    def forward(self, input, hx=None):
        """input [N, n] or [n] and a state to the next state."""
        after = self._run(input, hx, 0, 0, (), "_cell", self.weight_ih,
                          self.weight_hh, self.bias_ih, self.bias_hh)
        return tuple(after) if self.mode == "LSTM" else after[0]


def _plain(nonlinearity):
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"Unknown nonlinearity {nonlinearity!r}: "
                         "expected 'tanh' or 'relu'")
    return "RNN_" + nonlinearity.upper()


class RNN(RNNBase):
    """h = tanh(w_ih x + b_ih + w_hh h + b_hh) over a sequence.

    Weights: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, with
    the number of the layer, and _reverse for the second direction.
    """

    def __init__(self, input_size, hidden_size, num_layers=1,
                 nonlinearity="tanh", *args, **named):
        super().__init__(_plain(nonlinearity), input_size, hidden_size,
                         num_layers, *args, **named)
        self.nonlinearity = nonlinearity


class RNNCell(RNNCellBase):
    """tanh(w_ih x + b_ih + w_hh h + b_hh), or relu of it."""
    _usual = {"bias": True, "nonlinearity": "tanh"}

    def __init__(self, input_size, hidden_size, bias=True,
                 nonlinearity="tanh", *args, **named):
        super().__init__(_plain(nonlinearity), input_size, hidden_size,
                         bias, *args, **named)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """A long short-term memory.

    lstm(x, (h, c)) returns the outputs and the last (h, c).
    """
    __init__ = partialmethod(RNNBase.__init__, "LSTM")


class GRU(RNNBase):
    """A gated recurrent unit."""
    __init__ = partialmethod(RNNBase.__init__, "GRU")


class LSTMCell(RNNCellBase):
    """One step of an LSTM: x, (h, c) to (h, c)."""
    __init__ = partialmethod(RNNCellBase.__init__, "LSTM")


class GRUCell(RNNCellBase):
    """One step of a GRU."""
    __init__ = partialmethod(RNNCellBase.__init__, "GRU")


__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell",
           "LSTMCell", "GRUCell"]
