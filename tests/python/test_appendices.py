# needs: environment porting package
"""The tables of the appendices on types, names and the environment say what is so."""
import itertools
import math
import os
import re
import subprocess
from pathlib import Path

import pytest
import treadle as td

HOME = Path(__file__).resolve().parents[2]
TYPES, NAMES, ENVIRONMENT = (next(HOME.glob(f"chapters/*/*-{slug}.nw")).read_text(encoding="utf-8")
                             for slug in ("types", "names", "environment"))
SHORT = dict(zip("b1 u1 i1 i2 i4 i8 f2 g2 f4 f8".split(),
                 "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()))
INCLUDE = HOME / "generated/include"
HEADERS = "\n".join(p.read_text() for p in (INCLUDE / "treadle").glob("*.h"))
HEADERS += subprocess.run([*os.environ.get("CC", "cc").split(), "-E", "-P", f"-I{INCLUDE}", "-include", "treadle/treadle.h", "-xc", os.devnull],
                          check=True, capture_output=True, text=True).stdout    # prototypes that rows of a table make


def rows(text, pattern):
    found = re.findall(pattern, text, re.M)
    assert found, pattern
    return found


def test_types_of_elements():
    table = rows(TYPES, r"^\[\[(\w+)\]\] & (?:\[\[(\w+)\]\])? ?& \[\[(TD_\w+)\]\] & (\d) & (yes|wide|no)")
    assert [row[0] for row in table] == list(SHORT.values())
    for name, alias, number, size, computes in table:
        dtype = getattr(td, name)
        assert dtype.itemsize == int(size) and re.search(rf"\b{number}\b", HEADERS)
        assert not alias or getattr(td, alias) is dtype
        x = td.ones(2, dtype=dtype)
        if computes != "no":
            assert (x + x).dtype is dtype
        else:
            with pytest.raises(NotImplementedError, match=f"add.*{name}"):
                x + x
    assert sum(1 for name in dir(td) if isinstance(getattr(td, name), td.dtype)) \
        == len(table) + sum(1 for row in table if row[1])


def test_what_floats_can_hold():
    table = rows(TYPES, r"^\[\[(\w+)\]\] & (\d+) & \$-(\d+)\$ & (\d+) & (\S+) & (\S+) & ([^\\\s]+)")
    assert len(table) == 4
    for name, digits, low, high, eps, tiny, most in table:
        info = td.finfo(getattr(td, name))
        assert info.eps == 2.0 ** -int(digits) and info.tiny == 2.0 ** -int(low)
        assert info.max == (2 - info.eps) * 2.0 ** int(high)
        assert (f"{info.eps:g}", f"{info.tiny:g}", f"{info.max:g}") == (eps, tiny, most)


def test_promotion():
    line = r"^(\w\d)((?: & \w\d){10})"
    table = {left: cells.split(" & ")[1:] for left, cells in rows(TYPES, line)}
    assert list(table) == list(SHORT)
    for a, b in itertools.product(SHORT, repeat=2):
        said = SHORT[table[a][list(SHORT).index(b)]]
        assert td.promote_types(getattr(td, SHORT[a]), getattr(td, SHORT[b])) is getattr(td, said), (a, b)
    x = td.ones(2, dtype=td.float32)
    assert (x * 2.5).dtype is td.float32 and (x.long() * 2.5).dtype is td.float32 and (x.int() / x.int()).dtype is td.float32
    assert x.int().sum().dtype is x.bool().sum().dtype is td.int64 and (x < x).dtype is td.bool


def test_conversions():
    x = td.tensor([math.nan, math.inf, -1e30, 3.9, -3.9])
    assert x.to(td.int32).tolist() == [0, 2 ** 31 - 1, -2 ** 31, 3, -3] and x.to(td.uint8).tolist() == [0, 255, 0, 3, 0]
    assert td.tensor([300, -1]).to(td.uint8).tolist() == [44, 255] and x.bool().all()


@pytest.mark.parametrize("text", [TYPES, NAMES, ENVIRONMENT], ids=["types", "names", "environment"])
def test_every_name_of_ours_exists(text):
    for name in set(re.findall(r"\[\[(t?[dx]\.[\w.]+)", text)):
        where, found = td if name.startswith("td.") else td.Tensor, name.split(".")[1:]
        for part in found:
            assert hasattr(where, part), name
            where = getattr(where, part)
    for name in set(re.findall(r"\[\[(td_\w+|TD_\w+)", text)):
        assert re.search(rf"\b{name}\b", HEADERS), name
    for label in set(re.findall(r"\\cref\{(\w+:[\w-]+)\}", text)):
        assert any(rf"\label{{{label}}}" in p.read_text(encoding="utf-8") for p in (HOME / "chapters").rglob("*.nw")), label


def test_the_environment_has_these_variables_and_no_others():
    said = re.findall(r"^\[\[(TREADLE_\w+)\]\] &", ENVIRONMENT, re.M)
    assert len(said) == len(set(said))
    read = set()
    for folder in ("src", "cuda", "python", "include"):
        for path in (HOME / "generated" / folder).rglob("*"):
            if path.is_file():
                read |= set(re.findall(r"""["'](TREADLE_[A-Z_]+)["']""", path.read_text(encoding="utf-8")))
    assert set(said) == read
