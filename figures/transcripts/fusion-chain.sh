@cd "${BUILD:-build}/examples"
./one-step chain trace
./one-step chain plan
