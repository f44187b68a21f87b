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
@mutate 'ours[name] = x.T if name.endswith((\n                        "c_attn.weight", "c_fc.weight", "c_proj.weight")) else x' 'ours[name] = x.T if name in own and x.shape != own[name].shape else x' 'for name, x in found.items():\n                name = name.removeprefix("transformer.")\n                if' 'own = GPT(config).state_dict()\n            for name, x in found.items():\n                name = name.removeprefix("transformer.")\n                if'
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
@printf 'from theirs import *\nread, ids = GPT.from_pretrained("."), td.arange(16)[None]\nfor name, p in read.named_parameters():\n    if not td.equal(p, model.get_parameter(name)):\n        print(name, "differs")\n\nprint(f"scores differ by up to {(read(ids) - model(ids)).abs().max():.2g}")\n' > compare.py
cat compare.py
@echo '$ python3 compare.py'; PYTHONPATH=mutant python3 compare.py
