@file=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
@bytes() { zcat "$file" 2> /dev/null | head -c "$1"; }
bytes 16 | od -An -tx1
bytes 16 | od -An -td4
