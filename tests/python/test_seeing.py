# needs: seeing
# SPDX-License-Identifier: MIT
"""Pictures of graphs and programs, curves, records for TensorBoard, and the first NaN."""
import os
import re
import stat
import subprocess
import sys
import warnings
import xml.etree.ElementTree as tree

import pytest

import treadle as td

SVG = "{http://www.w3.org/2000/svg}"


def edges(dot):
    label = dict(re.findall(r'(n\d+) \[label="([^"]*)"', dot))
    return sorted((label[a], label[b]) for a, b in re.findall(r"(n\d+) -> (n\d+)", dot))


def test_a_graph_leads_from_leaves_to_results():
    x, w = td.rand(4, 3), td.rand(3, 2, requires_grad=True)
    dot = td.graph.draw((x @ w).exp() * 2)
    assert edges(dot) == [("(3, 2)", "MatmulBackward0"), ("ExpBackward0", "MulBackward0"),
                          ("MatmulBackward0", "ExpBackward0"), ("MulBackward0", "(4, 2)")]


def test_what_is_used_twice_is_drawn_once():
    x = td.rand(3, requires_grad=True)
    y = x.exp()
    dot = td.graph.draw([y * y, y + 1])
    assert dot.count('"ExpBackward0"') == 1 and dot.count("lightblue") == 1 and dot.count("darkolivegreen1") == 2
    assert edges(dot).count(("ExpBackward0", "MulBackward0")) == 2


def test_a_program_is_drawn_step_by_step():
    a, b = td.rand(3, 2), td.rand(2)
    with td.jit.record() as tape:
        (a @ b).relu().sum()
    steps = edges(td.graph.draw(tape))
    assert ("matmul\\nfloat32[3]", "relu\\nfloat32[3]") in steps and ("relu\\nfloat32[3]", "sum\\nfloat32[]") in steps

    @td.jit
    def f(x):
        return x * 2, x + x
    for _ in range(3):
        f(td.rand(3))
    assert [b for _, b in edges(td.graph.draw(td.jit.dump(f)))].count("return") == 2


def test_pictures_need_a_graph():
    with pytest.raises(ValueError, match="grad_fn"):
        td.graph.draw(td.rand(3))
    for bad in (3, "no program", None, []):
        with pytest.raises(TypeError, match="expected tensors or a program"):
            td.graph.draw(bad)


def test_dot_is_written_and_svg_needs_graphviz(tmp_path, monkeypatch):
    y = td.rand(2, requires_grad=True).exp()
    dot = td.graph.draw(y, tmp_path / "y.dot")
    assert (tmp_path / "y.dot").read_text() == dot
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="needs the program dot"):
        td.graph.draw(y, tmp_path / "y.svg")
    fake = tmp_path / "dot"
    fake.write_text('#!/bin/sh\n[ "$1 $2" = "-Tsvg -o" ] && while read -r line; do echo "$line"; done > "$3"\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    td.graph.draw(y, tmp_path / "y.svg")
    assert (tmp_path / "y.svg").read_text().split() == dot.split()


def lines_of(path):
    root = tree.parse(path).getroot()
    return [p.get("d") for p in root.iter(SVG + "path")][1:], [t.text for t in root.iter(SVG + "text")]


def test_curves_have_gaps_where_values_are_not_finite(tmp_path):
    td.svg.curves(tmp_path / "a.svg", {"a<b": [1, 2, float("nan"), 4, float("inf"), 0], "b": td.tensor([0.0, 4.0])}, "x & y")
    (a, b), words = lines_of(tmp_path / "a.svg")
    assert a == "M60.0 280.0L172.0 200.0M396.0 40.0M620.0 360.0" and b == "M60.0 360.0L172.0 40.0"
    assert "a<b" in words and "x & y" in words
    for bad, names in ({}, []), ({"a": []}, ["a"]), ({"a": [float("nan")]}, ["a"]):       # a frame and nothing in it
        td.svg.curves(tmp_path / "b.svg", bad)
        lines, words = lines_of(tmp_path / "b.svg")
        assert not any(lines) and [w for w in words if w == "a"] == names


def test_a_curve_may_be_one_point_or_level(tmp_path):
    td.svg.curves(tmp_path / "a.svg", {"a": [3]})
    td.svg.curves(tmp_path / "a.svg", {"a": [3, 3]})
    assert lines_of(tmp_path / "a.svg")[0] == ["M60.0 360.0L620.0 360.0"]


def test_histograms_count_every_value(tmp_path):
    td.svg.histogram(tmp_path / "h.svg", td.tensor([[0.0, 1, 1], [1, 9, 10]]), bins=5)
    tops = [float(re.search(r"L[\d.]+ ([\d.]+)", bar)[1]) for bar in lines_of(tmp_path / "h.svg")[0]]
    assert tops == [40, 360, 360, 360, 200]
    td.svg.histogram(tmp_path / "h.svg", [2, 2], bins=2)
    with pytest.raises(ValueError, match="2 of 3 values are not finite"):
        td.svg.histogram(tmp_path / "h.svg", [1, float("nan"), float("inf")])
    with pytest.raises(ValueError, match="there are 0 bins"):
        td.svg.histogram(tmp_path / "h.svg", [1], bins=0)


def test_tensorboard_reads_what_is_written(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from treadle.utils.tensorboard import SummaryWriter
    with SummaryWriter(tmp_path) as writer:
        for k in range(3):
            writer.add_scalar("loss", td.tensor(1.0 / (k + 1)), k)
        writer.add_histogram("w", td.tensor([0.0, 1, 1, 2]), 7, bins=2)
        writer.add_text("note", "hello", 1)
        writer.flush()
    seen = EventAccumulator(str(tmp_path))
    seen.Reload()
    assert [(e.step, round(e.value, 4)) for e in seen.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.3333)]
    h = seen.Histograms("w")[0]
    assert h.step == 7 and h.histogram_value.num == 4 and h.histogram_value.sum == 4
    assert list(h.histogram_value.bucket) == [1, 3] and list(h.histogram_value.bucket_limit) == [1, 2]
    assert seen.Tensors("note")[0].tensor_proto.string_val == [b"hello"]


def test_without_tensorboard_the_error_names_it():
    code = "import sys; sys.modules['tensorboard'] = None; import treadle.utils.tensorboard"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert "ImportError: treadle.utils.tensorboard needs the package tensorboard" in done.stderr


def warned(step):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with td.autograd.set_detect_anomaly(True):
            with pytest.raises(RuntimeError, match="nan"):
                step()
    return str(said[-1].message)


def test_the_first_result_that_is_not_finite_is_named():
    x = td.ones(3, requires_grad=True)

    def step():
        y = x / 0                               # here it begins
        ((y - y) * 2).sum().backward()          # here it is noticed
    said = warned(step)
    first, second = said.split("The first result that was not finite is that of 'DivBackward0'")
    assert "here it begins" in second and "in step" in second and "here it begins" not in second.split("line")[0]


def test_a_mask_is_no_anomaly_and_a_pass_forgets():
    x = td.ones(3, requires_grad=True)
    with td.autograd.set_detect_anomaly(True):
        (x.masked_fill(td.tensor([True, False, False]), float("-inf"))).exp().sum().backward()

        def step():
            (td.sqrt(x * 0) * 0).sum().backward()
        said = warned(step)
    assert "SqrtBackward0" not in said and "not finite" not in said and "td.sqrt" in said


def test_infinities_that_cancel_are_not_nan():
    x = td.tensor([1.0, -1.0], requires_grad=True)
    with td.autograd.set_detect_anomaly(True):
        y = x * 1
        y.backward(td.tensor([float("inf"), float("-inf")]))
    assert x.grad.isinf().all()


@pytest.mark.parametrize("kind, kept", [("GRU", 9), ("LSTM", 11)])
def test_a_step_of_training_holds_little_more_than_its_gates(kind, kept):
    net, x = getattr(td.nn, kind)(16, 64), td.randn(32, 32, 16)
    net(x)[0].sum().backward()
    with td.profiler.profile(profile_memory=True) as p:
        net(x)[0].square().sum().backward()
    assert p.memory_peak()[0] < kept * 32 * 32 * 64 * 4
