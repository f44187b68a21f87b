/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* The rows of all elementwise operators.  Define

       ROW(name, formula, sentence, operands, dtypes, flags)

   and, where they matter, CURVE_OF, INPLACE, UNARY_RULE and
   BINARY_RULE, then include this file; it undefines these. */
/* rows: give undefined row kinds no meaning */
#ifndef ROW
#define ROW(...)
#endif
#ifndef INPLACE
#define INPLACE(name, row, sentence)
#endif
#ifndef UNARY_RULE
#define UNARY_RULE(name, gradient)
#endif
#ifndef BINARY_RULE
#define BINARY_RULE(name, gradient_a, gradient_b)
#endif
/* rows: what a kind of row says */
#define UNARY(...) ROW(__VA_ARGS__, 1, FLOATS, AS_FLOAT)
#define UNARY_SAME(...) ROW(__VA_ARGS__, 1, NUMBERS, ANY)
#define PREDICATE(...) ROW(__VA_ARGS__, 1, TESTS, TO_BOOL)
#define BINARY(...) ROW(__VA_ARGS__, 2, ALL, ANY)
#define BINARY_NUMBER(...) ROW(__VA_ARGS__, 2, NUMBERS, ANY)
#define BINARY_FLOAT(...) ROW(__VA_ARGS__, 2, FLOATS, AS_FLOAT)
#define COMPARE(...) ROW(__VA_ARGS__, 2, TESTS, TO_BOOL)
#define CURVE(...) ROW(__VA_ARGS__, 1, FLOATS, ANY)
#define BITWISE(...) ROW(__VA_ARGS__, 2, WHOLE, ANY)
#ifndef CURVE_OF
#define CURVE_OF(name, parameter, ...) \
    ROW(name, __VA_ARGS__, 2, FLOATS, OF_FLOAT)
#endif

/* arithmetic: elementwise table */
BINARY(add, a + b, "Sum of two tensors, or a tensor and a scalar.")
BINARY_NUMBER(sub, a - b, "Difference input - other.")
BINARY(mul, a * b, "Product of two tensors, or a tensor and a scalar.")
BINARY_FLOAT(div, a / b,
    "Quotient input / other; integers give float32.")
UNARY(reciprocal, 1 / x, "1 / x.")
UNARY_SAME(neg, -x, "-x.")
UNARY_SAME(abs, p_abs(x), "Absolute value.")
UNARY_SAME(sign, (x > 0) - (x < 0),
    "-1, 0 or 1 by the sign; 0 for NaN.")
UNARY_SAME(square, x * x, "x * x.")
UNARY_SAME(cube, x * x * x, "x * x * x.")
INPLACE(add_, add, "Adds other to input, in place.")
INPLACE(sub_, sub, "Subtracts other from input, in place.")
INPLACE(mul_, mul, "Multiplies input by other, in place.")
INPLACE(div_, div,
    "Divides input by other, in place; input must be a float.")
UNARY(exp, p_exp(x), "e to the power of x, within 2 ulp in float32.")
UNARY(log, p_log(x),
    "Natural logarithm, within 2 ulp in float32; -inf at 0, NaN below.")
UNARY(sqrt, p_sqrt(x), "Square root, correctly rounded; NaN below 0.")
UNARY(rsqrt, 1 / p_sqrt(x), "1 / sqrt(x).")
BINARY_NUMBER(pow, p_pow(a, b),
    "input to the power of other; 0 to the power 0 is 1.")
UNARY(sin, p_sin(x), "Sine, in radians, within 2 ulp in float32.")
UNARY(cos, p_cos(x), "Cosine, in radians, within 2 ulp in float32.")
UNARY(tanh, p_tanh(x), "Hyperbolic tangent, within 2 ulp in float32.")
UNARY(sigmoid, 1 / (1 + p_exp(-x)),
    "Logistic function 1 / (1 + exp(-x)).")
UNARY_SAME(relu, select(x < 0, 0, x), "max(x, 0); NaN stays NaN.")
BINARY(maximum, select((a != a) | (a > b), a, b),
    "Greater of two elements; NaN if either is.")
BINARY(minimum, select((a != a) | (a < b), a, b),
    "Smaller of two elements; NaN if either is.")
COMPARE(eq, a == b, "True where input equals other.")
COMPARE(ne, a != b, "True where input differs from other.")
COMPARE(lt, a < b, "True where input < other.")
COMPARE(le, a <= b, "True where input <= other.")
COMPARE(gt, a > b, "True where input > other.")
COMPARE(ge, a >= b, "True where input >= other.")
PREDICATE(isnan, x != x, "True where an element is not a number.")
PREDICATE(logical_not, x == 0,
    "True where an element is zero or false.")
/* rules: elementwise table */
UNARY_RULE(neg, -g)
UNARY_RULE(exp, g * y)
UNARY_RULE(log, g / x)
UNARY_RULE(sqrt, g / (2 * y))
UNARY_RULE(rsqrt, K(-0.5) * g * y * y * y)
UNARY_RULE(square, 2 * g * x)
UNARY_RULE(cube, 3 * g * x * x)
UNARY_RULE(reciprocal, -g * y * y)
UNARY_RULE(sin, g * p_cos(x))
UNARY_RULE(cos, -g * p_sin(x))
UNARY_RULE(tanh, g * (1 - y * y))
UNARY_RULE(sigmoid, g * y * (1 - y))
BINARY_RULE(div, g / b, -g * (a / b) / b)
UNARY_RULE(abs, select(x > 0, g, select(x < 0, -g, 0)))
UNARY_RULE(relu, select(y <= 0, 0, g))
UNARY_RULE(sign, 0)
BINARY_RULE(maximum, select(a < b, 0, select(a == b, g / 2, g)),
    select(a > b, 0, select(a == b, g / 2, g)))
BINARY_RULE(minimum, select(a > b, 0, select(a == b, g / 2, g)),
    select(a < b, 0, select(a == b, g / 2, g)))
BINARY_RULE(pow, select(b == 0, 0, g * b * p_pow(a, b - 1)),
    select(a == 0, select(b >= 0, 0, g * y * p_log(a)),
           g * y * p_log(a)))
/* activations: elementwise table */
UNARY(expm1, p_expm1(x), "exp(x) - 1, accurate near 0.")
UNARY(log1p, p_log1p(x), "log(1 + x), accurate near 0.")
UNARY(log2, p_log2(x), "Logarithm to base 2.")
UNARY(log10, p_log10(x), "Logarithm to base 10.")
UNARY(exp2, p_exp2(x), "2 to the power of x.")
UNARY_RULE(expm1, g * (y + 1))
UNARY_RULE(log1p, g / (1 + x))
UNARY_RULE(log2, g / (x * K(0.6931471805599453)))
UNARY_RULE(log10, g / (x * K(2.302585092994046)))
UNARY_RULE(exp2, g * y * K(0.6931471805599453))
BINARY_FLOAT(logaddexp, select(a == b, a + K(0.6931471805599453),
    select(a > b, a, b) - p_logsigmoid(p_abs(a - b))),
    "log(exp(input) + exp(other)), which cannot overflow.")
BINARY_FLOAT(xlogy, select(b != b, b, select(a == 0, 0, a * p_log(b))),
    "input * log(other); 0 where input is 0.")
BINARY_RULE(logaddexp, g * p_sigmoid(a - b), g * p_sigmoid(b - a))
BINARY_RULE(xlogy, select(a == 0, select(b <= 0, 0, g * p_log(b)),
    g * p_log(b)), g * a / b)
UNARY(tan, p_tan(x), "Tangent, in radians.")
UNARY(asin, p_asin(x),
    "Angle in [-pi/2, pi/2] whose sine is the element.")
UNARY(acos, p_acos(x), "Angle in [0, pi] whose cosine is the element.")
UNARY(atan, p_atan(x),
    "Angle in (-pi/2, pi/2) whose tangent is the element.")
UNARY(sinh, p_sinh(x), "Hyperbolic sine.")
UNARY(cosh, p_cosh(x), "Hyperbolic cosine.")
UNARY(asinh, p_asinh(x), "Number whose hyperbolic sine is the element.")
UNARY(acosh, p_acosh(x),
    "Number, at least 0, whose hyperbolic cosine it is.")
UNARY(atanh, p_atanh(x),
    "Number whose hyperbolic tangent is the element.")
BINARY_FLOAT(atan2, p_atan2(a, b),
    "Angle of the point (other, input), in (-pi, pi].")
BINARY_FLOAT(hypot, p_hypot(a, b),
    "sqrt(input^2 + other^2) without overflow.")
UNARY_RULE(tan, g * (1 + y * y))
UNARY_RULE(asin, g / p_sqrt(1 - x * x))
UNARY_RULE(acos, -g / p_sqrt(1 - x * x))
UNARY_RULE(atan, g / (1 + x * x))
UNARY_RULE(sinh, g * p_cosh(x))
UNARY_RULE(cosh, g * p_sinh(x))
UNARY_RULE(asinh, g / p_sqrt(x * x + 1))
UNARY_RULE(acosh, g / p_sqrt(x * x - 1))
UNARY_RULE(atanh, g / (1 - x * x))
BINARY_RULE(atan2, g * b / (a * a + b * b), -g * a / (a * a + b * b))
BINARY_RULE(hypot, g * a / y, g * b / y)
UNARY(erf, p_erf(x), "Error function, within 2 ulp in float32.")
UNARY(erfc, p_erfc(x), "1 - erf(x), accurate where erf is near 1.")
UNARY_RULE(erf, g * (K(1.1283791670955126) * p_exp(-x * x)))
UNARY_RULE(erfc, -g * (K(1.1283791670955126) * p_exp(-x * x)))
UNARY_SAME(floor, p_floor(x), "Greatest whole number not above x.")
UNARY_SAME(ceil, p_ceil(x), "Smallest whole number not below x.")
UNARY_SAME(round, p_round(x),
    "Nearest whole number; halves go to the even one.")
UNARY_SAME(trunc, p_trunc(x),
    "Each element without its fraction, towards zero.")
UNARY_SAME(frac, x - p_trunc(x), "Fraction, with its sign.")
UNARY_RULE(floor, 0)
UNARY_RULE(ceil, 0)
UNARY_RULE(round, 0)
UNARY_RULE(trunc, 0)
UNARY_RULE(frac, g)
BINARY_NUMBER(fmod, p_fmod(a, b),
    "Rest of a division, with the sign of input.")
BINARY_NUMBER(remainder, p_remainder(a, b),
    "Rest of a division, with the sign of other; Python's %.")
BINARY_NUMBER(floor_divide, p_floor_divide(a, b),
    "Quotient rounded down; Python's //.")
BINARY_RULE(fmod, g, -g * p_trunc(a / b))
BINARY_RULE(remainder, g, -g * p_floor_divide(a, b))
BINARY_RULE(floor_divide, 0, 0)
COMPARE(logical_and, select(a != 0, b != 0, 0),
    "True where both elements differ from 0.")
COMPARE(logical_or, (a != 0) | (b != 0),
    "True where an element differs from 0.")
COMPARE(logical_xor, (a != 0) != (b != 0),
    "True where one of two elements differs from 0.")
BITWISE(bitwise_and, p_bitwise_and(a, b),
    "Bits set in both, of integers or bools.")
BITWISE(bitwise_or, p_bitwise_or(a, b),
    "Bits set in either, of integers or bools.")
BITWISE(bitwise_xor, p_bitwise_xor(a, b),
    "Bits set in one of two, of integers or bools.")
BITWISE(bitwise_left_shift, p_bitwise_left_shift(a, b),
    "input * 2^other of integers.")
BITWISE(bitwise_right_shift, p_bitwise_right_shift(a, b),
    "input / 2^other of integers, rounded down.")
PREDICATE(isfinite, x - x == 0,
    "True where an element is neither infinite nor NaN.")
PREDICATE(isinf, (x == x) != (x - x == 0),
    "True where an element is infinite.")
PREDICATE(isposinf, select(x > 0, x - x != 0, 0),
    "True where an element is inf.")
PREDICATE(isneginf, select(x < 0, x - x != 0, 0),
    "True where an element is -inf.")
BINARY(fmax, select((b != b) | (a >= b), a, b),
    "Greater of two elements; of a number and NaN, the number.")
BINARY(fmin, select((b != b) | (a <= b), a, b),
    "Smaller of two elements; of a number and NaN, the number.")
BINARY(heaviside, select(a == 0, b, a > 0),
    "0 below zero, 1 above, and other at zero.")
BINARY_RULE(fmax, select((b != b) | (a >= b), g, 0),
    select((b != b) | (a >= b), 0, g))
BINARY_RULE(fmin, select((b != b) | (a <= b), g, 0),
    select((b != b) | (a <= b), 0, g))
CURVE(silu, x * p_sigmoid(x), "x * sigmoid(x), also called swish.")
CURVE(logsigmoid, select(x < 0, x, 0) - p_log1p(p_exp(-p_abs(x))),
    "log(sigmoid(x)), which cannot overflow.")
CURVE(mish, x * p_tanh(-p_logsigmoid(-x)), "x * tanh(log(1 + exp(x))).")
CURVE(gelu_erf,
    GELU(K(0.5) * x * (1 + p_erf(x * K(0.7071067811865476)))),
    "x * P(a normal number is below x), within 7 ulp; see gelu.")
CURVE(gelu_slope, GELU_SLOPE(K(0.5) * (1 + p_erf(x
    * K(0.7071067811865476))) + x * (K(0.3989422804014327)
    * p_exp(K(-0.5) * x * x))), "The slope of gelu_erf.")
CURVE(gelu_tanh, x * p_sigmoid(K(1.5957691216057308)
    * (x + K(0.044715) * x * x * x)),
    "gelu with the probability approximated by a tanh.")
CURVE(selu, K(1.0507009873554805) * select(x > 0, x,
    K(1.6732632423543772) * p_expm1(select(x > 0, 0, x))),
    "The self-normalising exponential linear unit.")
CURVE(hardsigmoid, select(x < -3, 0, select(x > 3, 1, x / 6 + K(0.5))),
    "x / 6 + 1 / 2, held between 0 and 1.")
CURVE(hardswish, x * select(x < -3, 0, select(x > 3, 1,
    x / 6 + K(0.5))), "x * hardsigmoid(x).")
UNARY(softsign, x / (1 + p_abs(x)), "x / (1 + |x|).")
UNARY_SAME(relu6, select(x < 0, 0, select(x > 6, 6, x)),
    "Each element held between 0 and 6; the slope is 0 there.")
UNARY_RULE(silu, g * p_sigmoid(x) * (1 + x * (1 - p_sigmoid(x))))
UNARY_RULE(logsigmoid, g * p_sigmoid(-x))
UNARY_RULE(mish, g * (p_tanh(-p_logsigmoid(-x)) + x * p_sigmoid(x)
    * (1 - p_tanh(-p_logsigmoid(-x)) * p_tanh(-p_logsigmoid(-x)))))
UNARY_RULE(gelu_erf, g * p_gelu_slope(x))
UNARY_RULE(gelu_slope, g * (K(0.3989422804014327)
    * p_exp(K(-0.5) * x * x) * (2 - x * x)))
UNARY_RULE(gelu_tanh, g * p_sigmoid(K(1.5957691216057308)
    * (x + K(0.044715) * x * x * x)) * (1 + x * (K(1.5957691216057308)
    * (1 + K(0.134145) * x * x)) * (1 - p_sigmoid(K(1.5957691216057308)
    * (x + K(0.044715) * x * x * x)))))
UNARY_RULE(selu, g * select(x > 0, K(1.0507009873554805),
    K(1.7580993408473766) * p_exp(select(x > 0, 0, x))))
UNARY_RULE(hardsigmoid, select(x > -3, select(x < 3, g / 6, 0), 0))
UNARY_RULE(hardswish, select(x <= -3, 0, select(x >= 3, g,
    g * (x / 3 + K(0.5)))))
UNARY_RULE(softsign, g / ((1 + p_abs(x)) * (1 + p_abs(x))))
UNARY_RULE(relu6, select(y > 0, select(y < 6, g, 0), 0))
CURVE_OF(leaky_relu, "negative_slope=0.01", select(a > 0, a, a * b),
    "x above 0 and negative_slope * x below.")
CURVE_OF(elu, "alpha=1.0",
    select(a > 0, a, b * p_expm1(select(a > 0, 0, a))),
    "x above 0 and alpha * (exp(x) - 1) below.")
CURVE_OF(softplus_curve, "beta=1.0", -p_logsigmoid(-a * b) / b,
    "log(1 + exp(beta * x)) / beta of each element.")
BINARY_RULE(leaky_relu, select(a > 0, g, g * b),
    select(a > 0, 0, g * a))
BINARY_RULE(elu, select(a > 0, g, g * b * p_exp(select(a > 0, 0, a))),
    select(a > 0, 0, g * p_expm1(select(a > 0, 0, a))))
BINARY_RULE(softplus_curve, g * p_sigmoid(a * b), (g * a
    * p_sigmoid(a * b) + g * p_logsigmoid(-a * b) / b) / b)
/* vocabulary: elementwise table */
UNARY(lgamma, p_lgamma(x), "log |Gamma(x)|; at n + 1, log n!.")
UNARY(digamma, p_digamma(x), "Derivative of lgamma.")
UNARY(erfinv, p_erfinv(x),
    "The number whose erf is each element; inf at 1.")
BINARY_FLOAT(zeta, p_zeta(a, b),
    "Hurwitz zeta, the sum over k >= 0 of 1 / (other + k)^input.")
BINARY_FLOAT(copysign, p_copysign(a, b),
    "Size of input and sign of other.")
BINARY_FLOAT(nextafter, p_nextafter(a, b),
    "The next float from input towards other.")
BITWISE(gcd, p_gcd(a, b), "Greatest common divisor of integers.")
UNARY_RULE(lgamma, g * p_digamma(x))
UNARY_RULE(digamma, g * p_zeta(K(2), x))
UNARY_RULE(erfinv, g * K(0.8862269254527580) * p_exp(y * y))
BINARY_RULE(zeta, g * (a - a) / (a - a), -g * a * p_zeta(a + 1, b))
BINARY_RULE(copysign, select(a == 0, 0, g * y / a), 0)
/* losses: elementwise table */
BINARY_FLOAT(bend, select(p_abs(a) < b, K(0.5) * a * a,
                          b * (p_abs(a) - b * K(0.5))),
    "a^2 / 2 where |a| is below b, b (|a| - b / 2) above.")
BINARY_RULE(bend,
    g * select(p_abs(a) < b, a,
               b * select(a > 0, 1, select(a < 0, -1, a))),
    g * select(p_abs(a) < b, 0, p_abs(a) - b))
BINARY_FLOAT(bce_curve,
    -(b * select(p_log(a) < K(-100), K(-100), p_log(a))
      + (1 - b) * select(p_log1p(-a) < K(-100), K(-100), p_log1p(-a))),
    "-(t log p + (1 - t) log(1 - p)), logarithms held above -100.")
BINARY_RULE(bce_curve,
    g * (a - b) / select(a * (1 - a) < K(1e-12), K(1e-12), a * (1 - a)),
    g * (p_log1p(-a) - p_log(a)))

/* rows: forget the meanings of row kinds */
#undef ROW
#undef UNARY
#undef UNARY_SAME
#undef PREDICATE
#undef BINARY
#undef BINARY_NUMBER
#undef BINARY_FLOAT
#undef COMPARE
#undef CURVE
#undef BITWISE
#undef CURVE_OF
#undef INPLACE
#undef UNARY_RULE
#undef BINARY_RULE
