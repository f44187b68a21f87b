# needs: cuda package
# SPDX-License-Identifier: MIT
"""Planted bugs, each caught with its line; their cures are silent."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ["TREADLE_BUILD"])
SOURCE = Path(__file__).parents[2] / "generated" / "tests" / "planted.cu"
PROGRAM = """
import ctypes, json, os, sys
lib = ctypes.CDLL(sys.argv[1])
lib.planted.restype = ctypes.c_char_p
room = (ctypes.c_float * 64)()
answers = []
for seed in range(21):
    if seed > 0:
        os.environ["TREADLE_CUDA_SEED"] = str(seed)
    answer = []
    for cured in (0, 1):
        for which in range(7):
            text = lib.planted(which, cured, room).decode()
            answer.append([text, list(room)])
    answers.append([answer[:7], answer[7:]])
print(json.dumps(answers))
"""


def line_of(text):
    """What stands in the source at the first line a report names."""
    number = int(re.search(r"planted\.cu:(\d+)", text).group(1))
    return SOURCE.read_text().split("\n")[number - 1].strip()


BUGS = [
    ("smooth", "data race on tile", "tile[t"),
    ("sum_part", "divergent barrier: 44 of 64", "__syncthreads();"),
    ("differences", "read outside of shared array tile: byte 256 of 256", "tile[t + 1]"),
    ("differences_padded", "uninitialised read of shared array tile at byte 256", "tile[t + 1]"),
    ("sum_all", "data race on an allocation", "out[0] += in[i]"),
    ("twice", "read outside of an allocation: byte 256 of 256", "2 * in[i]"),
    ("histogram", "data race on counts", "counts["),
]


@pytest.fixture(scope="module")
def by_seed():
    """For no seed and seeds 1 to 20: (report, result) of bugs and cures."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(BUILD / "libplanted.so")],
        capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answers(by_seed):
    return by_seed[0]


@pytest.mark.parametrize("which", range(7))
def test_a_planted_bug_is_caught_and_its_line_named(answers, which):
    kernel, words, code = BUGS[which]
    text = answers[0][which][0]
    assert text.startswith(kernel) and words in text
    assert code in line_of(text)


@pytest.mark.parametrize("which", range(7))
def test_the_cure_is_silent(answers, which):
    assert answers[1][which][0] == ""


def test_cured_kernels_do_not_depend_on_the_order_of_threads(by_seed):
    expected = [values for _, values in by_seed[0][1]]
    for bugs, cured in by_seed[1:]:
        assert [values for _, values in cured] == expected
        assert all(text == "" for text, _ in cured)
        for (text, _), (kernel, words, _) in zip(bugs, BUGS):
            assert text.startswith(kernel)
            early = "uninitialised read of shared array counts"   # the count came first
            assert (words.split(":")[0].split(" at ")[0] in text
                    or (kernel == "histogram" and early in text))


def test_sectors_and_banks_are_counted():
    program = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).transposed()"
    done = subprocess.run(
        [sys.executable, "-c", program, str(BUILD / "libplanted.so")], check=True,
        capture_output=True, text=True, env={**os.environ, "TREADLE_CUDA_REPORT": "1"})
    rows = [line.split() for line in done.stderr.splitlines()[1:]]
    assert rows == [["transpose", "18.0", "0.0"],
                    ["transpose_by<0>", "4.0", "16.5"],
                    ["transpose_by<1>", "4.0", "1.0"]]


@pytest.mark.parametrize("seed", [None, "1", "2"])
def test_a_matrix_of_any_size_is_transposed_by_tiles(seed):
    program = ("import ctypes, sys\n"
               "lib = ctypes.CDLL(sys.argv[1])\n"
               "lib.transposed_by_tiles.restype = ctypes.c_char_p\n"
               "for rows, columns in ((1, 1), (40, 33), (31, 65), (96, 2)):\n"
               "    n = rows * columns\n"
               "    matrix, result = (ctypes.c_float * n)(*range(n)), (ctypes.c_float * n)()\n"
               "    print(lib.transposed_by_tiles(result, matrix, rows, columns).decode())\n"
               "    assert list(result) == [r * columns + c for c in range(columns) for r in range(rows)]\n")
    environment = {**os.environ, "TREADLE_CUDA_SEED": seed} if seed else os.environ
    done = subprocess.run([sys.executable, "-c", program, str(BUILD / "libplanted.so")], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "\n" * 4, done
