# numbers: any
TIMEFORMAT="%U s"; D=/usr/share/datasets/fashion-mnist
time build/examples/no_library $D 0 > build/log
time build/examples/no_library $D 200 > build/log
time build/examples/classifier --steps 1 &> build/log
time build/examples/classifier --steps 201 &> build/log
