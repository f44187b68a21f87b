# needs: networks package
"""The program in C and the program in Python print the same losses."""
import gzip
import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import STAGE

ROOT = Path(__file__).resolve().parents[2]
GENERATED = next((d for d in (STAGE.parent / "generated", ROOT / "generated")
                  if d.is_dir()), None)
CC = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
pytestmark = pytest.mark.skipif(
    GENERATED is None or CC is None, reason="no sources or no compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The C program, linked with the library of the staged package."""
    folder = tmp_path_factory.mktemp("program")
    library = STAGE / "treadle"
    done = subprocess.run(
        [CC, "-O1", "-std=c11", f"-I{GENERATED}/include",
         str(GENERATED / "examples" / "classifier.c"), "-o",
         str(folder / "classifier"), f"-L{library}", "-ltreadle",
         f"-Wl,-rpath,{library}", "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(folder / "classifier")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A folder with 900 invented training images and 90 for the test."""
    folder, rng = tmp_path_factory.mktemp("images"), random.Random(0)
    for name, n in (("train", 900), ("t10k", 90)):
        labels = [rng.randrange(10) for _ in range(n)]
        pixels = b"".join(
            bytes(min(255, rng.randrange(60) + 190 * (i // 79 == label))
                  for i in range(784)) for label in labels)
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(
            b"\0\0\x08\3" + struct.pack(">3I", n, 28, 28) + pixels))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(
            b"\0\0\x08\1" + struct.pack(">I", n) + bytes(labels)))
    return folder


def losses(command, folder, out, **env):
    done = subprocess.run(
        [*command, "--losses", str(out), "--epochs", "2"]
        + (["--data", str(folder)] if folder else ["--steps", "300"]),
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(STAGE), **env})
    assert done.returncode == 0, done.stderr
    return out.read_text()


def both(program, folder, tmp_path):
    script = str(GENERATED / "examples" / "classifier.py")
    return (losses([program], folder, tmp_path / "c"),
            losses([sys.executable, script], folder, tmp_path / "py"))


def test_c_and_python_print_the_same_losses(program, images, tmp_path):
    c, python = both(program, images, tmp_path)
    assert c == python and len(c.splitlines()) == 30
    assert float(c.splitlines()[-1]) < 0.8 * float(c.splitlines()[0])


def test_losses_do_not_depend_on_the_number_of_threads(program, images,
                                                       tmp_path):
    script = [sys.executable, str(GENERATED / "examples" / "classifier.py")]
    one = losses(script, images, tmp_path / "1", TREADLE_THREADS="1")
    for n in ("2", "4"):
        assert losses(script, images, tmp_path / n, TREADLE_THREADS=n) == one


def test_on_real_images(program, tmp_path):
    import treadle as td
    try:
        td.datasets.FashionMNIST()
    except OSError as missing:
        pytest.skip(str(missing))
    c, python = both(program, None, tmp_path)
    assert c == python and len(c.splitlines()) == 300
    last = [float(x) for x in c.splitlines()[-50:]]
    assert sum(last) / 50 < 0.8
