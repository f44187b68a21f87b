# numbers: any
@seconds() { local from=$(date +%s%N); "$@" > /dev/null 2>&1; echo "$(( ($(date +%s%N) - from) / 1000000 ))"; }
@nothing=$(seconds build/examples/no_library /usr/share/datasets/fashion-mnist 0)
@by_hand=$(seconds build/examples/no_library /usr/share/datasets/fashion-mnist 200)
@start=$(seconds build/examples/classifier --steps 1)
@library=$(seconds build/examples/classifier --steps 201)
@ratio=$(( 10 * (by_hand - nothing) / (library - start) ))
@echo "200 steps by hand, as a multiple of 200 steps with the library: $(( ratio / 10 )).$(( ratio % 10 ))"
