"""The process that the code of an exercise runs in: lines of Python come
through a pipe, plain data goes back.  SPDX-License-Identifier: MIT

What is expected stands in another process (exercises/judge.py).  So whatever
the code under test does to this one, it must come by the right numbers.
"""
import ast
import faulthandler
import json
import os
import signal
import sys
import traceback


def plain(x):
    """`x` as JSON can hold it: numbers, text, lists; a tensor or an array as nested lists; anything else by its name."""
    if x is None or type(x) in (bool, int, float, str):
        return x
    if type(x) in (list, tuple):
        return {"list" if type(x) is list else "tuple": [plain(y) for y in x]}
    if type(x) is dict:
        return {"dict": [[plain(key), plain(value)] for key, value in x.items()]}
    if type(x) is complex:
        return {"complex": [x.real, x.imag]}
    if hasattr(x, "tolist"):
        return plain(x.tolist())
    if isinstance(x, tuple):
        return plain(tuple(x))
    return {"object": type(x).__name__}


def value_of(code, space):
    """Run the lines; the value of the last, if it is an expression."""
    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<check>", "exec"), space)
    return eval(compile(last, "<check>", "eval"), space) if last else None


def main():
    asked, told, sys.path[0:1] = open(int(sys.argv[1])), open(int(sys.argv[2]), "w"), sys.argv[3:]
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    if not os.environ.get("LD_PRELOAD"):        # the sanitizer reports crashes by itself
        faulthandler.enable()
    space = {"__name__": "check"}
    for line in asked:
        number, code, given = json.loads(line)
        try:
            space.update(given)
            answer = {"value": plain(value_of(code, space))}
        except BaseException as error:
            answer = {"raised": [kind.__name__ for kind in type(error).__mro__], "words": str(error)[:1000],
                      "places": [f"{at.filename}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)][-20:]}
        told.write(json.dumps([number, answer]) + "\n")
        told.flush()


if __name__ == "__main__":
    main()
