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
@cd $here; python3() { "$PYTHON" "$@"; }
@cat > theirs.py <<'END'
@import json, sys, treadle as td
@from treadle.models import GPT, GPTConfig
@sizes = dict(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=2)
@td.manual_seed(1)
@model = GPT(GPTConfig(**sizes))
@turned = ("c_attn.weight", "c_fc.weight", "c_proj.weight")
@td.save_file({"transformer." + n: (p.detach().T if n.endswith(turned) else p.detach()).clone().contiguous()
@               for n, p in model.named_parameters()}, "model.safetensors")
@json.dump({"model_type": "gpt2", "activation_function": "gelu_new", **sizes}, open("config.json", "w"))
@END
@"$PYTHON" theirs.py
@printf 'import treadle as td\nours = td.models.GPT.from_pretrained(".").state_dict()\nfor name, x in td.load_file("model.safetensors").items():\n    if x.ndim == 2:\n        own = name.removeprefix("transformer.")\n        print(f"{name:34} {list(x.shape)!s:9} {list(ours[own].shape)}")\n' > names.py
cat names.py
python3 names.py
