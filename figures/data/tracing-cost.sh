# microseconds of an addition of four numbers on one thread, computed and recorded
"${BUILD:-build}/bench" tiny_op_overhead record_op_overhead | awk '
  $2 == 1 { us[$1] = $3 }
  END { printf "call,microseconds\nadd,%.2f\nrecord,%.2f\n", us["tiny_op_overhead"], us["record_op_overhead"] }'
