"""The web of chunks in the noweb chapters: what tangle, lint and needs share."""
import ast
import os
import re
import subprocess
import sys
from pathlib import Path

NOWEB = Path(os.environ.get("NOWEB", "/usr/lib/noweb"))
EXPECTED_ROOTS = re.compile(r"""
    include/treadle/[a-z0-9_]+\.h | src/(core|ops|ops/kernels|grad|compiler|nn)/[a-z0-9_-]+\.(c|h|inc)
  | cuda/[a-z0-9_-]+\.(cu|cuh|cc|c|h|inc)
  | python/[a-z0-9_-]+\.(c|h|inc) | python/treadle/([a-z0-9_]+/)*([a-z0-9_]+\.pyi?|py\.typed)
  | examples/[a-z0-9_-]+\.(c|h|py|sh) | bench/[a-z0-9_-]+\.(c|h|inc|py)
  | tests/[a-z0-9_-]+\.(c|h|cu|inc|py)""", re.X)

MARKS = re.compile(r'#|/\*|\*/|"""')     # what find_uses looks for in a line of text


def slug_of(path):
    """chapters/1-tensors/05-tensors.nw -> tensors; exercises/tanh/answer.nw -> tanh"""
    if path.parent.parent.name == "exercises":
        return path.parent.name
    return re.sub(r"^\d+-", "", path.stem)


def number_of(path):
    """The chapter's place in the order of dependency, or None for what is not a chapter."""
    m = re.match(r"(\d+)-", path.name)
    return int(m.group(1)) if m else None


def head_of(path):
    """{"volume": "story", ...}: what the first lines of a chapter say of it, each `% word: value`."""
    with open(path, encoding="utf-8") as file:
        return dict(m.groups() for line in [file.readline() for _ in range(6)] if (m := re.match(r"% ([a-z]+): (.*)$", line)))


def prefix(files, last):
    """The chapters up to the one called `last`, with those that continue it, and the answers that they use."""
    chapters = sorted((p for p in files if number_of(p) is not None), key=number_of)
    slugs = [slug_of(p) for p in chapters]
    if last not in slugs:
        sys.exit(f"loom: no chapter is called {last!r}; there are {' '.join(slugs)}")
    end = slugs.index(last) + 1
    while end < len(chapters) and "continues" in head_of(chapters[end]):
        end += 1
    kept = chapters[:end]
    used = set(re.findall(r"(?m)^\s*<<exercise ([\w-]+)>>$", "\n".join(p.read_text(encoding="utf-8") for p in kept)))
    return [p for p in files if p in kept or p.parent.parent.name == "exercises" and p.parent.name in used]


class Definition:
    """One <<name>>= chunk: where it stands and the lines it holds."""

    def __init__(self, name, path, line, at):
        self.name, self.path, self.line, self.at = name, path, line, at
        self.slug = slug_of(Path(path))
        self.lines = [[]]               # each a list of ("text"|"use", string, line)
        self.found = None

    def where(self):
        return f"{self.path}:{self.line}"

    def uses(self):
        """[(name, line number, alone on its line, inside a #define)], found once."""
        if self.found is None:
            self.found = list(self.find_uses())
        return self.found

    def find_uses(self):
        """Inside a comment or a docstring, where a comment would end it or show, a use does not count as alone."""
        define, quote = False, None
        for tokens in self.lines:
            if not define and len(tokens) == 1 and tokens[0][0] == "text" and not MARKS.search(tokens[0][1]):
                continue
            text = "".join(s for kind, s, _ in tokens if kind == "text")
            define = define or bool(re.match(r"\s*#\s*define\b", text))
            for kind, s, line in tokens:
                if kind == "use":
                    yield s, line, not text.strip() and not quote, define
                for mark in re.findall(r'/\*|\*/|"""' if kind == "text" else "$^", s):
                    quote = mark if not quote else quote if mark == "/*" else None
            define = define and text.rstrip().endswith("\\")


class Web:
    """All chunks of some noweb files, as markup's stream and by name."""

    def __init__(self, paths, collectors):
        self.paths, self.collectors = paths, collectors
        self.stream = run([NOWEB / "markup", *paths]).split("\n")
        self.chunks = {}                # name -> [Definition]
        self.errors = []                # (message, name of the chunk at fault)
        self.read()
        self.used_by = {}               # name -> [(user, line, alone, define)]
        for name, definitions in self.chunks.items():
            for d in definitions:
                for used, line, alone, define in d.uses():
                    self.used_by.setdefault(used, []).append((d, line, alone, define))
        self.roots = [n for n in self.chunks if n not in self.used_by
                      and not n.startswith("aside:")]

    def read(self):
        path, line, current = "", 1, None
        for at, item in enumerate(self.stream):
            key, _, rest = item.partition(" ")
            if key == "@file":
                path, line = rest, 1
            elif key == "@defn":
                current = Definition(rest, path, line, at)
                self.chunks.setdefault(rest, []).append(current)
            elif key == "@end" and rest.startswith("code"):
                current = None
            elif key in ("@text", "@use") and current:
                current.lines[-1].append((key[1:], rest, line))
            if item in ("@nl", "@index nl"):
                line += 1
                if current and item == "@nl":
                    current.lines.append([])
        for definitions in self.chunks.values():
            for d in definitions:
                d.lines = d.lines[1:]   # what followed <<name>>= on its line

    def needs(self, root):
        return needs_of("".join(s for _, s, _ in self.chunks[root][0].lines[0]))

    def reachable(self, root):
        """Names of all chunks that make up `root`."""
        seen, todo = set(), [root]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += [u for d in self.chunks.get(name, []) for u, *_ in d.uses()]
        return seen

    def check(self):
        """Fill `errors` with everything that is wrong with the web."""
        for name, definitions in self.chunks.items():
            slugs = list(dict.fromkeys(d.slug for d in definitions))
            first = definitions[0]
            if len(slugs) > 1 and name not in self.collectors:
                self.error(definitions[-1].where(), name, f"<<{name}>> is defined in {', '.join(slugs)} "
                           "but is not in chapters/collectors")
            if len({d.path for d in definitions}) > 1 and name.startswith("exercise "):
                self.error(definitions[-1].where(), name, f"<<{name}>> is defined in two files, the first at {first.where()}")
        for name, uses in self.used_by.items():
            for user, line, _, define in uses:
                if user.name.startswith("aside:"):
                    continue
                if name not in self.chunks and name not in self.collectors:
                    self.error(f"{user.path}:{line}", user.name, f"<<{name}>> is used and never defined")
                if define:
                    self.error(f"{user.path}:{line}", user.name, f"<<{name}>> is used inside a #define")
        for name in self.roots:
            where = self.chunks[name][0].where()
            if not EXPECTED_ROOTS.fullmatch(name) and name not in self.collectors:
                self.error(where, name, f"<<{name}>> is never used" if " " in name or
                           "/" not in name else f"<<{name}>> is not a path that the loom expects")
        for name in set(self.chunks) - set(self.roots):
            if EXPECTED_ROOTS.fullmatch(name):
                self.error(self.chunks[name][0].where(), name, f"<<{name}>> is a file and is also used in a chunk")

    def error(self, where, name, text):
        self.errors.append((f"{where}: {text}", name))


OPERATOR_TABLES = """
#include "core/registry.h"
#define OP(name, signature, kernel, sentence) SIGNATURE(name, #name signature) SENTENCE(name, sentence)
#include "core/registry.inc"
#include "grad/rules.inc"
#define UNARY_RULE(name, ...) RULE(name, 0)
#define BINARY_RULE(name, ...) RULE(name, 0)
#include "ops/elementwise.inc"
#include "samples.inc"
"""


def operator_tables():
    """{table: {operator: its text}} of the tangled rows, sentences, rules and samples; {} where there are none."""
    folder = os.environ.get("GENERATED", "generated")
    tables = {table: {} for table in ("SIGNATURE", "SENTENCE", "RULE", "NO_RULE", "COMPOSITE", "SAMPLE")}
    if not Path(folder, "tests/samples.inc").exists():
        return tables
    listed = run([*os.environ.get("CC", "cc").split(), "-E", "-P", f"-I{folder}/src", f"-I{folder}/include", f"-I{folder}/tests", "-"], OPERATOR_TABLES)
    for table, name, text in re.findall(rf'\b({"|".join(tables)})(?:_BY)?\((\w+)\b(?:,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\))?', listed):
        tables[table][name] = ast.literal_eval(f"({text})") if text else ""
    return tables


def names_of_rows(text):
    """The operators that rows of the text begin with: ROW(name, ... or, for a row that makes several, ROW(name, name, ..."""
    return [name for names in re.findall(r"(?m)^[A-Z]\w*\(((?:\w+, *)+)", text) for name in re.findall(r"\w+", names)]


def needs_of(line):
    """The slugs of a first line such as /* needs: networks data */."""
    m = re.match(r"\s*(?:/\*|#|//)\s*needs:([\w\s.-]*)", line)
    return m.group(1).replace("*/", "").split() if m else []


def read_collectors(files):
    path = next((up / "collectors" for up in files[0].parents if (up / "collectors").exists()), None)
    if not path:
        return set()
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line.strip().removeprefix("<<").removesuffix(">>") for line in lines
            if line.strip() and not line.startswith("#")}


def run(command, text=None, cwd=None):
    done = subprocess.run([str(c) for c in command], input=text, cwd=cwd, text=True, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode or done.stderr:
        sys.exit(f"loom: {Path(command[0]).name} failed ({done.returncode}):\n{done.stderr}")
    return done.stdout
