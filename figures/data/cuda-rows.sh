# numbers: within 1e-3
# Sectors that mul asks for, by the layout of its second operand, counted by the checked emulator; exact, no time in it.
. figures/data/cuda-asks
echo layout,sectors,requests,traffic,rounds
for layout in plain bias column turned every; do
    echo "$layout,$(TREADLE_CUDA_REPORT=1 "$dir/asks" mul 0 $layout 2> /dev/null)"
done
