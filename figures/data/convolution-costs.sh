# microseconds of a layer on one thread, by tiles, with runs of the buffer and with all columns, as make bench prints them
"${BUILD:-build}/bench" conv_3x3 conv_3x3_runs conv_3x3_columns grad_conv_3x3 grad_conv_3x3_runs grad_conv_3x3_columns |
  awk '$2 == 1 { us[$1] = $3 }
       END { print "pass,tiles,runs,columns"
             print "forward," us["conv_3x3"] "," us["conv_3x3_runs"] "," us["conv_3x3_columns"]
             print "with gradients," us["grad_conv_3x3"] "," us["grad_conv_3x3_runs"] "," us["grad_conv_3x3_columns"] }'
