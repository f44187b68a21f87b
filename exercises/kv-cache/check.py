"""Where we stopped.  SPDX-License-Identifier: MIT"""
from judge import *

MADE = """
from treadle import models
def made(**options):
    td.manual_seed(3)
    net = models.GPT(models.GPTConfig(**{**dict(vocab_size=13, n_positions=12, n_embd=12, n_layer=3, n_head=2), **options})).double().eval()
    with td.no_grad():
        for p in net.parameters():
            p.normal_(0, 0.5)
    return net
learnt, turned, other = made(), made(positions="rotary"), made(positions="rotary", base=20.0)
ids = td.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 8, 12], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5]])
def read(net, sizes):
    cache, scores, start = {}, [], 0
    for n in sizes:
        scores.append(net(ids[:, start:start + n], cache))
        start += n
    return td.cat(scores, 1).detach()
def attend(net, places, cache):
    attn = net.h[1].attn
    x = td.sin(td.arange(2 * places * 12, dtype=td.float64)).view(2, places, 12)
    return attn(x, cache, 1).detach()
"""
both(MADE + "0")
why = "place P + i, of the T behind P that were read, looks at places 0 to P + i"


def asked(what, code, formula=why):
    case(what, formula)
    same(code, 1e-9)


asked("without a cache, learnt positions", "learnt(ids).detach()", "seen = attention of q, k, v in which no place looks ahead")
asked("without a cache, turned positions", "turned(ids).detach()", "questions and keys are turned at positions 0 to T - 1")
asked("another base of the angles", "other(ids).detach()", "F.rotary_embedding(x, positions, base=self.base)")
for name in ("learnt", "turned"):
    for sizes, what in (([1] * 6, "in pieces of one place"), ([4, 1, 1], "in pieces of 4, 1 and 1"),
                        ([4, 5], "several places behind others, in pieces of 4 and 5"), ([1, 3, 2, 6], "in pieces of 1, 3, 2 and 6")):
        asked(f"{name} positions, {what}{', where positions must not restart' if name == 'turned' else ''}", f"read({name}, {sizes})")
case("what is left in the cache, in pieces of 3 and 2: shapes for each layer", "a pair [N, H, P + T, d] under the number of the layer")
equal(ask("cache = {}; turned(ids[:, :3], cache); turned(ids[:, 3:5], cache)\n"
          "[[layer, [list(x.shape) for x in pair]] for layer, pair in sorted(cache.items())]"), [[n, [[2, 2, 5, 6]] * 2] for n in range(3)])
both("cache = {}; turned(ids[:, :3], cache); turned(ids[:, 3:5], cache); 0")
asked("what is left in the cache, in pieces of 3 and 2: keys and values", "[x.detach() for layer in range(3) for x in cache[layer]]",
      "keys as they were turned, values as they came, the old ones first")
both("cache = {0: (td.ones(2, 2, 7, 6, dtype=td.float64),) * 2}; out = attend(turned, 3, cache); 0")
asked("layer 1 beside a layer that has read more", "[out, list(cache[1][0].shape)]", "each layer knows its own P")
asked("a copy of the cache goes its own way",
      "cache = {}; turned(ids[:, :4], cache); copy = dict(cache)\n"
      "a = turned(ids[:, 4:6], cache); b = turned(ids[:, 6:9], copy); c = turned(ids[:, 9:], dict(copy))\n"
      "[a.detach(), b.detach(), c.detach(), list(copy[0][0].shape)]", "a new pair each time; old ones stay as they are")
asked("the gradient through what was kept",
      "turned.zero_grad(); cache = {}; turned(ids[:, :4], cache); turned(ids[:, 4:9], cache).square().sum().backward()\n"
      "[p.grad for p in turned.h[0].parameters()]", "old keys and values belong to the graph")
case("dropout of all weights", "F.scaled_dot_product_attention(q, k, v, mask, p, ...)")
both("learnt.h[1].attn.train().p = 1.0; out = attend(learnt, 3, None); 0")
same("out", 1e-12)
case("without a cache nothing is asked of it", "cache may be None")
equal(ask("list(turned(ids[:, :2], None).shape)"), [2, 2, 13])
end()
