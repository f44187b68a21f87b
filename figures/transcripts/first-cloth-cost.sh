# numbers: any
TIMEFORMAT="%R s"
time build/examples/no_library /usr/share/datasets/fashion-mnist 0 > build/log
time build/examples/no_library /usr/share/datasets/fashion-mnist 200 > build/log
time build/examples/classifier --steps 1 > build/log
time build/examples/classifier --steps 201 > build/log
