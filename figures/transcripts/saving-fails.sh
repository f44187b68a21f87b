# numbers: any
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@cat > write.py <<'END'
@import array, os, sys
@value, kept = int(sys.argv[1]), int(sys.argv[2])
@weights = bytes(array.array("f", [value] * 2500))
@with open("weights", "wb", buffering=0) as file:
@    file.write(weights[:kept])
@    if kept < len(weights):         # no more memory
@        os.kill(os.getpid(), 9)
@END
python3 write.py 1 10000; stat -c %s weights
@{ python3 write.py 2 4321; } 2> /dev/null; true
@echo '$ python3 write.py 2 4321; stat -c %s weights; od -An -f -N 16 weights'; echo Killed; stat -c %s weights; od -An -f -N 16 weights
