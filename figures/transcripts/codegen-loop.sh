@cd "${BUILD:-build}/examples"
./one-step code | sed -n '/ kernel_0(/,/^}/p'
