# SPDX-License-Identifier: MIT
# Tangled from the chapter "vocabulary": edit that, not this file.
# needs: package
"""Functions that are one formula, from their text."""
import re as _re
from ._C import Tensor

_ROW = _re.compile(r"^(\w+)\((.*?)\) = *(.*?)(?=^\w|\Z)", _re.M | _re.S)


def define(names, text):
    """Put into names the functions of a text: name(...) = formula."""
    for name, parameters, formula in _ROW.findall(text):
        made = eval(f"lambda {parameters}: ({formula})", names)
        made.__name__ = made.__qualname__ = name
        made.__doc__ = f"= {' '.join(formula.split())}"
        names[name] = made
        if parameters.startswith("input"):
            setattr(Tensor, name, made)
