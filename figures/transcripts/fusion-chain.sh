@cd "${BUILD:-build}/examples"
TREADLE_CACHE="$(mktemp -d)" ./fuse_chain
