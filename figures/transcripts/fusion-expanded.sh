@cd "${BUILD:-build}/examples"
./one-step | grep -E '^%(4|5|53) ='
./one-step expanded | grep -E '^%(3|4|6|7|62|63) ='
