# error of the difference quotient for each step width
"${BUILD:-build}/examples/dual_numbers" | sed -n '/^h,error/,$p'
