@export TREADLE_CACHE="$(mktemp -d)"
@cd "${BUILD:-build}/examples"
./fuse_chain
