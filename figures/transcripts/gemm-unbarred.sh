@figures/transcripts/plugin-mutant unbarred emulate_checked gemm.cu '                sum += a[y][l] * b[l][x];\n            __syncthreads();' '                sum += a[y][l] * b[l][x];'
@export PYTHONPATH=${BUILD:-build}/python TREADLE_CUDA=check TREADLE_PLUGINS=${BUILD:-build}/mutants/unbarred
@multiply() { "${PYTHON:-/usr/bin/python3}" -c "import treadle as td; a = td.ones(40, 40).to('cuda'); (a @ a).cpu()" 2>&1 | tail -n 1 | sed 's/: /:\n  /g'; }
multiply
