# numbers: within 1e-3
# the 256 points and the line that was found
"${BUILD:-build}/examples/linear_regression" points
