@cd "${BUILD:-build}/examples"
./one-step > once; ./one-step check < once > twice; wc -l once twice
cmp once twice && echo 'the same, letter for letter'
@rm -f once twice
