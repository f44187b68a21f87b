@cd "${BUILD:-build}/examples"
./sgemm deal
