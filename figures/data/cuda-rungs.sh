# numbers: within 1e-3
# What each rung of the product asks of the device's memory, counted by the checked emulator: 128 square matrices,
# per 32 multiply-adds (one instruction of a warp).  "turned": B lies by columns.  No time in it: the counts are exact.
. figures/data/cuda-asks
echo rung,sectors,requests,traffic,rounds
for rung in 0 1 2 3 4; do
    echo "$rung,$(TREADLE_CUDA_REPORT=1 "$dir/asks" gemm $rung plain 2> /dev/null)"
done
for rung in 1 2 4; do
    echo "${rung}t,$(TREADLE_CUDA_REPORT=1 "$dir/asks" gemm $rung turned 2> /dev/null)"
done
