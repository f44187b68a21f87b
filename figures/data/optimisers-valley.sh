# numbers: within 1e-3
# fifteen steps on x^2/2 + 20 y^2/2 without and with momentum
awk 'BEGIN { x = mx = 10; y = my = 1.6; rate = 0.085; mu = 0.7; vx = vy = 0
  print "step,x,y,mx,my"
  for (t = 0; t <= 15; t++) {
    printf "%d,%.5f,%.5f,%.5f,%.5f\n", t, x, y, mx, my
    x -= rate * x; y -= rate * 20 * y
    vx = t ? mu * vx + mx : mx; vy = t ? mu * vy + 20 * my : 20 * my
    mx -= 0.05 * vx; my -= 0.05 * vy
  } }'
