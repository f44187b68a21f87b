"""The loom: tangling, its rules, its comments, its line numbers."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LOOM = Path(__file__).resolve().parents[2] / "loom"

CHAPTER = r"""
\chapter{Cloth}
Prose about a file.
<<src/core/cloth.c>>=
#include <stdio.h>
<<function [[weave]]>>
int main(void)
{
    <<weave one row of cloth>>
    return <<status>>;
}
@ And its parts.
<<function [[weave]]>>=
static void weave(int *row, int n)
{
    row[n] = 1;
}
@
<<weave one row of cloth>>=
int row[3];
if (row)
    <<let the shuttle fly>>
<<let the shuttle fly>>=
weave(row, 3);
@
<<status>>=
row[3] == 5
@
"""


@pytest.fixture
def web(tmp_path):
    """A repository with one chapter; returns a function that tangles it."""
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/02-cloth.nw").write_text(CHAPTER)
    (tmp_path / "chapters/collectors").write_text("pattern rows\n")

    def tangle(*options, **chapters):
        for name, text in chapters.items():
            (tmp_path / f"chapters/{name.lstrip('_').replace('_', '-')}.nw").write_text(text)
        files = sorted(p.relative_to(tmp_path).as_posix() for p in (tmp_path / "chapters").glob("*.nw"))
        return subprocess.run([sys.executable, LOOM / "tangle", *options, *files], cwd=tmp_path,
                              capture_output=True, text=True)
    tangle.root = tmp_path
    return tangle


def tree(root):
    return {p.relative_to(root): (p.read_bytes(), p.stat().st_mtime_ns)
            for p in sorted(root.rglob("*")) if p.is_file()}


def test_tangling_twice_changes_nothing(web):
    assert web().returncode == 0
    before = tree(web.root / "generated")
    assert web().returncode == 0
    assert tree(web.root / "generated") == before


def test_a_file_names_its_chapter_and_its_chunks(web):
    web()
    text = (web.root / "generated/src/core/cloth.c").read_text()
    assert text.startswith("/* SPDX-License-Identifier: MIT */\n")
    assert '"cloth"' in text.splitlines()[1]
    assert "    /* cloth: weave one row of cloth */\n    int row[3];\n" in text
    assert "/* cloth: function weave */" in text
    assert "return row[3] == 5;" in text                # a use inside a line gets no comment


def test_no_comment_stands_in_a_comment_or_a_macro(web):
    assert web(_03_more="""
<<src/core/more.c>>=
/* An example:
       <<an example of more>>
*/
int more;
<<an example of more>>=
more = 1;
@
""").returncode == 0
    text = (web.root / "generated/src/core/more.c").read_text()
    assert "       more = 1;\n*/" in text and text.count("/*") == 3


def test_a_file_that_no_chunk_makes_is_removed(web):
    web(_03_more="<<src/core/more.c>>=\nint more;\n@\n")
    assert (web.root / "generated/src/core/more.c").exists()
    web(_03_more="Nothing.\n")
    assert not (web.root / "generated/src/core/more.c").exists()


PLANTED = {
    "undefined": ("<<src/x.c>>=\n<<no such chunk>>\n@\n", "used and never defined"),
    "unused": ("<<let the shutle fly>>=\nweave();\n@\n", "never used"),
    "two chapters": ("<<let the shuttle fly>>=\nweave(row, 4);\n@\n", "is not in chapters/collectors"),
    "odd root": ("<<srv/x.c>>=\nint x;\n@\n", "not a path that the loom expects"),
    "in a macro": ("<<src/x.c>>=\n#define X \\\n    <<the body of X>> \\\n    1\n@ a\n<<the body of X>>=\n2\n@\n",
                   "inside a #define"),
    "lost launch": ("<<src/x.c>>=\nkernel<<<grid, block>>>(x);\n@\n", "used and never defined"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_error_stops_the_loom(web, planted):
    web()
    before = tree(web.root / "generated")
    text, message = PLANTED[planted]
    done = web(_03_more=text)
    assert done.returncode != 0
    assert message in done.stderr and "chapters/0" in done.stderr
    assert tree(web.root / "generated") == before


def test_a_hole_grows_in_one_file_and_not_in_two(web):
    use, hole = "<<src/core/x.c>>=\n<<exercise knot>>\n@ a\n", "<<exercise knot>>=\n{}\n@ b\n"
    assert web(_03_more=use + hole.format("int a;") + hole.format("int b;")).returncode == 0
    assert re.search("int a;\nint b;", (web.root / "generated/src/core/x.c").read_text())
    done = web(_03_more=use + hole.format("int a;"), _04_again=hole.format("int b;"))
    assert done.returncode != 0 and "is defined in two files" in done.stderr


def test_asides_are_shown_and_not_tangled(web):
    assert web(_03_more="<<aside: as it might be>>=\n<<whatever>>\n@\n").returncode == 0


def test_collectors_may_be_empty_or_grow_in_many_chapters(web):
    use = "<<src/core/pattern.inc>>=\n<<pattern rows>>\nEND\n@\n"
    assert web(_03_more=use).returncode == 0
    assert "END" in (web.root / "generated/src/core/pattern.inc").read_text()
    row = "<<pattern rows>>=\nROW({})\n@\n"
    assert web(_03_more=use + row.format(3), _04_again=row.format(4)).returncode == 0
    text = (web.root / "generated/src/core/pattern.inc").read_text()
    assert re.search(r"/\* more: pattern rows \*/\nROW\(3\)\n/\* again: pattern rows \*/\nROW\(4\)\nEND", text)


def test_a_prefix_leaves_out_later_chapters_and_what_waits_for_them(web):
    web(_04_late="<<src/core/late.c>>=\nint late;\n@\n",
        _01_early="<<examples/early.c>>=\n/* needs: late */\nint early;\n@\n")
    assert (web.root / "generated/examples/early.c").exists()
    assert web("--upto", "cloth", "--out", "prefix").returncode == 0
    assert [p.name for p in (web.root / "prefix").rglob("*.c")] == ["cloth.c"]
    web(_03_more="% continues: cloth\nThe rest of the cloth.\n<<src/core/more.c>>=\nint more;\n@\n")
    assert web("--upto", "cloth", "--out", "prefix").returncode == 0
    assert sorted(p.name for p in (web.root / "prefix").rglob("*.c")) == ["cloth.c", "more.c"]
    done = web("--upto", "linen", "--out", "prefix")
    assert done.returncode == 1 and "no chapter is called 'linen'" in done.stderr


def test_needs_selects_tests_of_the_prefix(web):
    (web.root / "a.c").write_text("/* needs: cloth */\n")
    (web.root / "b.c").write_text("/* needs: cloth late */\n")
    done = subprocess.run([sys.executable, LOOM / "needs", "chapters/02-cloth.nw", "--", "a.c", "b.c"],
                          cwd=web.root, capture_output=True, text=True)
    assert done.stdout.split() == ["a.c"]


def debug_build(web):
    assert web("--lines", "--out", "build/debug").returncode == 0
    subprocess.run(["gcc", "-g", "-O0", "-fsanitize=address,undefined", "build/debug/src/core/cloth.c", "-o", "cloth"],
                   cwd=web.root, check=True, capture_output=True)


def line_of(text):
    return 1 + CHAPTER[:CHAPTER.index(text)].count("\n")


def test_a_sanitizer_report_names_the_line_of_the_chapter(web):
    debug_build(web)
    done = subprocess.run(["./cloth"], cwd=web.root, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"chapters/02-cloth.nw:{line_of('row[n] = 1')}" in done.stderr
    assert f"chapters/02-cloth.nw:{line_of('weave(row, 3)')}" in done.stderr


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
def test_gdb_stops_at_the_line_of_the_chapter(web):
    debug_build(web)
    done = subprocess.run(["gdb", "-batch", "-ex", "set debuginfod enabled off", "-ex", "info line weave", "-ex", "list weave", "./cloth"],
                          cwd=web.root, capture_output=True, text=True)
    assert re.search(rf'Line {line_of("static void weave") }|Line {line_of("static void weave") + 1}', done.stdout)
    assert "02-cloth.nw" in done.stdout
    assert "@ And its parts." in done.stdout          # the prose around it


def test_numbers_are_compared_within_a_tolerance(tmp_path):
    def compare(a, b, within="0"):
        (tmp_path / "a").write_text(a)
        (tmp_path / "b").write_text(b)
        return subprocess.run([LOOM / "compare", "--within", within, "a", "b"], cwd=tmp_path, capture_output=True).returncode
    assert compare("loss 0.50\n", "loss 0.50\n") == 0
    assert compare("loss 0.50\n", "loss 0.51\n") == 1
    assert compare("loss 0.50\n", "loss 0.51\n", "0.03") == 0
    assert compare("loss 0.50\n", "loss 0.60\n", "0.03") == 1
    assert compare("loss 0.50\n", "cost 0.50\n", "any") == 1
    assert compare("loss 0.50\n", "loss 0.50\nmore\n", "any") == 1
    assert compare("took 12 s\n", "took 15 s\n", "any") == 0


def test_lint_finds_what_it_promises(web):
    (web.root / "tests/c").mkdir(parents=True)
    (web.root / "tests/c/test_x.c").write_text("int x;\n")
    (web.root / "chapters/05-bad.nw").write_text(
        r"\cref{sec:nowhere} and \textcite{nobody1999nothing}." "\n<<src/core/bad.c>>=\n" + "x" * 73 + "\n"
        + "int x;\n" * 41 + "@ Say EX=" "4.1 in [[first-" "rules.c]].\n<<src/core/worse.c>>=\nint a;\nint b;\nint c;\nint d; /* TO" "DO */\n@\n")
    done = subprocess.run([sys.executable, LOOM / "lint", "chapters/02-cloth.nw", "chapters/05-bad.nw"],
                          cwd=web.root, capture_output=True, text=True)
    for expected in ("no \\label names", "not in book.bib", "73 columns", "has 42 lines", "no prose between",
                     "words of prose a printed line of code", "% volume: story", "unfinished", "known by its slug: EX=" "4.1", "no file of this name: first-" "rules.c", "no `needs:`"):
        assert expected in done.stdout, expected
    assert done.returncode == 1


OPERATORS = r"""
The files of a registry, and an operator of our own.
<<src/core/registry.h>>=
int no_row;
@ The rows of each file follow one after another.
<<src/core/registry.inc>>=
OP(spin, "(tensor input) -> tensor", spin_kernel,
   "Turned about (once); \"so\" to speak.")
<<src/grad/rules.inc>>=
RULE(spin, spin_rule, 0)
<<src/ops/elementwise.inc>>=
UNARY_RULE(card, g * (1 - y))
<<tests/samples.inc>>=
#define OF(size) "[" size "]"
SAMPLE(spin, CALL, .call = OF("2,3") " dim=1", .gradient = { 1, 2 })
@
"""
RULE = r"RULE\(spin, spin_rule, 0\)"
LACKS = {
    "nothing": (RULE, "COMPOSITE(spin)", None),
    "rule, which is said": (RULE, "NO_RULE(spin)", None),
    "sentence": (r'"Turned .*"', '""', "has no sentence (behind the kernel in its row)"),
    "rule": (RULE, "", "has no rule (RULE"),
    "sample": (r"SAMPLE\(spin, .*", "", "has no sample (SAMPLE)"),
    "reference": (r"\n(\w+\(spin)", r"\n \1", "has no row in the reference"),
}


@pytest.mark.parametrize("lacks", LACKS)
def test_lint_names_an_operator_and_what_it_lacks(web, lacks):
    pattern, new, message = LACKS[lacks]
    web(_03_spin=re.sub(pattern, new, OPERATORS))
    done = subprocess.run([sys.executable, LOOM / "lint", "chapters/02-cloth.nw", "chapters/03-spin.nw"],
                          cwd=web.root, capture_output=True, text=True)
    said = [line for line in done.stdout.splitlines() if line.startswith("operator")]
    assert len(said) == (message is not None), done.stdout + done.stderr
    if message:
        assert f"operator spin: {message}" in said[0] and done.returncode == 1
