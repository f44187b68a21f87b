"""Two volumes: where a chunk stands in full, what the other volume says of it, and what prose takes from measurements."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

LOOM = Path(__file__).parents[2] / "loom"
sys.path.insert(0, str(LOOM))

STORY = r"""% volume: story
% outcome: weaves
\chapter{Cloth}
\label{ch:cloth}
\section{Beginning}
\label{sec:begin}
See \cref{sec:hidden} and \cref{sec:begin}.  It took \measured[2]{times}{slow over fast}{s} times as long, said \told{loom}{(\d+) rows}.
<<src/core/cloth.c>>=
<<weave one row>>
<<check the arguments>>
<<draw the shuttle>>
@ One row.
<<weave one row>>=
a = b;
@ % set: line
<<draw the shuttle>>=
draw();
@
% catalogue: begin
\section{Hidden}
\label{sec:hidden}
Words that only the catalogue has.
<<check the arguments>>=
if (!a)
    return;
@
% catalogue: end
\begin{exercise}{knot}
What must hold.
\end{exercise}
"""
ENTRY = r"""% volume: catalogue
% outcome: dyes
\chapter{Dyes}
\label{ch:dyes}
See \cref{ch:cloth}.
<<src/core/dye.c>>=
int dye;
@
"""


@pytest.fixture
def loom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"chapters/1-tensors/01-cloth.nw": STORY, "chapters/1-tensors/02-dyes.nw": ENTRY, "chapters/collectors": "",
                       "chapters/preface.tex": "Preface.", "chapters/setting": "line ^src/\nalways ^weave\n",
                       "figures/data/times.csv": "# how\nwho,s\nslow,9.0\nfast,4.0\n", "figures/transcripts/loom.txt": "$ loom\n12 rows\n",
                       "exercises/knot/card.nw": "\\exercise{knot}{A knot}{rating=10, importance=3, minutes=5, kind=stretch}\n\\reads{it}\nTie.\n"
                                                 "\\worked One.\n\\wrongrun None.\n\\hint a\n"}.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)

    def woven(volume):
        done = subprocess.run([sys.executable, LOOM / "weave", volume, volume, *sorted(Path("chapters").rglob("*.nw"))],
                              capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
        assert done.returncode == 0, done.stderr
        return {path.stem: path.read_text() for path in Path(volume).glob("*.tex")}
    return woven


def test_each_chunk_stands_in_full_in_one_volume_and_as_a_line_in_the_other(loom):
    story, catalogue = loom("story"), loom("catalogue")
    assert sorted(name for name in story if name[0] == "0") == ["01-cloth"]
    assert sorted(name for name in catalogue if name[0] == "0") == ["01-cloth", "02-dyes"]
    for text, full, line in ((story, ["weave one row"], ["check the arguments", "draw the shuttle", "src/core/cloth.c"]),
                             (catalogue, ["check the arguments", "draw the shuttle", "src/core/cloth.c"], ["weave one row"])):
        got = text["01-cloth"]
        for name in full:
            assert re.search(rf"\\chunkbegin\{{[^}}]*\}}\{{[^}}]*\}}\{{(\\code\{{)?{name}", got), name
        for name in line:
            assert re.search(rf"\\chunk(line|inrun)\{{[^}}]*\}}(\{{[^}}]*\}})?\{{(\\code\{{)?{name}", got), name
    assert "Words that only" not in story["01-cloth"] and "Words that only" in catalogue["01-cloth"]


def test_what_stands_in_the_other_volume_is_referred_to_there(loom):
    story, catalogue = loom("story")["01-cloth"], loom("catalogue")["02-dyes"]
    assert r"\otherref{catalogue.pdf}{section.1.2}{section~C1.2}" in story
    assert r"\hyperref[sec:begin]{section~1.1}" in story
    assert r"\otherref{book.pdf}{chapter.1}{chapter~1}" in catalogue


def test_figures_of_the_prose_are_those_that_were_measured(loom):
    assert "It took 2.2 times as long, said 12." in loom("story")["01-cloth"]
    path = Path("chapters/1-tensors/01-cloth.nw")
    path.write_text(path.read_text().replace("slow over fast", "slow over faster"))
    done = subprocess.run([sys.executable, LOOM / "weave", "story", "story", path], capture_output=True, text=True)
    assert done.returncode != 0 and "no row 'faster'" in done.stderr


def test_what_carries_the_book_may_not_be_a_line(loom):
    path = Path("chapters/1-tensors/01-cloth.nw")
    path.write_text(path.read_text().replace("@ One row.\n", "@ % set: line\n"))
    assert r"{weave one row}" in loom("story")["01-cloth"].replace(r"\chunkline", "")
    done = subprocess.run([sys.executable, LOOM / "lint", path], capture_output=True, text=True)
    assert "but 01-cloth sets <<weave one row>> as a line" in done.stdout


def test_every_chunk_of_the_library_stands_in_full_once():
    from book import Book, Chunk
    home = LOOM.parent
    import os
    old = os.getcwd()
    os.chdir(home)
    try:
        book = Book([str(p) for p in sorted(Path("chapters").rglob("*.nw")) + sorted(Path("exercises").glob("*/answer.nw"))])
    finally:
        os.chdir(old)
    stands = [i for volume, chapters in book.contents.items() for _, _, items in chapters
              for i in items if isinstance(i, Chunk) and i.home == volume]
    every = [c for items in book.chapters.values() for c in items if isinstance(c, Chunk)]
    assert len(every) > 3000 and len(stands) == len(set(stands)) and set(stands) == set(every)
