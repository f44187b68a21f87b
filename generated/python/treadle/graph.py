# SPDX-License-Identifier: MIT
# Tangled from the chapter "seeing": edit that, not this file.
# needs: porting
"""Pictures of what was computed.

>>> td.graph.draw(loss, "loss.svg")         # or "loss.dot"
>>> print(td.graph.draw(td.jit.dump(step))) # a program, as dot
"""
import json
import re
import shutil
import subprocess
from pathlib import Path
from . import _C

# seeing: functions that draw graphs
def _of_tensors(ys):
    """({node: (label, colour)}, edges) of the graph behind ys."""
    nodes, edges = {}, []
    for k, y in enumerate(ys):
        if y.grad_fn is None:
            raise ValueError("draw: a tensor without grad_fn has no "
                             "graph")
        nodes["result", k] = str(tuple(y.shape)), "darkolivegreen1"
        edges.append((y.grad_fn, ("result", k)))
    for node, _ in edges:
        if node in nodes:
            continue
        leaf = getattr(node, "variable", None)
        nodes[node] = ((node.name(), "lightgrey") if leaf is None else
                       (str(tuple(leaf.shape)), "lightblue"))
        for before, _ in node.next_functions:
            if before is not None:
                edges.append((before, node))
    return nodes, edges


def _of_program(text):
    """The same of a program as it prints itself."""
    nodes, edges, made = {}, [], {}
    for n, line in enumerate(text.splitlines()):
        left, name, rest, shape = re.match(
            r"(?:(%.*) = )?(\w*)(.*?)(?: : (.*))?$", line).groups()
        values = re.findall(r"%\d+", rest)
        if not (left or values or name == "return"):
            continue
        if shape and not left:                  # an input
            left, values = rest, []
        nodes[n] = (f"{name}\n{shape}" if shape else name,
                    "lightgrey" if values else "lightblue")
        edges += [(made[v], n) for v in values if v in made]
        made.update(dict.fromkeys(re.findall(r"%\d+", left or ""), n))
    return nodes, edges


def draw(y, path=None):
    """The graph behind a tensor or several, or a printed program.

    Returned as dot, and written to path, as dot or, if its name ends
    in .svg, as a picture.
    """
    y = [y] if isinstance(y, _C.Tensor) else y
    nodes, edges = _of_tensors(y) if isinstance(y, (tuple, list)) \
        else _of_program(str(y))
    if not nodes:
        raise TypeError("draw: expected tensors or a program, not "
                        f"{type(y).__name__}")
    number = {n: k for k, n in enumerate(nodes)}
    # seeing: write the graph as dot
    dot = "digraph {\n" + "".join(
        f"  n{number[n]} [label={json.dumps(label)}, style=filled, "
        f"shape=box, fillcolor={colour}];\n"
        for n, (label, colour) in nodes.items()) + "".join(
        f"  n{number[a]} -> n{number[b]};\n" for a, b in edges) + "}\n"
    if path is not None and str(path).endswith(".svg"):
        if shutil.which("dot") is None:
            raise RuntimeError("draw: SVG needs the program dot, of "
                               "Graphviz")
        subprocess.run(["dot", "-Tsvg", "-o", path], check=True,
                       input=dot, text=True)
    elif path is not None:
        Path(path).write_text(dot, "utf-8")
    return dot
