# needs: plugins kernels cuda-gemm package
# SPDX-License-Identifier: MIT
"""Device cuda against the CPU: emulated, watched, and on a real device if there is one."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import device_cases  # noqa: E402

CASES = Path(__file__).with_name("device_cases.py")
WATCHED = ["where_and_clamp", "folds_over_every_set_of_axes", "products_of_all_forms",
           "views_joins_and_picks", "cross_entropy_in_all_variants", "movements_at_rank_8", "threads_launch_at_once"]


def run(kind, names=(), **environment):
    done = subprocess.run([sys.executable, str(CASES), *names], capture_output=True, text=True,
                          timeout=600, env={**os.environ, "TREADLE_CUDA": kind, **environment})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def emulated():
    return run("emulate")


@pytest.mark.parametrize("name", list(device_cases.CASES))
def test_the_emulated_device_does_as_the_cpu(emulated, name):
    assert emulated[name] == ""


@pytest.mark.parametrize("seed", "123")
def test_threads_share_a_device_in_any_order_of_its_streams(seed):
    assert run("emulate", ["threads_launch_at_once"], TREADLE_CUDA_SEED=seed) == {"threads_launch_at_once": ""}


def test_a_plain_allocator_keeps_no_memory_of_a_device():
    assert run("emulate", ["memory_is_kept_and_counted"], TREADLE_ALLOC="plain") == {"memory_is_kept_and_counted": ""}


@pytest.mark.parametrize("word", ["2", "emulated", " ", "-1"])
def test_a_word_that_names_no_plug_in_is_refused_each_time(word):
    program = ("import treadle as td\n"
               "for _ in range(2):\n"
               "    try: td.ones(2).cuda()\n"
               "    except Exception as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "TREADLE_CUDA": word})
    assert done.stdout.count(f"TREADLE_CUDA: expected 0|1|emulate|check, got '{word}'") == 2, done


def test_a_file_that_is_no_plug_in_is_named(tmp_path):
    program = ("import treadle as td\n"
               "try: td.ones(2).cuda()\n"
               "except NotImplementedError as error: print(error)\n")
    (tmp_path / "libtreadle_emulate.so").write_text("no library")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "TREADLE_CUDA": "emulate", "TREADLE_PLUGINS": str(tmp_path)})
    assert "device cuda is not available: libtreadle_emulate.so:" in done.stdout, done


def test_a_child_of_a_process_that_uses_the_device_is_refused():
    program = ("import os\n"
               "import treadle as td\n"
               "x = td.ones(3).cuda() * 2\n"
               "if os.fork() == 0:\n"
               "    try: print((x + 1).sum().item())\n"
               "    except RuntimeError as error: print(error)\n"
               "    del x\n"
               "else:\n"
               "    os.wait()\n"
               "    print(x.sum().item())\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "TREADLE_CUDA": "emulate"})
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and "forked after using the device" in lines[0] and lines[1] == "6.0", done


@pytest.fixture(scope="module")
def watched():
    return run("check", WATCHED, TREADLE_CUDA_SEED="5")


@pytest.mark.parametrize("name", WATCHED)
def test_no_kernel_is_caught_by_the_watch(watched, name):
    assert watched[name] == ""


@pytest.fixture(scope="module")
def real():
    probe = "import treadle as td; print(td.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True,
                          env={**os.environ, "TREADLE_CUDA": "1"})
    if done.stdout.strip() != "True":
        pytest.skip("no CUDA device")
    return run("1")


def test_a_real_device_does_as_the_cpu(real):
    assert {name: error for name, error in real.items() if error} == {}


def test_memory_of_the_device_may_run_out():
    program = ("import treadle as td\n"
               "x = td.ones(1000, device='cuda')\n"
               "try: td.ones(1 << 20, device='cuda')\n"
               "except MemoryError as error: print('named', error)\n"
               "print((x + 1).sum().item())\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "TREADLE_CUDA": "emulate",
                               "TREADLE_CUDA_MEMORY": str(1 << 20)})
    assert done.stdout.startswith("named") and done.stdout.endswith("2000.0\n"), done


def test_without_a_plug_in_the_error_says_so():
    program = ("import treadle as td\n"
               "print(td.cuda.is_available())\n"
               "for _ in range(2):\n"
               "    try: td.ones(2).cuda()\n"
               "    except NotImplementedError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "TREADLE_CUDA": "0"})
    assert done.stdout.count("device cuda is not available: TREADLE_CUDA=0") == 2, done


def test_functions_checks_and_hooks_on_a_device():
    program = """
import treadle as td
class Two(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3
    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3
w = td.ones(3, device="cuda", requires_grad=True)
Two.apply(w)[0].sum().backward()
print(w.grad.tolist())
x = td.ones(3, device="cuda", dtype=td.float64, requires_grad=True)
print(td.autograd.gradcheck(lambda a: a * a, (x,)),
      td.autograd.gradgradcheck(lambda a: (a * a * a).sum(), (x,)))
for wrong in (lambda: setattr(w, "grad", td.ones(3)), lambda: (w * w).backward(td.ones(3))):
    try:
        wrong()
    except RuntimeError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "TREADLE_CUDA": "emulate"})
    wrong = "the gradient is float32 [3], but the tensor is float32 [3] on cuda:0"
    assert done.stdout.splitlines() == ["[2.0, 2.0, 2.0]", "True True",
                                        f"set_grad: {wrong}", f"backward: {wrong}"], done
