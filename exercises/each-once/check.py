"""Each once.  SPDX-License-Identifier: MIT"""
from judge import *

NETS = """
import treadle as td
from treadle import nn

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(td.ones(3))
        self.zebra = nn.Linear(2, 3)
        self.ape = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Sequential(nn.Linear(2, 2)))
        self.last = nn.Parameter(td.ones(2))
        self.register_buffer("mean", td.zeros(2))
        self.ape.register_buffer("count", td.zeros(1))

class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = self.first

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Linear(2, 2, bias=False), nn.Linear(2, 2)
        self.out.weight = self.embed.weight

class Watched(nn.Module):
    looked = []
    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        Watched.looked.append(prefix)
        yield from super().named_modules(memo, prefix, remove_duplicate)

def names(net, *rest, **named):
    return [(name, list(p.shape)) for name, p in net._named(*rest, **named)]

deep, shared, tied = Deep(), Shared(), Tied()
"""
ask(NETS + "0")
formula = "pairs (name with dots, tensor), modules in the order of named_modules"
deep = [["scale", [3]], ["last", [2]], ["zebra.weight", [3, 2]], ["zebra.bias", [3]], ["ape.0.weight", [2, 3]],
        ["ape.1.0.weight", [2, 2]], ["ape.1.0.bias", [2]]]


def pairs(what, code, expected, why=formula):
    case(what, why)
    equal(ask(f"[list(pair) for pair in {code}]"), expected)


pairs("a module of its own", "names(nn.Linear(2, 3), '_parameters', '', True)", [["weight", [3, 2]], ["bias", [3]]])
pairs("a bias that is not there", "names(nn.Linear(2, 3, bias=False), '_parameters', '', True)", [["weight", [3, 2]]])
pairs("this module alone", "names(deep, '_parameters', '', False)", deep[:2])
pairs("under a prefix, this module alone", "names(deep, '_parameters', 'net', False)", [["net." + n, s] for n, s in deep[:2]])
pairs("in the order of registration, two modules deep", "names(deep, '_parameters', '', True)", deep)
pairs("under a prefix", "names(deep, '_parameters', 'a.b', True)", [["a.b." + n, s] for n, s in deep])
pairs("buffers", "names(deep, '_buffers', '', True)", [["mean", [2]], ["ape.count", [1]]])

once = "each tensor once, under the first of its names; the same object is the same tensor"
pairs("one layer in two places", "names(shared, '_parameters', '', True)", [["first.weight", [2, 2]], ["first.bias", [2]]], once)
pairs("a tensor in two modules, under the first of its names", "names(tied, '_parameters', '', True)",
      [["embed.weight", [2, 2]], ["out.bias", [2]]], once)
pairs("every place of one layer", "names(shared, '_parameters', '', True, False)",
      [[f"{place}.{n}", s] for place in ("first", "second") for n, s in (("weight", [2, 2]), ("bias", [2]))], "without once every place counts")
pairs("every place of a tensor in two modules", "names(tied, '_parameters', '', True, once=False)",
      [["embed.weight", [2, 2]], ["out.weight", [2, 2]], ["out.bias", [2]]], "without once every place counts")
ask("equal = nn.Module(); equal.a, equal.b = nn.Parameter(td.ones(2)), nn.Parameter(td.ones(2))")
pairs("two of equal elements", "names(equal, '_parameters', '', True)", [["a", [2]], ["b", [2]]], once)
ask("memory = nn.Module(); memory.a = nn.Parameter(td.ones(2)); memory.b = nn.Parameter(memory.a.detach())")
pairs("two on the same memory", "names(memory, '_parameters', '', True)", [["a", [2]], ["b", [2]]], once)
ask("empty = nn.Module()")
pairs("a module that holds nothing", "names(empty, '_parameters', '', True)", [])
case("what comes is what was registered", formula)
equal(ask("[p is q for (_, p), q in zip(deep._named('_parameters', '', True), [deep.scale, deep.last, deep.zebra.weight])]"), [True] * 3)

case("two walks at the same time", "each walk remembers for itself")
equal(ask("a, b = deep._named('_parameters', '', True), deep._named('_parameters', '', True)\n"
          "[next(w)[0] for w in (a, b, a, b, a)]"), ["scale", "scale", "last", "last", "zebra.weight"])
case("nothing is looked at before it is asked for", "the first parameter is handed out before the second module is visited")
equal(ask("net = nn.Module(); net.a = nn.Parameter(td.ones(1)); net.below = Watched(); Watched.looked.clear()\n"
          "walk = net._named('_parameters', '', True); first = next(walk)[0]\n[first, list(Watched.looked), [n for n, _ in walk], Watched.looked]"),
      ["a", [], [], ["below"]])
case("an optimiser and a state are made of it", "parameters each once, and a file of all places")
equal(ask("[len(list(shared.parameters())), sorted(shared.state_dict()), [n for n, _ in deep.named_parameters()]]"),
      [2, ["first.bias", "first.weight", "second.bias", "second.weight"], [n for n, _ in deep]])
end()
