@figures/transcripts/plugin-mutant boundless emulate elementwise.cu '            if (first + e * THREADS < j.at.total)\n                v[e][k]' '                v[e][k]' '        if (first + e * THREADS < j.at.total)\n            ((R *)j.data[0])' '            ((R *)j.data[0])'
@export PYTHONPATH=${BUILD:-build}/python TREADLE_CUDA=emulate TREADLE_PLUGINS=${BUILD:-build}/mutants/boundless
@say() { "${PYTHON:-/usr/bin/python3}" -c "import treadle as td; x = td.ones(2048).to('cuda'); $1; print(x.sum().item())"; }
say "x *= 2"
say "x[:1000] *= 2"
