# numbers: any
@PYTHON=${PYTHON:-/usr/bin/python3}; $PYTHON figures/transcripts/mutant-python kept binder.c '        leave_python();\n        good = td_run(call);\n        enter_python();' '        good = td_run(call);'
@cd "${BUILD:-build}/mutants/kept"; given=../../python kept=python; export TREADLE_THREADS=1
@printf 'import threading, time, treadle as td\nbeats, x, done = 0, td.rand(1500, 1500), False\ndef heart():\n    global beats\n    while not done:\n        beats += 1\n        time.sleep(0.001)\n\nthreading.Thread(target=heart).start()\ntime.sleep(0.1)\nbegan, y = beats, x @ x\nprint(beats - began, "beats while a product was computed")\ndone = True\n' > heart.py
@python3() { "$PYTHON" "$@"; }
cat heart.py
PYTHONPATH=$given python3 heart.py
PYTHONPATH=$kept python3 heart.py
