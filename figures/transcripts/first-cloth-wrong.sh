# numbers: any
@D=${FASHION:-/usr/share/datasets/fashion-mnist}; W=$(mktemp -d)
@try() { sed "$1" generated/examples/no_library.c > $W/wrong.c && gcc -O2 -w $W/wrong.c -o $W/wrong -lz -lm && $W/wrong $D 200 | tail -2; }
try 's/d_x\[p \* l->in + i\] += d/d_x[p * l->in + i] = d/'
try 's/y += l->weight\[j \* l->in + i\]/y += l->weight[i * l->out + j]/'
try 's/expf(s\[k\] - top)/expf(s[k])/; s/labels, 0.1f/labels, 2.0f/'
try 's/labels, 0.1f/labels, 2.0f/'
@rm -rf $W
