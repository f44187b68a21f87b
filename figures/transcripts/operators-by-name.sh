# numbers: 0
build/examples/by_name arange 2 9 3
build/examples/by_name arange 2 9 0
build/examples/by_name arange 2 | fold -s -w 72
