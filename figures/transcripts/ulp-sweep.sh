# numbers: within 0.2
# needs: grep -q avx512f /proc/cpuinfo
@dir=$(mktemp -d); case ${BUILD:-build} in /*) lib=$BUILD;; *) lib=$PWD/${BUILD:-build};; esac
@"${CC:-gcc}" -std=c11 -O2 -fopenmp -Igenerated/include figures/transcripts/ulp-sweep.c "$lib/libtreadle.a" -lz -lm -lpthread -o "$dir/ulp-sweep"
@cd "$dir"
./ulp-sweep
@rm -r "$dir"
