# numbers: any
@NAME=mlir-fails; . figures/transcripts/mlir.inc; cp figures/transcripts/mlir-fails.c "$keep/two.c"; cd "$keep"
@gcc() { command gcc -march=x86-64 "$@" 2>&1 | sed 's/optimized: *//'; }
cat two.c
gcc -O3 -fopt-info-vec -c two.c
objdump -d two.o | sed -n '/<sum>/,$p' | grep -c addss
objdump -d two.o | sed -n '/<sum>/,$p' | grep -c addps
