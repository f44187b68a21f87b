@cd "${BUILD:-build}/examples"
./scores ours
