# needs: layers
# SPDX-License-Identifier: MIT
"""Every case on treadle and on PyTorch: `make conformance`.

    report.py [--golden FILE] [--write FILE] [--verbose] [OPERATOR...]
"""
import argparse
import collections
import fnmatch
import functools
import json
import re
import sys
import textwrap
import time
import warnings

import numpy as np

import cases
from cases import magnitude, outcome, ulps
from peers import CRASHES, EXPLAINED, LIMITS, REFUSALS, SUMS, find

try:
    import torch
except ImportError:
    sys.exit("make conformance compares with PyTorch, which is not here.  Install it with\n"
             "    make deps-peers\n"
             "which puts the newest beside Debian's, or for the Python that PEER names.")
import treadle as td


def resolve(op):
    """(function of treadle, function of PyTorch or None) for an operator."""
    return find(td, op.name), find(torch, op.name)


def compare(case, ours, theirs, exact=None):
    """What differs: a list of (kind, text, ulp).

    exact() is PyTorch's result in float64 for the same float32 numbers: where
    the two differ in float32, ours counts by its distance from that.
    """
    if ours[0] != theirs[0]:
        error = ours[1] if ours[0] == "raises" else theirs[1]
        return [("raises" if ours[0] == "raises" else "returns", f"{type(error).__name__}: {str(error).splitlines()[0][:150]}", 0)]
    if ours[0] == "raises":
        return []
    op, found = case.call.op, []
    if len(ours[1]) != len(theirs[1]) or ours[2] != theirs[2]:
        return [("dtype", f"{ours[2]}, not {theirs[2]}", 0)]
    if [a.shape for a in ours[1]] != [b.shape for b in theirs[1]]:
        return [("shape", f"{[a.shape for a in ours[1]]}, not {[b.shape for b in theirs[1]]}", 0)]
    if op.name in cases.FACTS_ONLY:
        return []
    scale = magnitude(case, theirs[1]) if op.name.rstrip("_") in SUMS else 0.0
    for i, (a, b) in enumerate(zip(ours[1], theirs[1])):
        apart = ulps(a, b, scale)
        if apart > 1 and a.dtype == "float32" and exact:        # who is right?
            apart = min(apart, ulps(a, exact()[1][i].astype("float32"), scale))
        found.append(("value", f"{show(a)}, not {show(b)}", apart))
    if any(x.dtype != "float64" for x in theirs[1] if x.dtype.kind == "f"):
        return found
    if (ours[3] is None) != (theirs[3] is None):
        found.append(("graph", "a gradient" if ours[3] else "no gradient", 0))
    for a, b in zip(ours[3] or (), theirs[3] or ()):
        if a is None or b is None:
            if (a is None) != (b is None) and np.any(a if b is None else b):
                found.append(("gradient", "absent on one side", np.inf))
        else:
            found.append(("gradient", f"{show(a)}, not {show(b)}",
                          ulps(a, b, max(magnitude(case, [b]), magnitude(case, theirs[1])) if a.shape == b.shape else 0)))
    return found


def show(x):
    return np.array2string(x, precision=9, threshold=8, edgeitems=3).replace("\n", "")


USED = set()                # patterns of EXPLAINED that explained something


def explained(case, kind, text):
    """The reason for which the two differ on purpose, if there is one."""
    for words, reason in REFUSALS if kind == "returns" else ():
        if re.search(words, text):
            return reason
    for pattern, kinds, reason in EXPLAINED:
        for p in pattern.split("|") if kind in kinds.split() else ():
            if fnmatch.fnmatchcase(str(case), p + "*"):
                USED.add(p)
                return reason
    return None


class Row:
    """What is said of one operator."""

    def __init__(self):
        self.cases, self.worst, self.bad, self.reasons, self.dtypes = 0, {"float32": 0.0, "float64": 0.0}, [], collections.Counter(), {}


def record(golden, case, peer):
    """Keep PyTorch's result for the tests that run without it."""
    first, plain = case.call.index < (1 if case.call.op.mutates else 3), case.layout == "contiguous"
    if first and plain and (case.dtypes[0], case.corner) in (
            ("float64", "ordinary"), ("float32", "special"), ("int64", "ordinary")) \
            or case.call.index == 0 and plain and not case.call.op.mutates and (case.dtypes[0], case.corner) in (("float64", "attribute"), ("float64", "zero"), ("float64", "rank0")):
        golden.setdefault(case.call.op.name, {})[case.key()] = cases.summary(peer)


def one_operator(op, golden):
    row, (ours, theirs) = Row(), resolve(op)
    if theirs is None:
        return None
    limits = LIMITS.get(op.name.rstrip("_"), LIMITS["sums" if op.name.rstrip("_") in SUMS else "*"])
    for case in cases.matrix(op):
        if op.name.startswith(CRASHES) and case.corner not in ("ordinary", "special"):
            continue
        row.cases += 1
        real = case.dtypes == ("float64",) and case.corner not in ("sweep",)
        mine, peer = outcome(case, td, ours, real), outcome(case, torch, theirs, real)
        agreed = True
        exact = functools.lru_cache(None)(lambda: outcome(case.widened(), torch, theirs, False))
        for kind, text, ulp in compare(case, mine, peer, exact if "float32" in case.dtypes else None):
            narrow = kind == "value" and mine[2][0] or "float64"
            limit = limits[0] if narrow == "float32" else limits[1] if kind == "value" else limits[2]
            if kind in ("value", "gradient") and ulp <= limit:
                if narrow in row.worst and kind == "value":
                    row.worst[narrow] = max(row.worst[narrow], ulp)
                continue
            reason, agreed = explained(case, kind, text), False
            if reason:
                row.reasons[reason] += 1
                row.dtypes.setdefault(reason, set()).add("x".join(case.dtypes))
            else:
                row.bad.append(f"{case}: {kind}: {text}" + (f" ({ulp:.3g} ulp)" if ulp else ""))
        if agreed and op.name not in cases.FACTS_ONLY and (peer[0] == "raises" or all(
                ulps(a, b, magnitude(case, peer[1])) <= 16 for a, b in zip(mine[1], peer[1]))):
            record(golden, case, peer)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden", help="write PyTorch's numbers to this file")
    parser.add_argument("--write", default="build/conformance.txt")
    parser.add_argument("operators", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    torch.set_num_threads(1)
    began, registry, rows, alone = time.monotonic(), cases.registry(), {}, []
    golden = {}
    lines = [f"{'operator':24} {'cases':>6} {'float32':>9} {'float64':>9} {'differ':>7} {'explained':>9}"]
    missing = [op.name for op in registry.values() if not op.calls]
    for name, op in sorted(registry.items()):
        if args.operators and name not in args.operators or not op.calls:
            continue
        row = one_operator(op, golden)
        if row is None:
            alone.append(name)
            continue
        rows[name] = row
        lines.append(f"{name:24} {row.cases:6} {row.worst['float32']:9.3g} {row.worst['float64']:9.3g} "
                     f"{len(row.bad):7} {sum(row.reasons.values()):9}")
        lines += [f"    {b}" for b in row.bad]
    reasons = sum((row.reasons for row in rows.values()), collections.Counter())
    lines += ["", "Explained:"]
    for reason, n in reasons.most_common():
        lines.append(f"{n:7} {reason}")
        lines += textwrap.wrap("; ".join(f"{name} {' '.join(sorted(row.dtypes[reason]))}" for name, row in rows.items() if reason in row.dtypes),
                               132, initial_indent=" " * 12, subsequent_indent=" " * 12)
    lines += ["", "Without a peer (their layouts, dtypes and gradients are tested by make test): " + " ".join(alone)]
    lines += [f"No call is known of {name}: give it a sample, or a row in tests/conformance/cases.py" for name in missing]
    stale = [p for row in EXPLAINED for p in row[0].split("|") if p not in USED]
    if stale and not args.operators:
        lines.append("Explains nothing in this PyTorch: " + "  ".join(stale))
    worst = max(((row.worst["float32"], n) for n, row in rows.items()), default=(0, "-"))
    bad = sum(len(row.bad) for row in rows.values())
    lines.append(f"conformance with PyTorch {torch.__version__}: {sum(r.cases for r in rows.values())} cases of {len(rows)} operators, worst {worst[0]:.2g} ulp "
                 f"(float32 {worst[1]}), {bad} disagreements, {sum(reasons.values())} explained "
                 f"by {len(reasons)} reasons, {time.monotonic() - began:.0f} s")
    with open(args.write, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    if args.golden:
        with open(args.golden, "w", encoding="utf-8") as file:
            file.write("{\n" + ",\n".join(f"{json.dumps(name)}:" + json.dumps(some, separators=(",", ":")).replace('],"', '],\n"')
                                         for name, some in sorted(golden.items())) + "\n}\n")
    sys.exit(bool(bad or missing))


if __name__ == "__main__":
    main()
