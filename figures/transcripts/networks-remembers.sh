# numbers: within 2e-2
@figures/transcripts/mutant remembers examples/classifier.c classifier 'count_correct(t->net, t->test);\n        const int64_t all = td_dataset_size(t->test);' 'count_correct(t->net, t->train);\n        const int64_t all = td_dataset_size(t->train);'
@cd "${BUILD:-build}/mutants/remembers"
./classifier 2> /dev/null | tail -n 2
