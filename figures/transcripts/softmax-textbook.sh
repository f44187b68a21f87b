@cd "${BUILD:-build}/examples"
./scores textbook
