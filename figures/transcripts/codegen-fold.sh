@cd "${BUILD:-build}/examples"
@printf '$ ./one-step code      # of the fold: the lanes\n'
@./one-step code | sed -n '/ kernel_5(/,/^}/p' | sed -n '/int64_t at = 0/,/JOIN/s/^    //p'
