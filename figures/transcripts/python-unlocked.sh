@PYTHON=${PYTHON:-/usr/bin/python3}; $PYTHON figures/transcripts/mutant-python unlocked module.c '    enter_python();\n    return PARKED;' '    return HELD;'
@cd "${BUILD:-build}/mutants/unlocked"; python3() { PYTHONPATH=python "$PYTHON" -X faulthandler "$@"; }
@printf 'import treadle as td\nx = td.ones(2, requires_grad=True)\nx.register_hook(lambda g: g * 2)\n(x * 3).sum().backward()\n' > hook.py
cat hook.py
python3 hook.py 2>&1 | head -1 | fold -sw 72
