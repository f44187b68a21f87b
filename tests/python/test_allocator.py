# needs: porting
"""Memory is kept between the steps of a training loop, and given back when asked."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import treadle as td

CC = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
SANITIZED = os.environ.get("TREADLE_SANITIZED")

# Loaded before libc: counts what the shared library of Treadle asks it for.
COUNTER = r"""
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
static uintptr_t low, high;
static atomic_long asked;

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (strstr(info->dlpi_name, "libtreadle.so") == NULL)
        return 0;
    low = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && low + p->p_vaddr + p->p_memsz > high)
            high = low + p->p_vaddr + p->p_memsz;
    }
    return 1;
}

long begin_counting(void)
{
    dl_iterate_phdr(look, NULL);
    asked = 0;
    return high > low;
}

long end_counting(void) { return asked; }

#define COUNT do { uintptr_t from = (uintptr_t)__builtin_return_address(0); \
                   asked += from >= low && from < high; } while (0)
void *malloc(size_t n) { COUNT; return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { COUNT; return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { COUNT; return __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { COUNT; return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n)
{
    COUNT;
    return (*p = __libc_memalign(a, n)) == NULL ? 12 : 0;
}
void *mmap(void *p, size_t n, int how, int flags, int file, off_t at)
{
    COUNT;
    return (void *)syscall(SYS_mmap, p, n, how, flags, file, at);
}
"""

STEPS = """
import ctypes, gc, resource, sys
import treadle as td
from treadle import nn

class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(65, 32), nn.Embedding(16, 32)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
                                    for _ in range(2))
        self.head = nn.Linear(32, 65)
        self.mask = nn.Transformer.generate_square_subsequent_mask(16)

    def forward(self, x):
        y = self.token(x) + self.place(td.arange(16))
        for block in self.blocks:
            y = block(y, src_mask=self.mask)
        return self.head(y)

def mlp():
    net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    return net, td.randn(64, 784), td.randint(0, 10, (64,)), td.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

def gpt():
    net = GPT()
    return net, td.randint(0, 65, (4, 16)), td.randint(0, 65, (64,)), td.optim.AdamW(net.parameters(), lr=0.001)

def step(x):
    optimiser.zero_grad()
    out = net(x)
    loss = nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y)
    loss.backward()
    optimiser.step()
    return loss

net, x, y, optimiser = gpt() if sys.argv[1] == "gpt" else mlp()
if sys.argv[1] == "compiled":
    step = td.jit(step, backend="c")
gc.disable()
for _ in range(300):        # on a busy machine a worker takes part late for the first time, and asks then
    step(x).item()
counter = ctypes.CDLL(None)
before = td.memory_stats()
assert counter.begin_counting()
for _ in range(50):
    step(x).item()
asked, after = counter.end_counting(), td.memory_stats()
print(asked, *(after[key] - before[key] for key in ("allocations", "system_allocations")))
"""


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counter")
    (folder / "counter.c").write_text(COUNTER)
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-o", folder / "counter.so", folder / "counter.c"], check=True)
    return folder / "counter.so"


def steps(kind, counter, allocator):
    """What 50 steps asked of the C library, and of the allocator, and this one of the system."""
    path = str(Path(td.__file__).parents[1])
    run = subprocess.run([sys.executable, "-c", STEPS, kind], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "LD_PRELOAD": str(counter), "PYTHONPATH": path, "TREADLE_ALLOC": allocator})
    assert run.returncode == 0, run.stderr
    return [int(number) for number in run.stdout.split()]


@pytest.mark.skipif(bool(SANITIZED) or not sys.platform.startswith("linux"), reason="the sanitizer counts by itself")
@pytest.mark.parametrize("kind", ["mlp", "gpt", "compiled"])
def test_a_steady_step_asks_the_system_for_no_memory(kind, counter):
    for _ in range(3):      # a worker of a busy machine may take part for the first time while they are counted
        asked, granted, system = steps(kind, counter, "cache")
        if asked == system == 0:
            break
    assert asked == 0 and system == 0 and granted > 50 * 20
    asked, granted, system = steps(kind, counter, "plain")
    assert asked >= granted == system > 50 * 20


def test_statistics_say_what_is_kept_and_it_can_be_given_back():
    x = td.zeros(300, 300)
    before = td.memory_stats()
    assert before["bytes"] >= x.nbytes and before["peak_bytes"] >= before["bytes"]
    del x
    now = td.memory_stats()
    assert now["bytes"] == before["bytes"] - 360000
    if os.environ.get("TREADLE_ALLOC") != "plain" and not SANITIZED:
        assert now["cached_bytes"] >= before["cached_bytes"] + 360000
    td.empty_cache()
    td.cuda.empty_cache()
    assert td.memory_stats()["cached_bytes"] < 360000
    assert td.memory_stats("cpu").keys() == now.keys()


@pytest.mark.skipif(SANITIZED == "asan", reason="nothing is kept")
def test_the_limit_of_what_is_kept_can_be_set():
    before = td.get_cache_limit()
    try:
        td.set_cache_limit(0)
        td.zeros(500, 500)
        assert td.get_cache_limit() == 0
        td.set_cache_limit(10 ** 7)
        kept = td.memory_stats()["cached_bytes"]
        td.zeros(500, 500)
        assert td.memory_stats()["cached_bytes"] >= kept + 10 ** 6
        with pytest.raises(ValueError, match="expected a number of bytes, got -1"):
            td.set_cache_limit(-1)
        with pytest.raises(TypeError):
            td.set_cache_limit("much")
    finally:
        td.set_cache_limit(before)


def test_zeros_in_used_memory_are_zero():
    for n in (1, 10, 1000, 100000):
        td.full((n,), 7.5)
        assert td.zeros(n).count_nonzero().item() == 0
        td.full((n,), 7.5)
        assert td.eye(1, n).sum().item() == 1
