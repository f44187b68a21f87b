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
@cd $here; python3() { "$PYTHON" "$@" $taught; }
@cat > cached.py <<'END'
@from poem import *
@F = td.nn.functional
@work = 0
@def counted(name, count):
@    function = getattr(F, name)
@    def call(*args, **named):
@        global work
@        work += count(*args)
@        return function(*args, **named)
@    setattr(F, name, call)
@inside = td.nn.Linear.forward
@def forward(layer, x):
@    global work
@    work += x.numel() * layer.out_features
@    return inside(layer, x)
@td.nn.Linear.forward = forward
@counted("linear", lambda x, w, b=None: x.numel() * len(w))
@counted("scaled_dot_product_attention", lambda q, k, v, *_: 2 * q.numel() * k.shape[-2])
@END
@printf 'import cached\nfrom poem import *\nfor letters in (8, 16, 32, 64, 128):\n    said = []\n    for kept in (False, True):\n        cached.work = 0\n        said.append(model.generate(ids[:, :1], letters, temperature=0, use_cache=kept))\n        print(f"{cached.work / 1e6:8.2f} million", end="  ")\n    print(letters, "letters, the same:", td.equal(*said))\n' > write.py
cat write.py
python3 write.py
