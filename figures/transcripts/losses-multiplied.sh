# numbers: within 1e-3
@figures/transcripts/mutant multiplied src/nn/losses.c test_losses 'td_tensor *each = td_where_scalar(counts, td_neg(share),\n                                      td_float(0));' 'td_tensor *each = td_mul(td_neg(share), counts);'
@cd "${BUILD:-build}/mutants/multiplied"
./test_losses
