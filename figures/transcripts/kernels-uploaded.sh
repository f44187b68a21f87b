# numbers: any
@figures/transcripts/plugin-mutant uploaded emulate elementwise.cu 'void each(row_job j)\n{' 'void each(const row_job *given)\n{\n    const row_job j = *given;' 'typedef void row_kernel(row_job);' 'typedef void row_kernel(const row_job *);' '    return start(task, kernel, blocks_for(j.at.total, TILE), THREADS,\n                 j);' '    static row_job uploaded;\n    uploaded = j;\n    return start(task, kernel, blocks_for(j.at.total, TILE), THREADS,\n                 &uploaded);'
@cd "${BUILD:-build}/mutants/uploaded"
./test_cuda | grep -o 'values.*expected 6\|.*FAILED.*'
