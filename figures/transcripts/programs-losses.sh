# numbers: within 1e-4
@export TREADLE_CACHE="$(mktemp -d)"
@cd "${BUILD:-build}/examples"
./one-step losses
