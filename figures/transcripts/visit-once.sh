@cd "${BUILD:-build}/examples"
./visit_once
