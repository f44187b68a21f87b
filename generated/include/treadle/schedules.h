/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "schedules": edit that, not this file. */
/* The learning rate of step t = 0, 1, ..., of the names and arguments
   of treadle.optim.lr_scheduler.  A setting of zero that divides gives
   NaN or infinity, which td_set_learning_rate refuses. */
#pragma once
#include <math.h>

/* schedules: functions of schedules */
#define TD_RATE(name, ...) \
    static inline double td_##name(double base, double t, __VA_ARGS__)

TD_RATE(step_lr, double step_size, double gamma)
{
    return base * pow(gamma, floor(t / step_size));
}
TD_RATE(multi_step_lr,
        const double *milestones, int count, double gamma)
{
    for (int i = 0; i < count; i++)
        base *= t >= milestones[i] ? gamma : 1;
    return base;
}
TD_RATE(exponential_lr, double gamma)
{
    return base * pow(gamma, t);
}
TD_RATE(constant_lr, double factor, double total_iters)
{
    return t < total_iters ? base * factor : base;
}
TD_RATE(linear_lr,
        double start_factor, double end_factor, double total_iters)
{
    return base * (start_factor + (end_factor - start_factor)
                   * fmin(t, total_iters) / total_iters);
}
TD_RATE(polynomial_lr, double total_iters, double power)
{
    return base * pow(1 - fmin(t, total_iters) / total_iters, power);
}
/* From a to b on half a cosine. */
static inline double td_anneal(double a, double b, double part)
{
    return a + (b - a) * (1 - cos(acos(-1.0) * part)) / 2;
}
TD_RATE(cosine_annealing_lr, double t_max, double eta_min)
{
    return td_anneal(base, eta_min, t / t_max);
}
TD_RATE(cosine_annealing_warm_restarts,
        double t_0, double t_mult, double eta_min)
{
    while (t >= t_0 && t_0 >= 1 && t_mult >= 1)
        t -= t_0, t_0 *= t_mult;
    return td_anneal(base, eta_min, t / t_0);
}
TD_RATE(linear_warmup, double warmup_steps, double total_steps)
{
    return t < warmup_steps ? base * (t + 1) / warmup_steps
        : base * fmax(0, total_steps - t)
          / fmax(1, total_steps - warmup_steps);
}
TD_RATE(wsd,
        double warmup_steps, double stable_steps, double decay_steps,
        double min_lr_ratio)
{
    const double part = fmax(0, t - warmup_steps - stable_steps)
                      / fmax(1, decay_steps);
    return t < warmup_steps ? base * (t + 1) / warmup_steps
        : base * fmax(min_lr_ratio, 1 - part * (1 - min_lr_ratio));
}
TD_RATE(one_cycle_lr,
        double total_steps, double pct_start, double div_factor,
        double final_div_factor)
{
    const double least = base / div_factor;
    const double peak = pct_start * total_steps - 1;
    return t <= peak ? td_anneal(least, base, t / peak)
        : td_anneal(base, least / final_div_factor,
                    (t - peak) / (total_steps - 1 - peak));
}
