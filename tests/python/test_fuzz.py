# needs: jit
# SPDX-License-Identifier: MIT
"""Random programs: compiled as eager, gradients as differences, everything as PyTorch.

A program is a list of statements, of which any may be refused.  TREADLE_PROGRAMS and TREADLE_SEED say how
many and from where; what fails is made small and printed as a program that runs by itself.  By hand:
    python tests/python/test_fuzz.py --programs 50000 --seed 1 [--torch]
"""
import argparse
import collections
import functools
import importlib
import os
import random
import re
import sys
import tempfile

import treadle as td

SIZES = [(3,), (2, 3), (3, 3), (1, 3), (2, 1), (), (4, 2, 3), (3, 2)]
BINARY = ["{v} + {w}", "{v} - {w}", "{v} * {w}", "{v} / ({w} * {w} + 1)", "t.maximum({v}, {w})", "{v} @ {w}",
          "{v} @ {w}.t()", "t.where({v} > {w}, {v}, {w})", "{v} > {w}", "{v} == {w}", "t.cat([{v}, {w}], {d})",
          "t.stack([{v}, {w}], {d})", "t.cat([{v}, {v}, {w}])"]
UNARY = ["{v}.tanh()", "{v}.sin()", "{v}.exp()", "-{v}", "{v}.abs()", "{v}.relu()", "{v}.sigmoid()", "{v} * 2", "1 - {v}",
         "{v} ** 2", "{v}.clone()", "{v}.softmax({d})", "{v} / 3", "{v}.floor()", "{v}.clamp(-1.1, 1.1)", "{v}.cumsum({d})"]
VIEWS = ["{v}[0]", "{v}[1:]", "{v}[-1:]", "{v}[..., ::2]", "{v}[:, 1]", "{v}.t()", "{v}.reshape(-1)", "{v}.view(-1)",
         "{v}.transpose(0, {d})", "{v}.unsqueeze({d})", "{v}.squeeze()", "{v}.expand(2, 3)", "{v}.narrow({d}, 0, 2)",
         "{v}.diagonal()", "{v}.unbind({d})[-1]", "{v}.chunk(2, {d})[0]"]
FOLDS = ["{v}.sum()", "{v}.sum({d})", "{v}.mean({d}, keepdim=True)", "{v}.mean()", "{v}.amax({d})", "{v}.prod({d})",
         "{v}.var({d})", "{v}.max()", "{v}.logsumexp({d})", "{v}.any()", "{v}.argmax({d})"]
PLACES = ["{v}[t.tensor([1, 0, 1])]", "{v}.index_select({d}, t.tensor([0, 0]))", "{v}.flip({d})", "{v}[{v} > 0]",
          "{v}.gather({d}, t.zeros({v}.shape, dtype=t.int64))", "{v}.masked_fill({v} > {w}, 0.5)", "{v}.tril()"]
DTYPES = ["{v}.double()", "{v}.float()", "{v}.long()", "{v}.bool()", "{v}.to({w}.dtype)"]
CHANGES = ["{v}.mul_(2)", "{v}.add_({w})", "{v}.mul_({w})", "{v}.tanh_()", "{v}.zero_()", "{v}.copy_({w})", "{v}.sub_(1)",
           "{v}.clamp_(-1.1, 1.1)", "{v}[0] = {w}", "{v}[..., 1] = 0.5", "{v}[1:] = {w}", "{v}.masked_fill_({v} > 1, 0)",
           "{v}.div_(4)", "{v}.fill_(0.5)", "{v}[0].add_({w})", "{v}[t.tensor([0])] = {w}", "{v}.t_()", "{v}.relu_()"]
CUTS = ["{n} = {v}.detach()", "with t.no_grad(): {n} = {v} * 2", "with t.no_grad(): {v}.mul_(0.5)",
        "{n} = {v}.detach().clone().requires_grad_()", "{v}.requires_grad_(False)", "{v}.detach().add_(1)"]
# PyTorch makes the seed itself the gradient, and adds to that in the next pass: it gets a clone.
PASSES = ["{v}.sum().backward(retain_graph=True)", "{v}.sum().backward()", "{v}.backward({w}.clone())",
          "{n} = t.autograd.grad({v}.sum(), a0, retain_graph=True)[0]", "{v}.retain_grad()",
          "{n} = t.autograd.grad({v}.sum(), a0, create_graph=True)[0]"]
# Refusals that only one side has: the statement and where its tensor is from, our words, PyTorch's ("": none), and why.
PASS = r"the last pass|.*(backward|grad)\("
EXPLAINED = [(*map(re.compile, patterns), why) for *patterns, why in [
    (".* - ", "", r"Subtraction, the `-` operator, with a bool tensor is not", "a truth is subtracted from a number as 1 or 0"),
    (r".*\.argmax", "", r"""("argmax_cpu" not implemented for 'Bool'|argmax\(\): does not support bool)""", "PyTorch has no such kernel"),
    (r".*logsumexp", r"logsumexp: needs floating-point numbers, got (int64|bool)", "", "as softmax; PyTorch converts"),
    (r".*index_select", r"index_select: a tensor of rank 0 has one position; got \[\] and \[2\]", "", "PyTorch gives one, of two asked for"),
    (r".*\[t\.tensor\(\[0\]\)\] = ", "", "Index put requires the source and destination dtypes match", "converted as in all assignments"),
    (".*", "", "unsupported operation: some elements of the input tensor and the written-to", "the source is copied first"),
    (PASS, "", "unsupported operation: more than one element of the written-to", "one number in an expanded view has a derivative"),
    (r".*\] = \w+", "", "unsupported operation: more than one element of the written-to", "one number may fill what is expanded"),
    (".*masked_fill_", r"masked_fill_: dimension \d of the tensor is expanded", "", "deprecated in PyTorch"),
    (".*", "", ".* is being modified inplace.* function that returns multiple views", "unbind and chunk give views like any other"),
    (r".*# v\d+ = t\.autograd\.grad", "", "A view was created in no_grad mode", "the gradient of a sum is no view here"),
    (r".*\.view\(-1\)", "", "view size is not compatible", "results are dense here, whatever their operands are"),
    (PASS, r"backward: .*a second time \(at [a-z_]+\)", "", "a pass frees each node, also one that saved nothing"),
    (PASS, "", "one of the variables needed for gradient computation has been modified", "less is saved here"),
    (".*", "", "Autograd not support dtype", "whole numbers into which a float was copied have no past here"),
    (".*", "", r"isDifferentiableType\(.*INTERNAL ASSERT FAILED", "a bug there: floats were copied into whole numbers"),
]]
KINDS = [(BINARY, 6), (UNARY, 4), (VIEWS, 5), (FOLDS, 2), (PLACES, 2), (DTYPES, 1), (CHANGES, 4), (CUTS, 1), (PASSES, 1)]


class Program:
    """Leaves, statements, and where the numbers come from."""

    def __init__(self, leaves, statements):
        self.leaves, self.statements = leaves, statements

    def without(self, k):
        return Program(self.leaves, self.statements[:k] + self.statements[k + 1:])

    def only(self, wanted):
        return Program(self.leaves, [s for s in self.statements if wanted(s)])

    def wide(self):
        """The same in double precision."""
        return Program([(n, code.replace("float32", "float64")) for n, code in self.leaves],
                       [s for s in self.statements if ".float()" not in s])

    def text(self, library="treadle"):
        return "\n".join([f"import {library} as t", *(f"{n} = {code}" for n, code in self.leaves),
                          *self.statements, f"print({', '.join(n for n, _ in self.leaves)})"])


class Statement(str):
    """A line, and the kind of template it came from."""
    cut = None


class Skipped(Exception):
    """Nothing was compared, and why."""


def leaf(rng, k, wide):
    shape = rng.choice(SIZES)
    kind = rng.choice([wide, wide, wide, "int64", "bool"]) if k else wide
    n = 1
    for size in shape:
        n *= size
    numbers = {"int64": lambda: rng.randrange(-3, 4), "bool": lambda: rng.random() < 0.5}.get(
        kind, lambda: rng.randrange(-16, 17) / 8 + rng.choice([0, 1 / 64]))
    values = [numbers() for _ in range(n)]
    wants = ", requires_grad=True" if kind == wide and (k == 0 or rng.random() < 0.7) else ""
    body = f"t.tensor({values}, dtype=t.{kind}).reshape({shape})" if shape else f"t.tensor({values[0]}, dtype=t.{kind})"
    return f"a{k}", body + ".clone()" + (".requires_grad_()" if wants else "")


def generate(seed):
    """A program whose statements mostly run, made while it is run."""
    rng = random.Random(seed)
    wide = rng.choice(["float32", "float64", "float64"])
    program = Program([leaf(rng, k, wide) for k in range(rng.randrange(2, 4))], [])
    env = start(td, program)
    for k in range(rng.randrange(2, 13)):
        templates = rng.choices([x for x, _ in KINDS], [x for _, x in KINDS])[0]
        names = [n for n in env if n not in ("t", "__builtins__")]
        form = rng.choice(templates)
        whole = form if templates in (CHANGES, CUTS, PASSES) else "{n} = " + form
        line = Statement(whole.format(n=f"v{k}", v=rng.choice(names[-4:]), w=rng.choice(names), d=rng.choice([0, 0, -1, 1])))
        line.cut = "cut" if templates is CUTS else "pass" if templates is PASSES else None
        fine = not attempt(line, env) and all(tame(x) for x in env.values() if isinstance(x, td.Tensor))
        if fine or (rng.random() < 0.2 and wild(env) is None):
            program.statements.append(line)
        else:
            env = start(td, program)
            for old in program.statements:
                attempt(old, env)
    return program


def tame(x):
    """No number that would drown the others, and not many of them."""
    if x.numel() > 200 or not x.is_floating_point() or x.numel() == 0:
        return x.numel() <= 200
    try:
        top = x.detach().abs().amax().item()
    except NotImplementedError:         # a view whose base has changed in a way that is refused by name
        return False
    return top < 1e3


def wild(env):
    return next((n for n, x in env.items() if isinstance(x, td.Tensor) and not tame(x)), None)


@functools.lru_cache(1000)
def code_of(line):
    """A statement is run ten times, and parsed once."""
    return compile(line, "<program>", "exec")


def start(t, program):
    env = {"t": t}
    for name, code in program.leaves:
        exec(code_of(f"{name} = {code}"), env)
    return env


def attempt(line, env):
    """The exception that a statement ends in, or None."""
    try:
        exec(code_of(line), env)
    except (RuntimeError, ValueError, TypeError, IndexError, NameError, NotImplementedError, OverflowError) as error:
        return error
    return None


def tensors(env, t):
    return {n: x for n, x in env.items() if isinstance(x, t.Tensor)}


def loss_of(env, t):
    """A number that every floating result has a share in of its own."""
    total = None
    for k, (n, x) in enumerate(sorted(tensors(env, t).items())):
        if x.is_floating_point() and (x.requires_grad or n.startswith("v")):
            share = (x.double() * (1 + k / 7)).sum()
            total = share if total is None else total + share
    return total


def leaves_of(program, env):
    return [env[n] for n, code in program.leaves if "requires_grad_" in code and env[n].is_leaf and env[n].requires_grad]


def differ(a, b, bound):
    """Words for the difference of two nested lists of numbers."""
    if isinstance(a, list) != isinstance(b, list) or (isinstance(a, list) and len(a) != len(b)):
        return f"{a} and {b}"
    if isinstance(a, list):
        return next(filter(None, (differ(x, y, bound) for x, y in zip(a, b))), None)
    same = a == b or (a != a and b != b) or abs(a - b) <= bound * max(1, abs(a), abs(b))
    return None if same else f"{a} and {b}"


# --- against PyTorch ---------------------------------------------------------------

def outcome(program, t):
    """For each statement whether it was refused; values, dtypes, leaves' gradients at the end.

    In PyTorch a view of a changed base learns of that when it is asked for grad_fn: until then it takes itself for a
    leaf, refuses what is no leaf, and crashes in retain_grad.
    """
    env, refused = start(t, program), []
    for s in program.statements:
        refused.append(attempt(s, env))
        for n in tensors(env, t) if t is not td else ():
            attempt(f"{n}.grad_fn", env)
    loss, error = loss_of(env, t), None
    try:
        if loss is not None and loss.requires_grad:
            loss.backward()
    except (RuntimeError, IndexError) as caught:
        error = caught
    facts = {}
    for name, x in tensors(env, t).items():
        facts[name] = (str(x.dtype).split(".")[-1], tuple(x.shape), *history(x)), x.detach().tolist(), \
            x.grad.tolist() if x.is_leaf and x.grad is not None else None
    return refused, error, facts


def history(x):
    """A whole number has none here; PyTorch gives one to what floats were copied into."""
    return (x.requires_grad, x.is_leaf) if x.is_floating_point() else ()


def explained(statement, ours, theirs):
    """Why only one side refuses, or None."""
    ours, theirs = str(ours or ""), str(theirs or "")
    return next((why for a, b, c, why in EXPLAINED if a.match(statement) and (b.match(ours) if b.pattern else not ours)
                 and (c.match(theirs) if c.pattern else not theirs)), None)


def first_refusal(program, ours, theirs):
    """(statement's number, words, reason) where only one side refuses, or None."""
    said, made = [*program.statements, "the last pass"], {}
    for k, (what, a, b) in enumerate(zip(said, ours, theirs)):
        target = re.match(r"(with .*: )?(\w+)", what).group(2)
        if (a is None) != (b is None):
            return k, f"refusal of '{what}': ours {a!r}, theirs {b!r}", explained(f"{what} # {made.get(target)}", a, b)
        made.setdefault(target, what)
    return None


def unlike_peer(program, peer):
    """What differs from PyTorch, in words.  What one side alone refuses, with reason, is left out by both."""
    ours = outcome(program, td)
    try:
        theirs = outcome(program, peer)
    except RuntimeError as error:
        if "multiple views" not in str(error):
            raise
        return unlike_peer(program.only(lambda s: "unbind" not in s and "chunk" not in s), peer)    # no look at them is allowed
    found = first_refusal(program, [*ours[0], ours[1]], [*theirs[0], theirs[1]])
    if found and found[2] is None:
        return found[1]
    if found and found[0] < len(program.statements):
        return unlike_peer(program.without(found[0]), peer)
    return next(filter(None, (unlike_tensor(n, fact, theirs[2].get(n), found or ours[1]) for n, fact in ours[2].items())),
                unlike_differences(program) if found and ours[1] is None else None)


def unlike_tensor(name, ours, theirs, failed):
    """The same for one tensor; gradients only if the last pass has made them."""
    if theirs is None or ours[0] != theirs[0]:
        return f"{name}: ours {ours[0]}, theirs {theirs and theirs[0]}"
    off = differ(ours[1], theirs[1], 1e-4)
    if off:
        return f"values of {name}: {off}"
    off = (ours[2] is None) != (theirs[2] is None) or (ours[2] is not None and differ(ours[2], theirs[2], 1e-3))
    return f"gradient of {name}: {ours[2]} and {theirs[2]}" if off and not failed else None


# --- against itself ----------------------------------------------------------------

def good(program, wanted=lambda s: True):
    """The wanted statements that are not refused and start no pass."""
    env = start(td, program)
    return program.only(lambda s: s.cut != "pass" and wanted(s) and not attempt(s, env))


def unlike_compiled(program, backend):
    """The results and gradients of the program, and of what td.jit makes of it."""
    program = good(program, lambda s: "> 0]" not in s)      # whose shape depends on numbers
    if not program.statements:
        raise Skipped("nothing is left")
    inputs = [x.detach() for x in tensors(start(td, program), td).values()]
    wants = [x.requires_grad for x in tensors(start(td, program), td).values()]

    def body(derive, *given):
        env = {"t": td}
        for (name, _), x, want in zip(program.leaves, given, wants):
            env[name] = x.clone().requires_grad_() if want else x.clone()
        wanted = [env[n] for (n, _), want in zip(program.leaves, wants) if want]
        for s in program.statements:
            exec(code_of(s), env)
        loss, wanted = loss_of(env, td), [x for x in wanted if x.requires_grad]
        derive = derive and loss is not None and loss.requires_grad
        grads = td.autograd.grad(loss, wanted, allow_unused=True) if derive else []
        return [x.detach() for x in tensors(env, td).values()], [g for g in grads if g is not None]
    derive = True
    try:
        expected = body(True, *inputs)
    except RuntimeError:        # a pass that is refused
        derive, expected = False, body(False, *inputs)
    f = td.jit(lambda *given: body(derive, *given), backend=backend)
    try:
        f(*inputs)
        got = f(*inputs)
    except NotImplementedError as error:
        raise Skipped(re.sub("^.*?: ", "", str(error)))
    except RuntimeError as error:
        if str(error).startswith("jit:") or "trace" in str(error):
            raise Skipped(str(error))
        return f"compiled: {error!r}"
    for what, a, b in zip(("values", "gradients"), expected, got):
        off = differ([x.tolist() for x in a], [x.tolist() for x in b], 1e-5)
        if off:
            return f"{what}, eager and {backend}: {off}"
    return None


def unlike_differences(program):
    """The slope along one direction, by the graph and by differences, without what cuts the graph."""
    td.set_default_dtype(td.float64)        # whole numbers divided are wide, too
    try:
        return compare_slopes(good(program.wide(), lambda s: s.cut is None))
    finally:
        td.set_default_dtype(td.float32)


def compare_slopes(program):

    def at(h):
        env = start(td, program)
        for k, x in enumerate(leaves := leaves_of(program, env)):
            with td.no_grad():
                x.add_(directions(k, x) * (0.003 + h))      # from the round numbers, where the corners are
        if any([attempt(s, env) for s in program.statements]):
            raise Skipped("refused near by")
        return loss_of(env, td), leaves
    loss, leaves = at(0.0)
    if loss is None or not loss.requires_grad:
        raise Skipped("nothing needs a gradient")
    try:
        grads = td.autograd.grad(loss, leaves, allow_unused=True)
    except RuntimeError as error:
        raise Skipped(re.sub(" of .*", "", str(error)))
    slope = sum(float((g.double() * directions(k, g)).sum()) for k, g in enumerate(grads) if g is not None)
    near = [at(h)[0].item() for h in (1e-5, -1e-5, 2e-6, -2e-6)]
    wide, narrow = (near[0] - near[1]) / 2e-5, (near[2] - near[3]) / 4e-6
    scale = max(1.0, abs(slope), abs(wide))
    if abs(slope - wide) <= 1e-4 * scale or (slope != slope and wide != wide):
        return None
    if abs(near[0] - 2 * loss.item() + near[1]) > 1e-7 * scale or abs(wide - narrow) > 1e-5 * scale:
        raise Skipped("a corner is near")
    return f"slope {slope} by the graph, {wide} by differences"


def directions(k, x):
    return ((td.arange(x.numel(), dtype=td.float64) * 0.37 + k + 1).sin()).reshape(x.shape)


# --- many --------------------------------------------------------------------------

def minimised(program, check):
    """The program without what the failure does not need."""
    k = len(program.statements)
    while k > 0:
        k -= 1
        less = program.without(k)
        try:
            if check(less):
                program = less
        except Exception:
            pass
    return program


def checks(seed, peer):
    if peer is not None:
        return {"PyTorch": lambda p: unlike_peer(p, peer)}
    some = {"compiled": lambda p: unlike_compiled(p, "interpreter"), "by differences": unlike_differences}
    return some | ({"compiled to C": lambda p: unlike_compiled(p, "c")} if seed % 100 == 0 else {})


def fuzz(count, seed, peer=None, most=5):
    """Failures in words, each with a program that shows it; how often each check compared, or why not."""
    failures, done = [], collections.Counter()
    for k in range(seed * 10 ** 6, seed * 10 ** 6 + count):
        program = generate(k)
        for name, check in checks(k, peer).items():
            try:
                words = check(program)
                done[name, "compared"] += 1
            except Skipped as why:
                done[name, str(why)] += 1
                continue
            if words:
                small = minimised(program, check)
                failures.append(f"# seed {k}: {check(small) or words}\n{small.text()}\n")
        if len(failures) >= most:
            break
    return failures, done


def test_random_programs():
    count, seed = int(os.environ.get("TREADLE_PROGRAMS", 2000)), int(os.environ.get("TREADLE_SEED", 1))
    failures, done = fuzz(count, seed)
    assert not failures, "\n".join(failures)
    assert sum(n for (_, what), n in done.items() if what == "compared") >= 0.8 * sum(done.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=5)
    parser.add_argument("--torch", action="store_true")
    args = parser.parse_args()
    peer = importlib.import_module("torch") if args.torch else None
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("TREADLE_CACHE", cache)
        failures, done = fuzz(args.programs, args.seed, peer, args.most)
    print("\n".join(failures) + f"{args.programs} programs, {len(failures)} failures")
    for (name, what), n in sorted(done.items(), key=lambda x: (x[0][0], -x[1])):
        print(f"  {n:6} {name}: {what}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
