"""Rounding by chance.  SPDX-License-Identifier: MIT"""
from judge import *

UP = "the magnitude in steps, plus the chance, rounded down; a step is 2**(e - digits), e the exponent of x and at least that of the smallest normal"


def rounded(what, numbers, dtype="bfloat16", seed=1, formula=UP):
    case(f"{what}, to {dtype}", formula)
    same(f"td.manual_seed(seed); y = td.amp.stochastic_round(td.tensor(numbers), td.{dtype}); str(y.dtype), y.double().tolist()",
         seed=seed, numbers=numbers)


for seed in range(12):
    rounded("one between two", [1.001953125], seed=seed)
for dtype in "bfloat16", "float16":
    rounded("a number that is there", [1.0, 1.5, 0.25, 96.0, -3.0] * 5, dtype)
    rounded("numbers of one exponent", [1 + k / 50 for k in range(50)], dtype)
    rounded("numbers of many exponents", [3.14159 * 2.0**k for k in range(-12, 14)] * 4, dtype)
    rounded("negative numbers", [-1.1 * 1.3**k for k in range(-20, 20)] * 4, dtype)
    rounded("below the smallest normal number", [k * 1.7e-6 for k in range(40)] + [3e-8, 1e-9] * 10, dtype)
    rounded("below the smallest normal number of float32", [1e-39 * k for k in range(40)], dtype)
    case(f"zeros of both signs, to {dtype}", "the sign is that of x")
    same(f"td.amp.stochastic_round(td.tensor([0.0, -0.0, -1e-45]), td.{dtype}).signbit().tolist()")
    case(f"infinities and what is no number, to {dtype}", "what is not finite stays what it is")
    same(f"td.amp.stochastic_round(td.tensor([math.inf, -math.inf, math.nan, 1.0]), td.{dtype}).tolist()")
    case(f"nothing, a scalar, and a matrix on its side, to {dtype}", UP)
    same(f"[td.amp.stochastic_round(x, td.{dtype}, td.Generator().manual_seed(2)).tolist() for x in "
         "(td.ones(0), td.tensor(1.1), (td.arange(12.0) / 7).reshape(3, 4).t())]")
    case(f"many numbers at once, to {dtype}", UP + "; each has a chance of its own")
    same("td.manual_seed(9); x = td.rand(400000) + 1\n"
         f"[(td.amp.stochastic_round(x * 2.0**k, td.{dtype}).double() * td.arange(400000) % 1000003).sum().item() for k in (0, 3, -2)]")
case("the mean of many", "the expectation of the rounded number is the number")
close(ask("td.manual_seed(4); td.amp.stochastic_round(td.full((100000,), 1.001953125)).double().mean().item()"), 1.001953125, 1e-4)
end()
