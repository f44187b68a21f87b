# numbers: within 2e-1
@figures/transcripts/mutant hoards examples/classifier.c classifier '        show_progress(t, epoch, steps, loss);\n        td_scope_end();\n        td_scope_begin();\n' '        show_progress(t, epoch, steps, loss);\n'
@peak() { "${PYTHON:-/usr/bin/python3}" -c 'import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); print("at most", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000, "MB")' "$@"; }
@cd "${BUILD:-build}"
peak examples/classifier --epochs 1
peak mutants/hoards/classifier --epochs 1
