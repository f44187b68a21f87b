"""The two volumes: which chunk stands where in full, what number it has there, what a reader of the story sees.

Every chunk of the library is set in full in exactly one volume, `story` or
`catalogue`.  A catalogue chapter stands in the catalogue as it is.  In a story
chapter each chunk has a setting, "full" or "line", which speaks of the story:
a line gives its name, length and file, and it stands in full in the
catalogue's chapter of the same file.  The setting is, the first that says one,

  1. a line `% set: full` or `% set: line` right above the chunk,
  2. "line" between the lines `% catalogue: begin` and `% catalogue: end`,
     where prose and headings go to the catalogue, too,
  3. the first pattern of chapters/setting that matches the chunk's name,
  4. "full".

Patterns that begin with `always` come before all of these: what they name
carries the book, and lint says so if a chapter sets it otherwise.
"""
import collections
import os
import re
import subprocess
import tempfile
from pathlib import Path

from web import head_of

MARKUP = "/usr/lib/noweb/markup"
PARTS = {"1-tensors": "The warp: tensors", "2-gradients": "The weft: gradients", "3-networks": "Patterns: networks",
         "4-speed": "The loom at speed", "5-world": "In the world"}
VOLUMES = {"story": "book.pdf", "catalogue": "catalogue.pdf"}
HEADING = re.compile(r"\\(chapter|section)\{((?:[^{}]|\{[^{}]*\})*)\}|\\label\{([^}]+)\}|\\figure\{([\w-]+)\}|\\begin\{exercise\}\{([\w-]+)\}|\\begin\{(figure|table)\}")
DIRECTIVE = re.compile(r"% (set|catalogue): (\w+)\s*$")


class Chunk:
    """One definition of a code chunk: its name, place and tokens line by line."""

    def __init__(self, chapter, number):
        self.name, self.chapter, self.label = None, chapter, f"chunk:{chapter}:{number}"
        self.lines, self.said, self.hidden, self.setting = [[]], None, False, "full"
        self.numbers = {}               # volume -> as printed there, such as 5.3 d
        self.home = "story"             # where it stands in full

    def text(self):
        return "\n".join("".join(t if k == "text" else ";" for k, t in line) for line in self.lines)

    def length(self):
        return sum(1 for line in self.lines if any(t.strip() for _, t in line))


class Docs:
    """Prose: a list of ("text" | "quote", string)."""

    def __init__(self, hidden):
        self.pieces, self.hidden = [], hidden

    def text(self):
        return "".join(t for _, t in self.pieces)


def slug_of(path):
    """05-tensors of a chapter, answer-broadcast of an answer, work-broadcast of a student's file."""
    folder, name = os.path.split(path)
    if os.path.basename(os.path.dirname(folder)) == "exercises":
        return "answer-" + os.path.basename(folder)
    return name[:-3] if re.match(r"\d+-", name) else "work-" + name[:-3]


def read_markup(paths):
    """Yield (chapter slug, items) of each file."""
    stream = subprocess.run([MARKUP, "-t", *map(str, paths)], check=True, capture_output=True, text=True).stdout
    chapter, items, item, number, kind, said, hidden = None, [], None, 0, "text", None, False
    for line in stream.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "@file":
            if chapter:
                yield chapter, items
            chapter, items, number, said, hidden = slug_of(rest), [], 0, None, False
        elif word == "@begin":
            item = Docs(hidden) if rest.startswith("docs") else Chunk(chapter, number)
            if isinstance(item, Chunk):
                item.said, item.hidden, said, number = said, hidden, None, number + 1
        elif word == "@end":
            if isinstance(item, Chunk):
                while item.lines and not any(t.strip() for _, t in item.lines[-1]):
                    item.lines.pop()
                while item.lines and not any(t.strip() for _, t in item.lines[0]):
                    item.lines.pop(0)
            items.append(item)
        elif word == "@defn":
            item.name = rest
        elif word in ("@quote", "@endquote"):
            kind = "quote" if word == "@quote" else "text"
        elif word in ("@text", "@use", "@nl") and isinstance(item, Chunk):
            if word == "@nl":
                item.lines.append([])
            else:
                item.lines[-1].append((word[1:], rest))
        elif word == "@text" and (m := DIRECTIVE.match(rest)):
            if m[1] == "set":
                said = m[2]
            else:
                hidden = m[2] == "begin"
                items.append(item)
                item = Docs(hidden)
        elif word in ("@text", "@nl"):
            item.pieces.append((kind, "\n" if word == "@nl" else rest))
    yield chapter, items


def read_settings(path=Path("chapters/setting")):
    """[(verb, pattern)]: always, full or line, and what the chunk's name has to match."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [(verb, re.compile(pattern)) for verb, pattern in
            (line.split(None, 1) for line in lines if line.strip() and not line.startswith("#"))]


def letters(n):
    return letters((n - 1) // 26) + chr(ord("a") + (n - 1) % 26) if n else ""


class Book:
    """All chapters: who defines, continues and uses each chunk, and where it stands."""

    def __init__(self, paths):
        with open("chapters/collectors", encoding="utf-8") as file:
            self.collectors = set(file.read().splitlines())
        files = list(read_markup(paths))
        self.chapters = {slug: items for slug, items in files if not slug.startswith(("answer-", "work-"))}
        self.answers = {slug[7:]: items for slug, items in files if slug.startswith("answer-")}
        self.work = {slug[5:]: items for slug, items in files if slug.startswith("work-")}
        self.folder = {slug_of(str(p)): Path(p).parent.name for p in paths}
        self.volume = {slug_of(str(p)): head_of(p).get("volume", "story") for p in paths}
        self.chunks = [i for _, items in files for i in items if isinstance(i, Chunk)]
        self.definitions, self.users = collections.defaultdict(list), collections.defaultdict(list)
        for chunk in self.chunks:
            self.definitions[chunk.name].append(chunk)
            for name in dict.fromkeys(t for line in chunk.lines for kind, t in line if kind == "use"):
                self.users[name].append(chunk)
        self.settings = read_settings()
        for chunk in self.chunks:
            self.set(chunk)
        self.labels = {}                # label -> (volume, what it is, its number there, destination)
        self.contents = {volume: list(self.number(volume)) for volume in VOLUMES}

    # --- where a chunk stands -----------------------------------------------------

    def set(self, chunk):
        if self.volume.get(chunk.chapter) == "catalogue":
            chunk.home = "catalogue"
        elif chunk.chapter.startswith("answer-"):
            chunk.home = self.answered_in(chunk.chapter[7:])
            chunk.numbers[chunk.home] = chunk.chapter[7:]
        elif chunk.chapter.startswith("work-"):
            chunk.numbers["story"] = chunk.chapter[5:]
        elif not chunk.name.startswith("aside:"):
            patterns = [verb for verb, pattern in self.settings if pattern.search(chunk.name)]
            ruled = next((verb for verb in patterns if verb != "always"), "full")
            chunk.setting = "full" if "always" in patterns else chunk.said or ("line" if chunk.hidden else ruled)
            chunk.home = "story" if chunk.setting == "full" else "catalogue"

    @staticmethod
    def answered_in(slug):
        """The story ends with the answers that a reader needs most."""
        text = Path(f"exercises/{slug}/card.nw").read_text(encoding="utf-8")
        return "story" if re.search(r"\\exercise\{.*importance=5\b.*kind=core\b", text) else "catalogue"

    def disobeyed(self):
        """(chunk, its pattern) of what carries the book and is set otherwise, (None, pattern) of what names nothing."""
        for verb, pattern in self.settings:
            named = [c for c in self.chunks if pattern.search(c.name)]
            if verb == "always" and not named:
                yield None, pattern.pattern
            yield from ((c, pattern.pattern) for c in named
                        if verb == "always" and (c.hidden or c.said == "line" or c.home == "catalogue"))

    def printed(self, slug, volume):
        """What a volume prints of a chapter: prose, chunks and, as text, headings made for the catalogue."""
        items = self.chapters[slug]
        if self.volume[slug] != "story":
            return items if volume == "catalogue" else []
        if volume == "story":
            return [i for i in items if isinstance(i, Chunk) or not i.hidden]
        if not any(i.hidden or isinstance(i, Chunk) and i.home == "catalogue" for i in items):
            return []
        out, group, wanted = [], [], False
        for item in [*items, None]:     # a group is a section; it is printed if it has something that stands here
            headings = [m for m in HEADING.finditer(item.text()) if m[1]] if isinstance(item, Docs) and not item.hidden else []
            if item is None or headings:
                out += group if wanted else []
                if headings:
                    out += [rf"\chapter{{{m[2]}}}" for m in headings if m[1] == "chapter"]
                    group, wanted = [rf"\section{{{m[2]}}}" for m in headings[-1:] if m[1] == "section"], False
            elif isinstance(item, Docs) and item.hidden or isinstance(item, Chunk) and not item.name.startswith("aside:"):
                group.append(item)
                wanted = wanted or (item.home == "catalogue" if isinstance(item, Chunk) else bool(item.text().strip()))
        return out

    def number(self, volume):
        """Yield (slug, chapter's number, items); numbers chunks, sections and labels on the way."""
        count, appendix = 0, False
        for slug in self.chapters:
            items = self.printed(slug, volume)
            if not items:
                continue
            if self.folder[slug] not in PARTS and not appendix and volume == "story":
                count, appendix = 0, True
            count += 1
            sign = chr(ord("A") + count - 1) if appendix else f"C{count}" if volume == "catalogue" else str(count)
            place = sign[1:] if volume == "catalogue" else sign
            self.number_items(volume, items, sign, f"{'appendix' if appendix else 'chapter'}.{place}", place)
            yield slug, count, items

    def number_items(self, volume, items, sign, destination, place):
        section, chunks, number, word, floats = 0, 0, sign, "chapter", {"figure": 0, "table": 0}
        for item in items:
            if isinstance(item, Chunk):
                chunks += 1
                item.numbers[volume] = f"{number}\\,{letters(chunks)}"
                continue
            for m in HEADING.finditer(item if isinstance(item, str) else item.text()):
                if m[1] == "section":
                    section, chunks, word = section + 1, 0, "section"
                    number, destination = f"{sign}.{section}", f"section.{place}.{section}"
                elif m[4] or m[6]:
                    kind = "figure" if m[4] else m[6]
                    floats[kind] += 1
                    if m[4]:
                        self.labels[f"fig:{m[4]}"] = (volume, "figure", f"{sign}.{floats['figure']}", destination)
                elif m[5]:
                    self.labels[f"ex:{m[5]}"] = (volume, f"the exercise in {word}", number, destination)
                elif m[3]:
                    kind = {"ch:": "chapter", "sec:": "section", "fig:": "figure", "tab:": "table"}.get(re.match(r"\w*:?", m[3])[0])
                    if kind in floats:
                        self.labels[m[3]] = (volume, kind, f"{sign}.{floats[kind]}", destination)
                    else:               # an equation, say, has a number that only LaTeX knows
                        known = kind or f"the {m[3].split(':')[0]} in {word}"
                        self.labels[m[3]] = (volume, "appendix" if word == known == "chapter" and sign.isalpha() else known, number, destination)

    # --- names ----------------------------------------------------------------------

    def root(self, name, seen=()):
        """(file, function) in which the chunk ends up, or (None, None)."""
        if not self.users[name]:
            return (name if "/" in name or "." in name else None), None
        if name in seen:
            return None, None
        file, function = self.root(self.users[name][0].name, seen + (name,))
        match = re.match(r"(?:function|kernel|struct) \[\[(.*?)\]\]$", name)
        return file, match.group(1) if match else function

    def language(self, chunk):
        file = self.root(chunk.name)[0] or ""
        if file.endswith((".py", ".pyi")) or "Python" in chunk.name:
            return "python"
        if file.endswith((".c", ".h", ".cu", ".cuh", ".cc", ".inc")) or not file:
            return "c"
        return "text"

    def identifiers(self):
        """Identifier -> chunk that defines it, as ctags reads each chunk."""
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            for n, chunk in enumerate(self.chunks):
                if not chunk.name.startswith("aside:"):
                    suffix = {"python": "py", "c": "c", "text": "txt"}[self.language(chunk)]
                    Path(folder, f"{n}.{suffix}").write_text(chunk.text() + "\n")
            tags = subprocess.run(["ctags", "-R", "-f", "-", "--languages=C,Python", "--sort=no", "--kinds-C=fstugde",
                                   "--kinds-Python=cf", "--fields=k", "."], cwd=folder, check=True, capture_output=True, text=True).stdout
        for line in tags.splitlines():
            name, path = line.split("\t")[:2]
            chunk = self.chunks[int(re.search(r"(\d+)\.", path).group(1))]
            if len(name) > 3 and not name.startswith("__anon"):
                found.setdefault(name, chunk)
        return found


def words(text):
    """Words of prose in a piece of LaTeX, as the gates count them."""
    text = re.sub(r"(?m)(?<!\\)%.*$", "", text)
    text = re.sub(r"\\(begin|end)\{[^}]*\}|\\[A-Za-z@]+\*?(\[[^\]]*\])?", " ", text)
    return len(re.findall(r"[A-Za-z][A-Za-z'-]+", text))


def pictures(text):
    """Figures, plots, transcripts and tables in a piece of LaTeX."""
    return len(re.findall(r"\\figure\{|\\transcript\{|\\begin\{(?:figure|table|tikzpicture)\}", text))
