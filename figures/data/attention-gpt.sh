# surprise of the GPT at text that was put aside, while it learns; what it printed is attention-gpt.log
PYTHONPATH="${BUILD:-build}/python" "${PYTHON:-/usr/bin/python3}" "${GENERATED:-generated}/examples/gpt.py" \
  "${TREADLE_DATA:-../shared/data}/text/tinyshakespeare.txt" > figures/data/attention-gpt.log
echo step,surprise
sed -n 's/^step *\([0-9]*\), surprise \([0-9.]*\)$/\1,\2/p' figures/data/attention-gpt.log
