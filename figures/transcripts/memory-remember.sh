@cd "${BUILD:-build}/examples"
./remember
./remember 37
