"${BUILD:-build}/examples/sgemm" deal
