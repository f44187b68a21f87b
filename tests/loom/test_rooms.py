"""Lint finds a file of the lower rooms that reaches into the graph or the compiler."""
import shutil
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]


@pytest.fixture
def lint(monkeypatch):
    monkeypatch.chdir(HOME)
    monkeypatch.syspath_prepend(str(HOME / "loom"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("lint", str(HOME / "loom" / "lint"))
    module = module_from_spec(spec_from_loader("lint", loader))
    loader.exec_module(module)
    return module


def offences(lint, where, line):
    sources = where / "src"
    shutil.copytree(HOME / "generated" / "src", sources)
    with open(sources / "core/views.c", "a") as file:
        file.write(line + "\n")
    lint.offences.clear()
    lint.check_rooms(sources)
    return [text.split("/core/", 1)[-1] for text in lint.offences]


@pytest.mark.parametrize("line, says", [
    ('#include "grad/autograd.h"', ["views.c: includes grad/autograd.h of the room above"]),
    ("bool f(void) { return td_trace_begin(true); }", ["views.c: calls td_trace_begin of compiler/trace.c in the room above"]),
    ('#include "core/call.h"\n#include "core/rule.h"', []),                              # the two doors
    ("bool f(td_tensor *x) { return td_wants_gradient(x, true); }", []),       # one of them says so
    ("bool f(td_plan *p) { return td_mute(NULL, p); }",                         # a stage is entered by its number
     ["views.c: calls td_mute of grad/record.c in the room above"]),
    ("/* td_node_attach(x, node, 0) */", []),
])
def test_what_reaches_up_is_named(lint, tmp_path, line, says):
    assert offences(lint, tmp_path, line) == says


def test_the_book_itself_keeps_the_rule(lint, tmp_path):
    assert offences(lint, tmp_path, "") == []
