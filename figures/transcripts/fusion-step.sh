@cd "${BUILD:-build}/examples"
./one-step plan | cut -c1-74 | sed 8,19d
