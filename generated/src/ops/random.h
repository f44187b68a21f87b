/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
/* Draws for kernels: one stream a call, one index an element. */
#pragma once
#include <treadle/op.h>
#include <treadle/random.h>
/* random: struct td_stream */
typedef struct { uint64_t start, step; } td_stream;
/* random: function td_mix */
/* SplitMix64's finaliser: Steele, Lea, Flood 2014, after Stafford. */
static inline uint64_t td_mix(uint64_t z)
{
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9;
    z ^= z >> 27;
    z *= 0x94d049bb133111eb;
    return z ^ (z >> 31);
}
/* random: function odd_step */
static inline uint64_t odd_step(uint64_t z)
{
    const uint64_t step = td_mix(z) | 1;
    const int changes = __builtin_popcountll(step ^ (step >> 1));
    return changes < 24 ? step ^ 0xaaaaaaaaaaaaaaaa : step;
}
/* random: function td_stream_of */
/* The row of the table that `state` points at. */
static inline td_stream td_stream_of(td_random_state state)
{
    const uint64_t golden = 0x9e3779b97f4a7c15;
    const uint64_t z = td_mix(state.seed + golden)
                     + state.stream * golden;
    return (td_stream){ td_mix(z), odd_step(z + golden) };
}
/* random: function td_draw */
static inline uint64_t td_draw(td_stream stream, uint64_t index)
{
    return td_mix(stream.start + (index + 1) * stream.step);
}
/* random: function td_draw_below */
/* A number from 0, ..., n-1, all equally likely; n = 0 means 2^64. */
static inline uint64_t td_draw_below(td_stream stream, uint64_t index,
                                     uint64_t n)
{
    /* fair-die: exercise fair-die */
    uint64_t x = td_draw(stream, index);
    if (n == 0)
        return x;
    const uint64_t unfair = -n % n;               /* 2^64 mod n */
    while (x < unfair)
        x = td_mix(x + stream.step);
    return x % n;
}
