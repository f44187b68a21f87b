# Twenty steps of the classifier, on the processor and on the fast emulator: seconds, the least of three.
export PYTHONPATH=${BUILD:-build}/python
once() {
    local began=$(date +%s.%N)
    "${PYTHON:-/usr/bin/python3}" generated/examples/classifier_device.py "$1" > /dev/null || exit 1
    echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }'
}
empty() { local began=$(date +%s.%N); "${PYTHON:-/usr/bin/python3}" -c 'import treadle' ; echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }'; }
least() { for _ in 1 2 3; do "$@"; done | sort -n | head -n 1; }
start=$(least empty)
echo device,seconds
echo "plain,$(least once cpu | awk -v s="$start" '{ print $1 - s }')"
TREADLE_CUDA=emulate
export TREADLE_CUDA
echo "emulated,$(least once cuda | awk -v s="$start" '{ print $1 - s }')"
