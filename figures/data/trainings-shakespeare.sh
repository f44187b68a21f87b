# tiny Shakespeare by a GPT: losses in nats a character, after each epoch (3 minutes on 2 cores); what it wrote is trainings-shakespeare.log
out=$(mktemp -d)
treadle() { PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" -m treadle "$@" --data "${TREADLE_DATA:-../shared/data}" --out "$out"; }
treadle train shakespeare >&2
treadle sample shakespeare --length 420 > figures/data/trainings-shakespeare.log
cat "$out/log.csv"
rm -r "$out"
