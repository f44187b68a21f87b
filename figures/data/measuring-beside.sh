# What an instruction on vectors of sixteen floats takes alone, and what it adds to eight multiply-adds that it stands
# between, in multiply-adds: a stretch of each, a thousand times, the least of 300.  Needs AVX-512.
grep -q avx512f /proc/cpuinfo || { echo "measuring-beside: needs a processor with AVX-512" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" - "$work" <<'END'
import sys
KINDS = {"multiply-add": "vfmadd231ps %zmm30,%zmm31,%zmm{r}", "comparison": "vcmpltps %zmm30,%zmm31,%k{k}", "division": "vdivps %zmm30,%zmm31,%zmm{r}",
         "addition": "vaddps %zmm30,%zmm31,%zmm{r}", "maximum": "vmaxps %zmm30,%zmm31,%zmm{r}", "conversion": "vcvtdq2ps %zmm31,%zmm{r}",
         "shift": "vpslld $23,%zmm31,%zmm{r}", "addition of integers": "vpaddd %zmm30,%zmm31,%zmm{r}", "choice": "vblendmps %zmm30,%zmm31,%zmm{r}{{%k1}}"}
stretches = [["multiply-add"] * 8] + [s for kind in KINDS for s in ([kind] * 8, ["multiply-add"] * 8 + [kind])]
with open(sys.argv[1] + "/stretches.s", "w") as out:
    for i, stretch in enumerate(stretches):
        print(f".globl s{i}\ns{i}: mov $1000,%eax\n1:", file=out)
        for n, kind in enumerate(stretch * 6):
            print(KINDS[kind].format(r=n % 24, k=2 + n % 6), file=out)
        print("dec %eax\njnz 1b\nret", file=out)
with open(sys.argv[1] + "/time.c", "w") as out:
    names, calls = ",".join(f'"{kind}"' for kind in KINDS), range(len(stretches))
    print("#include <stdio.h>\n#include <time.h>\n" + "".join(f"void s{i}(void);" for i in calls) + f"""
static double now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }}
int main(void) {{
    void (*const call[])(void) = {{ {",".join(f"s{i}" for i in calls)} }};
    const char *const name[] = {{ {names} }};
    double best[{len(stretches)}];
    for (int round = 0; round < 300; round++)
        for (int i = 0; i < {len(stretches)}; i++) {{
            const double began = now();
            call[i]();
            const double took = now() - began;
            best[i] = round == 0 || took < best[i] ? took : best[i];
        }}
    puts("instruction,alone,adds");
    for (int i = 0; i < {len(KINDS)}; i++)
        printf("%s,%.1f,%.1f\\n", name[i], best[2 * i + 1] / best[0], 8 * best[2 * i + 2] / best[0] - 8);
}}""", file=out)
END
${CC:-gcc} -std=gnu11 -O1 -o "$work/time" "$work/time.c" "$work/stretches.s" -Wl,-z,noexecstack && "$work/time"
