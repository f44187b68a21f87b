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
@mutate "device=q.device).tril(start)" "device=q.device).tril(start + 1)"
@cd $here; python3() { "$PYTHON" "$@" $taught; }
@printf 'from poem import *\ndef read(*pieces):\n    cache, scores, start = {}, [], 0\n    with td.no_grad():\n        for n in pieces:\n            scores.append(model(ids[:, start:start + n], cache))\n            start += n\n    return td.cat(scores, 1)[0]\n\nonce = read(148)\nfor pieces in [1] * 148, [100, 48]:\n    print(len(pieces), "pieces, off by", f"{(read(*pieces) - once).abs().max():.0e}")\n' > pieces.py
cat pieces.py
@echo '$ python3 pieces.py'; PYTHONPATH=mutant python3 pieces.py
