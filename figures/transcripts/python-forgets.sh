@PYTHON=${PYTHON:-/usr/bin/python3}; $PYTHON figures/transcripts/mutant-python forgets tensor.c 'tensor_object *w = td_companion(x);' 'tensor_object *w = NULL;' 'if (x == NULL || !w->owner || td_reference_count(x) == 1)' 'if (true)'
@cd "${BUILD:-build}/mutants/forgets"; python3() { PYTHONPATH=python "$PYTHON" "$@"; }
@printf 'import treadle as td\np = td.ones(3, requires_grad=True)\n(p * p).sum().backward()\np.grad.mark = "mine"\nprint(p.grad.tolist(), p.grad is p.grad)\nprint(p.grad.mark)\n' > mark.py
cat mark.py
python3 mark.py 2>&1 | sed '/^Trace\|^  /d'
