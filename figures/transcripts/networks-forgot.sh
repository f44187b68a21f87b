# numbers: any
@figures/transcripts/mutant forgot examples/classifier.c classifier '    td_zero_grad(sgd);\n' ''
@cd "${BUILD:-build}/mutants/forgot"
@nth() { for n in "$@"; do echo "step $n: loss $(sed -n ${n}p losses)"; done; }
./classifier --steps 150 --losses losses > /dev/null 2>&1
nth 1 10 20 50 100 150
