# Microseconds of a case on one thread, with one flag taken away or added.
# The library is built again for each row.
build=${BUILD:-build}
cases="relu_1000 exp_1000 softmax_1000 sum_1000 gemm_512"
all="-fno-math-errno -fno-trapping-math -ffp-contract=fast"
row() {
  local name=$1 at=$build/flags-$2
  shift 2
  MAKEFLAGS= make -s DEPS=no V=0 BUILD="$at" TANGLED="$build/tangled.mk" "$@" "$at/bench" > /dev/null 2>&1 || exit 1
  "$at/bench" $cases | awk -v name="$name" '
    $2 == 1 { time[$1] = $3 }
    END { printf "%s,%.0f,%.0f,%.0f,%.0f,%.0f\n", name, time["relu_1000"], time["exp_1000"],
          time["softmax_1000"], time["sum_1000"], time["gemm_512"] }'
}
echo "flags,relu,exp,softmax,sum,gemm"
row "as built" all NUMERICS="$all"
row "without {-fno-math-errno}" errno NUMERICS="-fno-trapping-math -ffp-contract=fast"
row "without {-fno-trapping-math}" trapping NUMERICS="-fno-math-errno -ffp-contract=fast"
row "{-ffp-contract=off}" contract NUMERICS="-fno-math-errno -fno-trapping-math -ffp-contract=off"
row "{-O2} in place of {-O3}" o2 NUMERICS="$all" OPT=-O2
row "with {-ffast-math}" fast NUMERICS="$all -ffast-math"
