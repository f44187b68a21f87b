# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}/python")" TREADLE_DATA="$(realpath "${TREADLE_DATA:-../shared/data}")"
@cd "$(mktemp -d)"
@python3() { "${PYTHON:-/usr/bin/python3}" "$@"; }
@treadle() { python3 -m treadle "$@"; }
@treadle train airline --epochs 1 > log; cp runs/airline/*.safetensors .; python3 -c "import os; s = open('model.safetensors', 'rb').read(); open('cut.safetensors', 'wb').write(s[:-1])"
@cat > evil.py <<'END'
@import os, pickle, zipfile
@class Evil:
@    def __reduce__(self):
@        return os.system, ("rm -r runs",)
@with zipfile.ZipFile("gift.pt", "w") as archive:
@    archive.writestr("gift/data.pkl", pickle.dumps(Evil(), 2))
@    archive.writestr("gift/version", "3\n")
@END
@python3 evil.py
treadle inspect model.safetensors
treadle inspect cut.safetensors
treadle inspect gift.pt 2>&1 | fold -s -w 76
