# numbers: any
bash generated/examples/within.sh 400 build/examples/leak; echo "exit $?"
