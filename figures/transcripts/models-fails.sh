# numbers: any
@export PYTHONPATH="$(realpath "${BUILD:-build}")/python" PYTHON=${PYTHON:-/usr/bin/python3}; here=$(mktemp -d)
@sed '/^print(f/,$d' "${GENERATED:-generated}/examples/gpt.py" > $here/gpt.py; cp "${TREADLE_DATA:-../shared/data}/text/tinyshakespeare.txt" $here
@cd $here; python3() { "$PYTHON" "$@"; }
@cat > count.py <<'END'
@from gpt import *
@work = 0
@def counted(name, count):
@    function = getattr(F, name)
@    def call(*args, **named):
@        global work
@        work += count(*args)
@        return function(*args, **named)
@    setattr(F, name, call)
@counted("linear", lambda x, w, b=None: x.numel() * len(w))
@counted("scaled_dot_product_attention", lambda q, k, v, *_: 2 * q.numel() * k.shape[-2])
@print("letters   multiplications   to read them once   ratio")
@for letters in (8, 16, 32, 64):
@    work = 0; write(letters); wrote = work
@    with td.no_grad():
@        work = 0; gpt(data[None, :letters])
@    print(f"{letters:7}   {wrote / 1e6:7.1f} million   {work / 1e6:9.1f} million   {wrote / work:5.1f}")
@END
python3 count.py tinyshakespeare.txt
