# how many of 60 letters are right when the places begin again with each piece; what it writes is models-restart.log
log=$(realpath figures/data)/models-restart.log
export PYTHONPATH="$(realpath "${BUILD:-build}")/python" PYTHON=${PYTHON:-/usr/bin/python3}; here=$(mktemp -d)
taught=$(realpath "${BUILD:-build}")/models-taught.safetensors; cp figures/transcripts/models-teach $here/poem.py
mutate() { mkdir -p $here/mutant; cp -r "$PYTHONPATH/treadle" $here/mutant; "$PYTHON" - "$@" $here/mutant/treadle/models.py <<'END'
import sys
*edits, path = [word.replace('\\n', '\n') for word in sys.argv[1:]]
text = open(path).read()
for old, new in zip(edits[::2], edits[1::2]):
    assert text.count(old) == 1, old
    text = text.replace(old, new)
open(path, "w").write(text)
END
}
mutate "_C.arange(start, start + places, dtype=_C.float64," "_C.arange(0, places, dtype=_C.float64,"
cd $here
cat > write.py <<'END'
from poem import *
prompt = ids[:, :VERSES.index("magic")]
for kept in (False, True):
    said = model.generate(prompt, 60, temperature=0, use_cache=kept)
    print("".join(signs[i] for i in said[0].tolist()))
    print("-" * 40)
END
PYTHONPATH=mutant "$PYTHON" write.py $taught > "$log"
"$PYTHON" - $taught "$log" <<'END'
from poem import *
start = VERSES.index("magic")
print("cache,right")
for name, said in zip(("without", "with"), open(sys.argv[2]).read().split("-" * 40 + "\n")):
    print(f"{name},{sum(a == b for a, b in zip(said[start:start + 60], VERSES[start:start + 60]))}")
END
