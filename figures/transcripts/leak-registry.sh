# numbers: any
build/tests/chapters/test_leaks 2>&1 | grep -v '^\[.* RUN'
