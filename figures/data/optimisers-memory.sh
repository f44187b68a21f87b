# numbers: within 1e-3
# half of x^2 + 20 y^2 after each step, for four lengths of memory
awk 'BEGIN { n = split("0 0.7 0.9 0.98", mu, " "); print "step,plain,seven,nine,long"
  for (k = 1; k <= n; k++) { x[k] = 10; y[k] = 1.6 }
  for (t = 0; t <= 60; t++) {
    printf "%d", t
    for (k = 1; k <= n; k++) {
      printf ",%.4g", (x[k] * x[k] + 20 * y[k] * y[k]) / 2
      vx[k] = mu[k] * vx[k] + x[k]; vy[k] = mu[k] * vy[k] + 20 * y[k]
      x[k] -= 0.05 * vx[k]; y[k] -= 0.05 * vy[k]
    }
    print ""
  } }'
