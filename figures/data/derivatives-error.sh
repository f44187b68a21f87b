# numbers: within 1e-2
# error of the difference quotient for each step width
"${BUILD:-build}/examples/derivatives" error
