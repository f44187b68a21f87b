# numbers: any
@cd "${BUILD:-build}/examples"
@ulimit -c 0
ulimit -v 100000
./forget
@true
