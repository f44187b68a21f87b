# numbers: within 1e-3
@figures/transcripts/mutant divided src/nn/losses.c test_losses '    if (e->reduction != TD_LOSS_MEAN)\n        return reduced(e->reduction, each);' '    return reduced(e->reduction, each);'
@cd "${BUILD:-build}/mutants/divided"
./test_losses | head -n 3
