@figures/transcripts/plugin-mutant unguarded emulate gemm.cu '    if (i >= p.m || j >= p.n)\n        return;\n' '    if (i >= p.m)\n        return;\n'
@export PYTHONPATH=${BUILD:-build}/python TREADLE_CUDA=emulate TREADLE_THREADS=1 TREADLE_PLUGINS=${BUILD:-build}/mutants/unguarded
@multiply() { "${PYTHON:-/usr/bin/python3}" -c "import treadle as td; a = td.arange(131. * 23).reshape(131, 23) % 7; b = td.arange(23. * 71).reshape(23, 71) % 5; c = (a.to('cuda') @ b.to('cuda')).cpu(); print((c != a @ b).sum().item(), 'of', c.numel(), 'are wrong')" 2>&1 | tail -n 1; }
multiply
