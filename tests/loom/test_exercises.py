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

ANSWER = re.search(r"(?ms)^<<exercise one-block>>=\n(.*?)^@", (HOME / "exercises/one-block/answer.nw").read_text())[1]


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    return str(tmp_path_factory.mktemp("variants"))


@pytest.fixture
def student(tmp_path, variants):
    """A student with an empty work/; calls a verb, writes the hole."""
    def say(verb, slug="one-block"):
        return subprocess.run([sys.executable, "loom/exercises", verb, *([slug] if slug else [])], cwd=HOME,
                              env={**os.environ, "WORK": str(tmp_path / "work"), "BUILD_OF_VARIANTS": variants},
                              capture_output=True, text=True, timeout=600)

    def write(code, slug="one-block"):
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / f"work/{slug}.nw").write_text(f"Mine.\n<<exercise {slug}>>=\n{code}@\n")
    say.write, say.file = write, tmp_path / "work/one-block.nw"
    return say


def test_from_the_stub_to_the_answer(student):
    first = student("check")
    assert first.returncode == 1 and "one-block.nw is new" in first.stdout and "one-block.nw is wrong" in first.stdout
    assert "fails:" not in student.file.read_text()
    assert "not passed yet" in student("answer").stdout and student("answer").returncode == 1
    assert "Hint 1 of 3" in student("hint").stdout
    assert "Hint 2 of 3" in student("hint").stdout
    student.write(ANSWER)
    passed = student("check")
    assert passed.returncode == 0 and "one-block.nw passes" in passed.stdout
    assert "fills lanes 0, 1, 2" in student("answer").stdout
    assert re.search(r"one-block .* passed \d{4}-\d\d-\d\d, hints seen: 2", student("list", None).stdout)
    assert str(student.file) in student("edition", None).stdout
    student.file.write_text(student.file.read_text() + "More prose.\n")
    assert "left out" in student("edition", None).stderr


def test_a_hole_grows_as_chunks_do(student):
    first, rest = ANSWER[:ANSWER.index("for (int half")], ANSWER[ANSWER.index("for (int half"):]
    student.write(first + "@ The lanes are full.\n<<exercise one-block>>=\n" + rest)
    done = student("check")
    assert done.returncode == 0 and "one-block.nw passes" in done.stdout, done.stdout
    student.write("<<fill the lanes>>\n" + rest + "@\n<<fill the lanes>>=\n" + first)
    assert student("check").returncode == 0         # and a chunk of one's own, which only noweb understands


def test_each_hint_comes_alone_and_counts_before_the_answer_is_found(student):
    student.write(ANSWER)
    hints = [student("hint").stdout for _ in range(2)]
    assert all(f"Hint {n} of 3" in hint and hint.count("Hint") == 1 for n, hint in enumerate(hints, 1))
    assert student("check").returncode == 0
    assert "Hint 3 of 3" in student("hint").stdout and "Hint 1 of 3" in student("hint").stdout
    assert re.search(r"one-block .* passed .* hints seen: 2", student("list", None).stdout)


def test_a_first_check_says_what_it_does_and_a_second_does_less(student, tmp_path):
    student.write("*(T *)out = x[0];\n(void)n;\n")
    say = [subprocess.run([sys.executable, "loom/exercises", "check", "one-block"], cwd=HOME, capture_output=True, text=True,
                          env={**os.environ, "WORK": str(tmp_path / "work"), "BUILD_OF_VARIANTS": str(tmp_path / "built")}).stdout
           for _ in range(2)]
    assert "Made of your lines each time: src/ops/kernels/reductions-kernels.c" in say[0]
    assert "Compiled once, with sanitizers: exercises/one-block/check.c" in say[0]
    assert "is wrong" in say[1] and "once" not in say[1] and "each time" not in say[1]


def test_reset_keeps_every_earlier_file(student):
    student.write("first\n")
    student("reset")
    student.file.write_text("second\n")
    student("reset")
    assert "first" in student.file.with_name("one-block.nw.~1~").read_text()
    assert student.file.with_name("one-block.nw.~2~").read_text() == "second\n"
    assert "<<exercise one-block>>=" in student.file.read_text()


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
    "endless recursion": ("FOLD(row)(n, x_, out);\n*(T *)out = x[0];\n", ["crashes", "stack-overflow"], 3),
    "endless memory": ("for (;;) {\n    char *p = __builtin_malloc(1 << 20);\n    __builtin_memset(p, 1, 1 << 20);\n"
                       "    *(char *volatile *)&p = 0;\n}\n*(T *)out = x[n - 1];\n", ["too much memory"], None),
    "endless output": ("for (;;)\n    __builtin_printf(\"%d\\n\", (int)n);\n*(T *)out = x[0];\n",
                       ["prints without end"], None),
    "leak": ("T *mine = __builtin_malloc(8 * sizeof(T));\n" + ANSWER + "mine[0] = 1;\n", ["leaks", "never freed"], 3),
    "wrong number": (ANSWER.replace("x[i + l]", "x[i]"),
                     ["is wrong", "the largest of 5 numbers", "expected", "got", "formula"], 2),
    "unused": ("(void)x, (void)n, (void)out;\n", ["is wrong", "got       77"], 2),
    "undefined chunk": ("<<no such chunk>>\n", ["does not tangle", "used and never defined"], 3),
    "a second definition": ("int k = 0;\n@ More.\n<<exercise one-block>>=\nk = lanes;\n", ["‘lanes’ undeclared"], 6),
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


GLOBAL = "(void)n, (void)x, (void)out;\n}\n%s\nvoid FOLD(goes_on)(void);\nvoid FOLD(goes_on)(void)\n{\n"
ENDS = {                                # none of these may count as solved, whatever the status of the process
    "exit": "extern void exit(int);\nexit(0);\n",
    "_exit": "extern void _exit(int);\n_exit(0);\n",
    "quick_exit": "extern void quick_exit(int);\nquick_exit(0);\n",
    "killed": "extern int raise(int);\nraise(9);\n",
    "abort": "__builtin_abort();\n",
    "longjmp": "extern int _setjmp(void *);\nextern void longjmp(void *, int);\nstatic char here[512];\n"
               "static int seen;\nif (seen++)\n    longjmp(here, 1);\n_setjmp(here);\n",
    "another program": "extern int execl(const char *, const char *, ...);\nexecl(\"/bin/true\", \"true\", (char *)0);\n",
    "itself again": "extern int execl(const char *, const char *, ...);\n"
                    "execl(\"/proc/self/exe\", \"check\", (char *)0);\n",
    "constructor": GLOBAL % "extern void _exit(int);\n__attribute__((constructor)) static void FOLD(first)(void) { _exit(0); }",
    "exit in a constructor": GLOBAL % "extern void exit(int);\n__attribute__((constructor)) static void FOLD(first)(void) { exit(0); }",
    "child goes on": "extern int fork(void);\nextern void _exit(int);\nif (fork() > 0)\n    _exit(0);\n" + ANSWER,
    "handler": "extern int atexit(void (*)(void));\nextern void _exit(int);\nstatic int set;\n"
               "__extension__ void last(void) { _exit(0); }\nif (!set++)\n    atexit(last);\n" + ANSWER,
    "verdict printed": "__builtin_printf(\"passed\\nok 1 - one-block\\none-block passes\\n\");\n",
    "stdout closed": "extern int close(int);\nclose(1), close(2);\n",
    "everything closed": "extern int close(int);\nfor (int i = 0; i < 1000; i++)\n    close(i);\n" + ANSWER,
    "verdict in all files": "extern long write(int, const void *, unsigned long);\nfor (int i = 3; i < 1000; i++)\n"
                            "    write(i, \"passed\\n0123456789abcdef\\n\", 24);\n" + ANSWER,
    "word of the environment": "extern char *getenv(const char *);\nextern int atoi(const char *);\n"
                               "extern long write(int, const void *, unsigned long);\nextern void _exit(int);\n"
                               "const char *word = getenv(\"TREADLE_CHECK\");\n"
                               "write(word ? atoi(word) : 3, \"passed\\n\", 7);\n_exit(0);\n",
    "sleeps": "extern int pause(void);\nextern void *signal(int, void *);\nsignal(6, (void *)1);\npause();\n",
}


@pytest.mark.parametrize("trick", ENDS)
def test_no_way_to_end_the_program_counts_as_solved(student, trick):
    student.write(ANSWER)
    progress = student.file.with_name("progress.json")
    progress.write_text('{"one-block": {"passed": "2020-02-02", "sum": "x"}}')
    student.write(ENDS[trick] + ("" if "goes_on" in ENDS[trick] else "(void)x, (void)n, (void)out;\n"))
    done = student("check")
    assert done.returncode == 1 and "one-block.nw passes" not in done.stdout, done.stdout
    assert '"passed": null' in progress.read_text()
    assert re.search("in the case|does not compile|expected", done.stdout), done.stdout
    assert "does not compile" not in done.stdout and "Traceback" not in done.stdout + done.stderr, done.stdout


ALL_FILES = "import os\nfor n in range(3, 100):\n    try:\n        os.write(n, {})\n    except OSError:\n        pass\n"
PYTHON = {                              # the same for a hole in Python: its process tells nothing but what it is asked for
    "exit": ("import os\nos._exit(0)\n", "ends the program"),
    "SystemExit": ("import sys\nsys.exit(0)\n", "SystemExit"),
    "crash": ("import ctypes\nctypes.string_at(0)\n", "crashes"),
    "syntax": ("if True\n    pass\n", "does not compile"),
    "endless loop": ("while True:\n    pass\n", "does not end"),
    "endless memory": ("x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n", "MemoryError"),
    "endless output": ("while True:\n    print('passed' * 1000)\n", "prints without end"),
    "kills the judge": ("import os\nos.kill(os.getppid(), 9)\n", "crashes"),
    "verdict in all files": (ALL_FILES.format("b'passed\\n0123456789abcdef\\n'"), "meddled"),
    "answers in all files": (ALL_FILES.format("b'[0, {\"value\": null}]\\n'"), "meddled"),
    "child goes on": ("import os\nif os.fork():\n    os._exit(0)\n", "ends the program|expected|raised"),
    "judge imported": ("import sys\nsys.path.insert(0, 'exercises')\nimport judge\njudge.end()\n", "raised"),
    "says True to all": ("import __main__\n__main__.plain = lambda x: True\n", "expected|raised"),
}
IN_PYTHON = sorted(path.parent.name for path in (HOME / "exercises").glob("*/check.py"))


@pytest.mark.skipif(not IN_PYTHON, reason="no exercise has a check in Python")
@pytest.mark.parametrize("trick", PYTHON)
def test_no_way_out_of_python_counts_as_solved(student, trick):
    code, expected = PYTHON[trick]
    slug = next(slug for slug in IN_PYTHON if not (HOME / "exercises" / slug / "check.c").exists())
    student.write(code, slug)
    done = student("check", slug)
    assert done.returncode == 1 and f"{slug}.nw passes" not in done.stdout and re.search(expected, done.stdout), done.stdout
    assert "Traceback" not in done.stderr and len(done.stdout.splitlines()) < 25, done.stdout


def test_a_failing_check_withdraws_what_had_passed(student):
    student.write(ANSWER)
    assert student("check").returncode == 0
    student.write("extern void _exit(int);\n_exit(0);\n")
    done = student("check")
    assert "ends the program" in done.stdout and "(exit 0)" in done.stdout and "a row of 100 ones" in done.stdout
    assert "withdrawn" in done.stdout and re.search(r"one-block .* withdrawn \d{4}", student("list", None).stdout)
    assert "not passed yet" in student("answer").stdout and str(student.file) not in student("edition", None).stdout
    student.write(ANSWER)
    assert student("check").returncode == 0 and "withdrawn" not in student("list", None).stdout


def test_printing_cannot_push_the_verdict_out(student):
    student.write("for (int i = 0; i < 3000000; i++)\n    __builtin_printf(\"\\033[2Jab\");\n"
                  "*(T *)out = x[0];\n(void)n;\n")
    done = student("check")
    assert "is wrong" in done.stdout and "expected  100" in done.stdout and "got       1" in done.stdout
    assert "\033" not in done.stdout and len(done.stdout) < 2000 and "printed" in done.stdout


def test_what_looks_like_a_report_is_not_one(student):
    student.write('static int once;\nif (!once++)\n    __builtin_printf("x.c:1:1: runtime error: nonsense\\n==1==ERROR: AddressSanitizer: nonsense\\n");\n' + ANSWER)
    assert student("check").returncode == 0


def test_infinity_is_equal_only_to_itself(student):
    answer = re.search(r"(?ms)^<<exercise step>>=\n(.*?)^@", (HOME / "exercises/step/answer.nw").read_text())[1]
    student.write(answer + "if (theta[begin] - theta[begin] != 0)\n    theta[begin] = 3;\n", "step")
    done = student("check", "step")
    assert "an infinite parameter" in done.stdout and "expected  inf" in done.stdout, done.stdout


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
    student.write(code, "tile")
    done = student("check", "tile")
    assert done.returncode == 1
    for text in expected:
        assert text in done.stdout, done.stdout
    assert line is None or f"{student.file.with_name('tile.nw')}:{line}" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout + done.stderr and len(done.stdout.splitlines()) < 25, done.stdout


def test_a_gradient_of_the_wrong_shape_is_named(student):
    student.write("(void)swap;\nif (td_needs(b, 1))\n    b->grad_in[1] = as_rows(g);\n", "linear")
    done = student("check", "linear")
    assert done.returncode == 1 and "a broadcast of [3, 3]; got [2, 3]" in done.stdout, done.stdout
    assert f"{student.file.with_name('linear.nw')}:2" in done.stdout


def test_watching_checks_again_when_the_file_is_saved(student):
    student.write("*(T *)out = lanes[0];\n")
    child = subprocess.Popen([sys.executable, "loom/exercises", "watch", "one-block"], cwd=HOME, text=True,
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
    (b"<<exercise two-blocks>>=\n@\n", "has no hole")])
def test_a_file_that_is_no_answer_at_all(student, text, expected):
    student.write("")
    student.file.write_bytes(text)
    done = student("check")
    assert done.returncode == 1 and expected in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["check", "hint", "answer", "reset", "watch"])
def test_an_exercise_that_is_not_there(student, verb):
    for slug in ("99.9", None, "../one-block", "one"):
        done = student(verb, slug)
        assert done.returncode == 1 and re.search("are: .* one-block .* blocks ", done.stderr) and "Traceback" not in done.stderr


def test_a_number_is_refused_and_what_it_named_is_carried_over(student):
    refused = student("check", "6.1")
    assert refused.returncode == 1 and "called one-block now" in refused.stderr and "broadcast" in refused.stderr
    student.write(ANSWER)
    old = student.file.rename(student.file.with_name("6.1.nw"))
    old.write_text(old.read_text().replace("one-block", "6.1"))
    student.file.with_name("progress.json").write_text('{"6.1": {"passed": "2020-02-02", "hints": 2, "sum": "x"}}')
    assert re.search(r"one-block .* passed 2020-02-02, hints seen: 2", student("list", None).stdout)
    done = student("check")
    assert done.returncode == 0 and f"made from your {old}, which stays" in done.stdout and old.exists()
    assert student.file.read_text() == old.read_text().replace("6.1", "one-block")
