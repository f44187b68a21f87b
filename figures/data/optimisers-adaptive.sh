# numbers: within 1e-3
# the step of one number: gradient 1 at every tenth step, 0 otherwise
awk 'BEGIN { s = r = m = v = 0; eps = 1e-8; print "step,adagrad,rmsprop,adam"
  for (t = 1; t <= 60; t++) {
    g = t % 10 == 1; s += g * g; r = 0.9 * r + 0.1 * g * g
    m = 0.9 * m + 0.1 * g; v = 0.99 * v + 0.01 * g * g
    printf "%d,%s,%s,%.5f\n", t,
      g ? sprintf("%.5f", g / (sqrt(s) + eps)) : "nan",
      g ? sprintf("%.5f", g / (sqrt(r) + eps)) : "nan",
      m / (1 - 0.9 ^ t) / (sqrt(v / (1 - 0.99 ^ t)) + eps)
  } }'
