"""What the checks of exercises in Python share.  SPDX-License-Identifier: MIT

    from judge import *

    case("a row of 3 ones", "sum = x[0] + x[1] + x[2]")
    equal(ask("td.tensor([1., 1., 1.]).sum().item()"), 3)
    close(ask("td.tensor(x).exp()", x=[0.5]), [math.exp(0.5)], 1e-6)    # a tensor comes as nested lists
    both("x = td.ones(2, 3)")                                           # lines for two processes: the student's ...
    same("x.tile((2, 1))")                                              # ... and one with the library as it is
    raises("ValueError", "td.ones(2).view(3)", "shape")
    end()                                                               # without this line nothing has passed

The code under test never runs here, but in a process of its own, which is
sent lines of Python and sends plain data back (exercises/pupil.py).  It knows
neither what is expected nor how to say that all is well: that goes into a file
of this process alone, as in a check in C (exercises/verdict.c).  Ask for
numbers rather than for True: who answers True to everything should not pass.

`ask` runs lines in one process, which remembers its variables, and gives the
value of the last line: None, numbers, text, lists, tuples, dictionaries, a
tensor or an array as nested lists, any other object as "<an object of class
...>".  Numbers are compared as numbers, 2 and 2.0 are equal, True and 1 are not; a
dtype or a sign of zero is asked for (`str(x.dtype)`).  An exception, an end of
the process or of its time, or too much memory, is a report, not a pass.
"""
import json
import math
import os
import re
import resource
import secrets
import signal
import subprocess
import sys
from pathlib import Path

__all__ = "case ask both ours equal close same raises wrong end math".split()
OWN = "PYTHONPATH", "TREADLE_VARIANT", "TREADLE_OURS", "TREADLE_PRELOAD"
MEMORY, LONGEST = 1 << 30, 1 << 24


class Verdict:
    """What is said, with a sum over every byte of it that begins at a random number."""

    def __init__(self):
        self.file = int(os.environ.pop("TREADLE_CHECK"))
        self.sum = int(os.pread(self.file, 16, 0), 16)
        os.ftruncate(self.file, 0)
        os.set_inheritable(self.file, False)
        self.what, self.formula = "before the first case", ""

    def tell(self, text):
        for byte in text.encode(errors="replace"):
            self.sum = (self.sum ^ byte) * 0x100000001b3 % 2**64
        os.write(self.file, text.encode(errors="replace"))

    def seal(self, text):
        self.tell(text)
        self.tell(f"{self.sum:016x}\n")


verdict = Verdict()


class Pupil:
    """A process with the package of one folder."""

    def __init__(self, folder, preload=""):
        folder, ends = Path(folder), [*os.pipe(), *os.pipe()]
        environment = {key: value for key, value in os.environ.items() if key not in OWN}
        if preload:
            environment.update(LD_PRELOAD=preload, PYTHONMALLOC="malloc")
        self.child = subprocess.Popen(
            [sys.executable, "-s", "-u", "-B", Path(__file__).with_name("pupil.py"), str(ends[0]), str(ends[3]),
             folder / "python", folder / "examples"], pass_fds=(ends[0], ends[3]), env=environment,
            stdin=subprocess.DEVNULL, preexec_fn=lambda: preload or resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)))
        os.close(ends[0]), os.close(ends[3])
        self.asked, self.told = open(ends[1], "w"), open(ends[2])

    def ask(self, code, given):
        """{"value": ...} or {"raised": ...}."""
        number = secrets.token_hex(8)
        try:
            print(json.dumps([number, code, given]), file=self.asked, flush=True)
            line = self.told.readline(LONGEST)
        except (OSError, ValueError):
            line = ""
        if not line:
            self.ended()
        try:
            back, answer = json.loads(line)
            if back == number and isinstance(answer, dict):
                return answer
        except ValueError:
            pass
        wrong("  expected  an answer to each question\n  got       something else: your code has meddled with the check")

    def ended(self):
        """End as the process did, without a verdict: the runner says how."""
        status = self.child.wait()
        if status < 0:
            signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
            os.kill(os.getpid(), -status)
        os._exit(status)


def started(which):
    if which not in pupils:
        pupils[which] = Pupil(os.environ[which], os.environ.get("TREADLE_PRELOAD", "") if which == "TREADLE_VARIANT" else "")
        value("import treadle as td, math", {}, which)
    return pupils[which]


def stopped(*_):
    """Too slow: wait until the code under test has told where it is."""
    for pupil in pupils.values():
        pupil.child.wait()
    os._exit(1)


def restored(x):
    """What pupil.plain was given."""
    if not isinstance(x, dict):
        return x
    (kind, held), = x.items()
    if kind in ("list", "tuple"):
        return [restored(y) for y in held] if kind == "list" else tuple(restored(y) for y in held)
    if kind == "dict":
        return {restored(key): restored(y) for key, y in held}
    return complex(*held) if kind == "complex" else f"<an object of class {str(held)}>"


def value(code, given, which="TREADLE_VARIANT"):
    answer = started(which).ask(code, given)
    if "raised" not in answer:
        return restored(answer["value"])
    if which != "TREADLE_VARIANT":
        raise RuntimeError(f"the library's own: {answer}")
    wrong(f"  raised    {answer['raised'][0]}: {answer['words']}" + "".join(
        f"\n  at        {place}" for place in reversed(answer["places"]) if not re.search("^<check>|/pupil.py:", place)))


def case(what, formula=""):
    """Comes before the code under test is called."""
    verdict.what, verdict.formula = what.replace("\n", " ")[:190], formula
    verdict.tell(f"case {verdict.what}\n")


def wrong(text):
    """Say what is wrong with the case; ends the check."""
    verdict.seal(f"wrong\n{verdict.what}\n{text[:3000]}\n" + (f"  formula   {verdict.formula}\n" if verdict.formula else ""))
    os._exit(1)


def ask(code, **given):
    """What the lines make with the student's code; `td` is the package, `given` are variables, all stay for the next."""
    return value(code, given)


def ours(code, **given):
    """The same with the library as it is."""
    return value(code, given, "TREADLE_OURS")


def both(code, **given):
    """Lines for what `same` will ask: nothing is compared."""
    ask(code, **given), ours(code, **given)


def shown(x):
    text = repr(x)
    return text if len(text) <= 300 else text[:300] + " ..."


def number(x):
    return type(x) in (int, float, complex)


def kind(x):
    return "numbers" if number(x) else type(x).__name__


def apart(got, expected):
    """Their distance over max(1, |expected|); infinities and NaN are equal or not."""
    if got == expected or (got != got and expected != expected):
        return 0.0
    distance = abs(got - expected) / max(1, abs(expected))
    return distance if math.isfinite(distance) else math.inf


def leaves(x, at=""):
    """(place, leaf) of nested lists; each list is a leaf too: its kind and length."""
    if type(x) in (list, tuple):
        yield at, (type(x).__name__, len(x))
        for n, y in enumerate(x):
            yield from leaves(y, f"{at}[{n}]")
    elif type(x) is dict:
        yield at, ("dict", shown(sorted(map(str, x))))
        for key in sorted(x, key=str):
            yield from leaves(x[key], f"{at}[{key!r}]")
    else:
        yield at, x


def close(got, expected, tolerance):
    """Each number within tolerance * max(1, |expected|); all else, also lengths and types, equal."""
    pairs = list(zip(leaves(got), leaves(expected)))
    worst = max((apart(g, e) for (_, g), (_, e) in pairs if number(g) and number(e)), default=0.0)
    for (_, g), (at, e) in pairs:
        if number(g) and number(e):
            if not apart(g, e) <= tolerance:
                wrong((f"  first bad index {at}\n" if at else "") + f"  expected  {e!r}\n  got       {g!r}"
                      f"\n  worst relative error {worst:.2g}, allowed {tolerance:.2g}")
        elif kind(g) != kind(e) or g != e:
            told = [f"a {v[0]} of {v[1]}" if type(v) is tuple else shown(v) for v in (e, g)]
            wrong((f"  first bad index {at}\n" if at else "") + f"  expected  {told[0]}\n  got       {told[1]}")


def equal(got, expected):
    close(got, expected, 0)


def same(code, tolerance=0, **given):
    """Whatever the lines make, the library with our answer makes it too."""
    close(ask(code, **given), ours(code, **given), tolerance)


def raises(kind, code, words="", **given):
    """An exception of this kind, whose message holds these words."""
    answer = started("TREADLE_VARIANT").ask(code, given)
    if "raised" not in answer:
        wrong(f"  expected  {kind}\n  got       {shown(restored(answer['value']))}")
    if kind not in answer["raised"] or words not in answer["words"]:
        wrong(f"  expected  {kind}{f' that speaks of: {words}' * bool(words)}\n"
              f"  got       {answer['raised'][0]}: {answer['words']}")


def end():
    """The last line of a check: the code under test ends by itself, and all is right."""
    case("everything asked")
    if "TREADLE_VARIANT" not in pupils:
        wrong("  the check has asked nothing")
    for pupil in pupils.values():
        pupil.asked.close()
    for pupil in pupils.values():
        if pupil.child.wait() != 0:
            pupil.ended()
    verdict.seal("passed\n")
    os._exit(0)


def unforeseen(kind, error, trace):
    sys.__excepthook__(kind, error, trace)
    wrong(f"  expected  something that the check can compare\n  got       what makes it fail: {kind.__name__}: {error}")


pupils, sys.excepthook = {}, unforeseen
signal.signal(signal.SIGABRT, stopped)
