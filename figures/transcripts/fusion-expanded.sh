@cd "${BUILD:-build}/examples"
./one-step | grep -E '^%(4|5|56) ='
./one-step expanded | grep -E '^%(3|4|6|7|65|66) ='
