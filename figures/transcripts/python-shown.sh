@PYTHON=${PYTHON:-/usr/bin/python3}; $PYTHON figures/transcripts/mutant-python shown tensor.c 'return w->handle != NULL && (w->owner || threads_away() == 0)\n        && td_is_sole_owner(w->handle);' 'return w->handle != NULL;'
@cd "${BUILD:-build}/mutants/shown"; python3() { PYTHONPATH=python "$PYTHON" "$@"; }
@printf 'import gc, treadle as td\ndef graph(seen):\n    x = td.ones(2, requires_grad=True)\n    x.register_hook(lambda g: seen.append((g * x).tolist()))\n    return (x * 3).sum()\n\nfor collect in False, True:\n    y = graph(seen := [])\n    if collect:\n        gc.collect()\n    y.backward()\n    print(seen)\n' > spare.py
cat spare.py
python3 spare.py 2>&1 | tail -4
