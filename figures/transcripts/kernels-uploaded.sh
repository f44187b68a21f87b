# numbers: any
@figures/transcripts/plugin-mutant uploaded emulate elementwise.cu 'void each(row_job j)\n{' 'void each(const row_job *given)\n{\n    const row_job j = *given;' 'typedef void row_kernel(row_job);' 'typedef void row_kernel(const row_job *);' '    TD_LAUNCH(kernel, blocks_for(j.at.total, TILE), dim3(THREADS), 0,\n              stream_of(task->device), j);\n    return true;\n}\n\n/* kernels: kernel convert' '    static row_job uploaded;\n    uploaded = j;\n    TD_LAUNCH(kernel, blocks_for(j.at.total, TILE), dim3(THREADS), 0,\n              stream_of(task->device), &uploaded);\n    return true;\n}\n\n/* kernels: kernel convert'
@cd "${BUILD:-build}/mutants/uploaded"
./test_cuda | grep -o 'values.*expected 6\|.*FAILED.*'
