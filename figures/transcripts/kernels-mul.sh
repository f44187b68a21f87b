@. figures/data/cuda-asks
@mul() { TREADLE_CUDA_REPORT=1 "$dir/asks" mul 0 $1 2>&1 > /dev/null; }
mul plain
mul turned
