# numbers: within 1e-3
# the values of the classifier's step in its arena: stages from first to last, kilobytes from and upto
"${BUILD:-build}/examples/one-step" lives
