# every case of make bench that computes on more than a few numbers, one thread: operations a byte, Gflop/s (the best of three runs), its bytes, and a name for some
for _ in 1 2 3; do "${BUILD:-build}/bench" --counts; done | awk -F, '
  $2 > 0 && $3 > 4096 { if (!($1 in us)) order[++n] = $1
           if (!($1 in us) || $4 < us[$1]) us[$1] = $4
           ops[$1] = $2; bytes[$1] = $3 }
  END { split("add_1000 add,sum_1000 sum,exp_1000 exp,softmax_1000 softmax,gemm_64 gemm 64,gemm_2048 gemm 2048,conv_3x3 convolution,step_gpt_char a GPT step,step_cnn_mnist MNIST", pairs, ",")
        for (i in pairs) { at = index(pairs[i], " "); label[substr(pairs[i], 1, at - 1)] = substr(pairs[i], at + 1) }
        print "case,intensity,rate,bytes,label"
        for (i = 1; i <= n; i++) { c = order[i]
            printf "%s,%.4g,%.4g,%.4g,%s\n", c, ops[c] / bytes[c], ops[c] / us[c] / 1e3, bytes[c], label[c] } }'
