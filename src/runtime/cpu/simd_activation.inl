// The functions of filigree/activation.h and their derivatives on vectors. Included into a vector
// level's namespace by the bodies that need them.

// x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), written as x / (1 + e^-2u), which is the
// same and does not cancel for negative x.
[[gnu::always_inline]] inline Vec gelu_new(Vec x) {
  const Vec minus_2u = x * (-1.5957691216057308f - 0.07135481627260025f * x * x);
  return x / (1.0f + exp(minus_2u));
}

// Its derivative: with s = 1 / (1 + e^-2u), s + x s (1 - s) d(2u)/dx.
[[gnu::always_inline]] inline Vec gelu_new_slope(Vec x) {
  const Vec square = x * x;
  const Vec e = exp(x * (-1.5957691216057308f - 0.07135481627260025f * square));
  const Vec s = 1.0f / (1.0f + e);
  return s + x * s * (e * s) * (1.5957691216057308f + 0.21406444881780073f * square);
}

// P(N < x) of a normal variable, with e = e^(-x^2/2). The tail P(N > |x|) is e times a function of
// |x| that falls slowly: a polynomial in t = 1 / (1 + 0.3 |x| / sqrt(2)), fitted to a relative
// error of 2e-8 up to where e vanishes, so that nothing cancels in the left tail.
[[gnu::always_inline]] inline Vec normal_below(Vec x, Vec e) {
  const Vec size = x < Vec{} ? -x : x;
  const Vec t = 1.0f / (1.0f + 0.212132034356f * size);
  Vec p = broadcast(-0.129406546912f);
  p = p * t + 0.484951659336f;
  p = p * t - 0.510899932558f;
  p = p * t + 0.545983244175f;
  p = p * t - 0.0933140092573f;
  p = p * t + 0.214283643309f;
  p = p * t + 0.148527155254f;
  p = p * t + 0.170684647547f;
  p = p * t + 0.169190119704f;
  const Vec tail = 0.5f * t * p * e;
  const IntVec left = x < Vec{};
  return left ? tail : 1.0f - tail;
}

[[gnu::always_inline]] inline Vec gelu(Vec x) { return x * normal_below(x, exp(-0.5f * x * x)); }

[[gnu::always_inline]] inline Vec gelu_slope(Vec x) {
  const Vec e = exp(-0.5f * x * x);
  return normal_below(x, e) + 0.398942280401f * x * e;
}

[[gnu::always_inline]] inline Vec silu(Vec x) { return x / (1.0f + exp(-x)); }

[[gnu::always_inline]] inline Vec silu_slope(Vec x) {
  const Vec e = exp(-x);
  const Vec s = 1.0f / (1.0f + e);
  return s + x * s * (e * s);
}

[[gnu::always_inline]] inline Vec activated(Activation f, Vec x) {
  switch (f) {
    case Activation::kNone: return x;
    case Activation::kGeluNew: return gelu_new(x);
    case Activation::kGelu: return gelu(x);
    case Activation::kRelu: return x < Vec{} ? Vec{} : x;  // keeps a NaN
    case Activation::kSilu: return silu(x);
  }
  return x;
}

[[gnu::always_inline]] inline Vec activation_slope(Activation f, Vec x) {
  switch (f) {
    case Activation::kNone: return broadcast(1.0f);
    case Activation::kGeluNew: return gelu_new_slope(x);
    case Activation::kGelu: return gelu_slope(x);
    case Activation::kRelu: return x > Vec{} ? broadcast(1.0f) : Vec{};
    case Activation::kSilu: return silu_slope(x);
  }
  return x;
}
