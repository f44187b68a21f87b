@cd "${BUILD:-build}/examples"
./task-queue
timeout 2 ./task-queue nested; echo "exit status $?"
