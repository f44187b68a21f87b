"""The grader: what a student meets, from the first check to the answer."""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif("FLAGS_OF_A_VARIANT" not in os.environ, reason="make test passes the compiler's flags")

ANSWER = re.search(r"(?ms)^<<exercise 6\.1>>=\n(.*?)^@", (HOME / "exercises/6.1-one-block/answer.nw").read_text())[1]


@pytest.fixture
def student(tmp_path):
    """A student with an empty work/; calls a verb, writes the hole."""
    def say(verb, number="6.1"):
        return subprocess.run([sys.executable, "loom/exercises", verb, *([number] if number else [])], cwd=HOME,
                              env={**os.environ, "WORK": str(tmp_path / "work"), "BUILD_OF_VARIANTS": str(tmp_path)},
                              capture_output=True, text=True, timeout=120)

    def write(code, number="6.1"):
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / f"work/{number}.nw").write_text(f"Mine.\n<<exercise {number}>>=\n{code}@\n")
    say.write, say.file = write, tmp_path / "work/6.1.nw"
    return say


def test_from_the_stub_to_the_answer(student):
    first = student("check")
    assert first.returncode == 1 and "6.1.nw is new" in first.stdout and "6.1.nw is wrong" in first.stdout
    assert "fails:" not in student.file.read_text()
    assert "not passed yet" in student("answer").stdout and student("answer").returncode == 1
    assert "Hint 1 of 3" in student("hint").stdout
    assert "Hint 2 of 3" in student("hint").stdout
    student.write(ANSWER)
    passed = student("check")
    assert passed.returncode == 0 and "6.1.nw passes" in passed.stdout
    assert "fills lanes 0, 1, 2" in student("answer").stdout
    assert re.search(r"6\.1 .* passed \d{4}-\d\d-\d\d, hints seen: 2", student("list", None).stdout)
    assert str(student.file) in student("edition", None).stdout
    student.file.write_text(student.file.read_text() + "More prose.\n")
    assert "left out" in student("edition", None).stderr


def test_reset_keeps_every_earlier_file(student):
    student.write("first\n")
    student("reset")
    student.file.write_text("second\n")
    student("reset")
    assert "first" in student.file.with_name("6.1.nw.~1~").read_text()
    assert student.file.with_name("6.1.nw.~2~").read_text() == "second\n"
    assert "<<exercise 6.1>>=" in student.file.read_text()


def test_a_file_that_is_there_is_not_written_to(student):
    student.write("T lane[LANES] = nonsense\n")
    before = student.file.read_bytes()
    for verb in ("check", "hint", "answer", "check"):
        student(verb)
    assert student.file.read_bytes() == before


BAD = {                                 # code, what the report says, the line of the file that it names
    "compile error": ("int sum\nsum = 0;\n", ["does not compile", "error: expected"], 4),
    "undefined name": ("*(T *)out = lanes[0];\n", ["does not compile", "‘lanes’ undeclared"], 3),
    "crash": ("volatile char *p = (char *)64;\n*p = 1;\n*(T *)out = x[n - 1];\n", ["SEGV"], 4),
    "null pointer": ("const T *y = 0;\n*(T *)out = n > 0 ? *y : x[0];\n", ["undefined behaviour", "null pointer"], 4),
    "beyond the end": ("*(T *)out = x[n];\n", ["crashes", "heap-buffer-overflow, a read of 4 bytes"], 3),
    "overflow": ("int k = 2147483647;\nk += n > 0;\n*(T *)out = (T)k;\n", ["is wrong"], 2),
    "endless loop": ("for (volatile int i = 0; i < 1; )\n    ;\n*(T *)out = x[n - 1];\n", ["does not end"], 3),
    "endless recursion": ("NAME(row)(n, x_, out);\n*(T *)out = x[0];\n", ["crashes", "stack-overflow"], 3),
    "endless memory": ("for (;;) {\n    char *p = __builtin_malloc(1 << 20);\n    __builtin_memset(p, 1, 1 << 20);\n"
                       "    *(char *volatile *)&p = 0;\n}\n*(T *)out = x[n - 1];\n", ["too much memory"], None),
    "endless output": ("for (;;)\n    __builtin_printf(\"%d\\n\", (int)n);\n*(T *)out = x[0];\n",
                       ["prints without end"], None),
    "leak": ("T *mine = __builtin_malloc(8 * sizeof(T));\n" + ANSWER + "mine[0] = 1;\n", ["leaks", "never freed"], 3),
    "wrong number": (ANSWER.replace("x[i + l]", "x[i]"),
                     ["is wrong", "first bad index", "expected", "got", "formula"], 2),
    "unused": ("(void)x, (void)n, (void)out;\n", ["is wrong", "got       nan"], 2),
    "undefined chunk": ("<<no such chunk>>\n", ["does not tangle", "used and never defined"], 3),
    "two definitions": (ANSWER + "@\n<<exercise 6.1>>=\n" + ANSWER, ["does not tangle", "two definitions"], None),
    "another's chunk": (ANSWER + "@\n<<steps of the folds>>=\n#define ADD(a, b) (a)\n", ["does not tangle"], None),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_work_gives_one_readable_report(student, bad):
    code, expected, line = BAD[bad]
    student.write(code)
    done = student("check")
    assert done.returncode == 1
    for text in expected:
        assert text in done.stdout, done.stdout
    assert line is None or f"{student.file}:{line}" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout + done.stderr and len(done.stdout.splitlines()) < 25, done.stdout


KERNELS = {                             # the same for a kernel, which runs on the watched emulator
    "compile error": ("tile[tx][ty] = lanes;\n", ["does not compile", "‘lanes’ was not declared"], 3),
    "crash": ("\n*(volatile float *)8 = 1;\n", ["crashes", "SEGV"], 4),
    "endless barriers": ("for (;;)\n    __syncthreads();\n", ["does not end"], None),
    "two barriers": ("if (tx < 3)\n    __syncthreads();\nelse\n    __syncthreads();\n",
                     ["is wrong", "divergent barrier: 256 of 256"], 4),
    "overrun": ("tile[32][0] = 1;\n", ["is wrong", "write outside of shared array tile: byte 4224 of 4224"], 3),
}


@pytest.mark.parametrize("bad", KERNELS)
def test_a_bad_kernel_gives_one_readable_report(student, bad):
    code, expected, line = KERNELS[bad]
    student.write(code, "26.1")
    done = student("check", "26.1")
    assert done.returncode == 1
    for text in expected:
        assert text in done.stdout, done.stdout
    assert line is None or f"{student.file.with_name('26.1.nw')}:{line}" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout + done.stderr and len(done.stdout.splitlines()) < 25, done.stdout


def test_a_gradient_of_the_wrong_shape_is_named(student):
    student.write("(void)swap;\nif (td_needs(b, 1))\n    b->grad_in[1] = as_rows(g);\n", "11.1")
    done = student("check", "11.1")
    assert done.returncode == 1 and "shape [2, 3] is not [3, 3]" in done.stdout, done.stdout
    assert f"{student.file.with_name('11.1.nw')}:2" in done.stdout


def test_watching_checks_again_when_the_file_is_saved(student):
    student.write("*(T *)out = lanes[0];\n")
    child = subprocess.Popen([sys.executable, "loom/exercises", "watch", "6.1"], cwd=HOME, text=True,
                             env={**os.environ, "WORK": str(student.file.parent), "PYTHONUNBUFFERED": "1",
                                  "BUILD_OF_VARIANTS": str(student.file.parent)}, stdout=subprocess.PIPE)
    try:
        lines = iter(child.stdout.readline, "")
        assert any("does not compile" in line for line in lines)
        student.write("*(T *)out = x[n - 1];\n")
        assert any("is wrong" in line for line in lines)
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 0
    finally:
        child.kill()


@pytest.mark.parametrize("text, expected", [
    (b"\xff\xfe", "cannot be read"), (b"", "has no hole"), (b"Prose only.\n", "has no hole"),
    (b"<<exercise 6.2>>=\n@\n", "has no hole")])
def test_a_file_that_is_no_answer_at_all(student, text, expected):
    student.write("")
    student.file.write_bytes(text)
    done = student("check")
    assert done.returncode == 1 and expected in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["check", "hint", "answer", "reset", "watch"])
def test_an_exercise_that_is_not_there(student, verb):
    for number in ("99.9", None, "../6.1"):
        done = student(verb, number)
        assert done.returncode == 1 and done.stderr and "Traceback" not in done.stderr
