# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}")/python" PYTHON=${PYTHON:-/usr/bin/python3}; here=$(mktemp -d)
@taught=$(realpath "${BUILD:-build}")/models-taught.safetensors; cp figures/transcripts/models-teach $here/poem.py
@mutate() { mkdir -p $here/mutant; cp -r "$PYTHONPATH/treadle" $here/mutant; "$PYTHON" - "$@" $here/mutant/treadle/models.py <<'END'
@import sys
@*edits, path = [word.replace('\\n', '\n') for word in sys.argv[1:]]
@text = open(path).read()
@for old, new in zip(edits[::2], edits[1::2]):
@    assert text.count(old) == 1, old
@    text = text.replace(old, new)
@open(path, "w").write(text)
@END
@}
@mutate "_C.arange(start, start + places, dtype=_C.float64," "_C.arange(0, places, dtype=_C.float64,"
@cd $here; python3() { "$PYTHON" "$@" $taught; }
@printf 'from poem import *\nprompt = ids[:, :VERSES.index("magic")]\nfor kept in (False, True):\n    said = model.generate(prompt, 60, temperature=0, use_cache=kept)\n    print("".join(signs[i] for i in said[0].tolist()))\n    print("-" * 40)\n' > write.py
cat write.py
@echo '$ python3 write.py'; PYTHONPATH=mutant python3 write.py
