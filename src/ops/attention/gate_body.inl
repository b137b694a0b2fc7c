// Rows of gated attention, compiled once per vector level. See filigree/ops.h for the formulas.

// The uniform numbers of keys [0, count) of one row, rounded up to 64: u needs that much room.
inline void gate_noise_row(std::uint64_t key, std::uint32_t layer, std::uint32_t row,
                           std::uint32_t query, std::int64_t count, float* u) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  for (std::int64_t j0 = 0; j0 < count; j0 += 64) {
    // Sixteen blocks side by side, in the shape that vectorises.
    std::uint32_t c0[16], c1[16], c2[16], c3[16];
    for (std::uint32_t lane = 0; lane < 16; ++lane) {
      c0[lane] = static_cast<std::uint32_t>(j0) / 4 + lane;
      c1[lane] = query, c2[lane] = row, c3[lane] = layer;
    }
    std::uint32_t key0 = static_cast<std::uint32_t>(key);
    std::uint32_t key1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int lane = 0; lane < 16; ++lane) {
        const std::uint64_t product0 = std::uint64_t{kMultiplier0} * c0[lane];
        const std::uint64_t product1 = std::uint64_t{kMultiplier1} * c2[lane];
        const std::uint32_t next0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1[lane] ^ key0;
        const std::uint32_t next2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3[lane] ^ key1;
        c1[lane] = static_cast<std::uint32_t>(product1);
        c3[lane] = static_cast<std::uint32_t>(product0);
        c0[lane] = next0, c2[lane] = next2;
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    for (int lane = 0; lane < 16; ++lane) {
      u[j0 + lane] =
          (static_cast<float>(static_cast<std::int32_t>(c0[lane] >> 9)) + 0.5f) * 0x1p-23f;
      u[j0 + 16 + lane] =
          (static_cast<float>(static_cast<std::int32_t>(c1[lane] >> 9)) + 0.5f) * 0x1p-23f;
      u[j0 + 32 + lane] =
          (static_cast<float>(static_cast<std::int32_t>(c2[lane] >> 9)) + 0.5f) * 0x1p-23f;
      u[j0 + 48 + lane] =
          (static_cast<float>(static_cast<std::int32_t>(c3[lane] >> 9)) + 0.5f) * 0x1p-23f;
    }
  }
}

// Fills u with the row's noise, or with 1/2 (no noise: the gate is open when its logit is
// positive).
inline void row_noise(const AttentionShape& s, const GateArgs& gate, std::int64_t b, std::int64_t h,
                      std::int64_t i, std::int64_t count, float* u) {
  if (gate.uniform != nullptr) {
    const float* given = gate.uniform + ((b * s.H + h) * s.Tq + i) * s.Tk;
    __builtin_memcpy(u, given, static_cast<std::size_t>(count) * sizeof(float));
    for (std::int64_t j = count; j < count + kLanes; ++j) u[j] = 0.5f;
  } else {
    const auto row = static_cast<std::uint32_t>((gate.noise.first_batch + b) * s.H + h);
    gate_noise_row(gate_noise_key(gate.noise), gate.noise.layer, row,
                   static_cast<std::uint32_t>(s.Tk - s.Tq + i), count, u);
  }
}

// One edge's gate, for kLanes keys at once.
struct GateVectors {
  Vec expected;  // sigmoid(g)
  Vec relaxed;   // sigmoid(g + noise), whose slope the hard gate borrows
  IntVec open;   // all ones where the gate is open
};

// With E = e^-g and noise log u - log(1 - u):
//   sigmoid(g) = 1 / (1 + E)    sigmoid(g + noise) = u / (u + E (1 - u))    open: u > E (1 - u)
[[gnu::always_inline]] inline GateVectors gate_vectors(Vec score, float bias, bool sample,
                                                       const float* u) {
  GateVectors gate;
  const Vec E = exp(-(score + bias));
  gate.expected = 1.0f / (1.0f + E);
  if (sample) {
    const Vec uniform = load(u);
    const Vec closing = E * (1.0f - uniform);
    gate.relaxed = uniform / (uniform + closing);
    gate.open = uniform > closing;
  } else {
    gate.relaxed = gate.expected;
    gate.open = score + bias > broadcast(0.0f);
  }
  return gate;
}

// All ones in the lanes of a vector at j that lie in [first, count).
[[gnu::always_inline]] inline IntVec lanes_within(std::int64_t j, std::int64_t first,
                                                  std::int64_t count) {
  IntVec lanes;
  for (int lane = 0; lane < kLanes; ++lane)
    lanes[lane] = j + lane >= first && j + lane < count ? -1 : 0;
  return lanes;
}

[[gnu::always_inline]] inline Vec keep(IntVec mask, Vec value) {
  return (Vec)(mask & (IntVec)value);
}

// x holds dot products; becomes A e (unnormalised by `total`, which is returned), zero up to
// `padded`.
inline float gate_row(const AttentionArgs<>& args, std::int64_t b, std::int64_t h, std::int64_t i,
                      float* x, std::int64_t first, std::int64_t count, std::int64_t padded,
                      float maximum, float* u) {
  const AttentionShape& s = args.shape;
  const GateArgs& gate = args.gate;
  const float bias = gate.bias[h];
  if (gate.sample) row_noise(s, gate, b, h, i, count, u);
  const std::int64_t row = (b * s.H + h) * s.Tq + i;
  float* mask = gate.mask != nullptr ? gate.mask + row * s.Tk : nullptr;
  Vec total = {}, expected = {}, active = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const IntVec valid = lanes_within(j, first, count);
    const Vec score = load(x + j) * s.scale;
    const Vec a = keep(valid, exp(score - maximum));
    const GateVectors g = gate_vectors(score, bias, gate.sample, u + (gate.sample ? j : 0));
    const Vec open = keep(valid & g.open, broadcast(1.0f));
    total += a;
    expected += keep(valid, g.expected);
    active += open;
    store(x + j, a * open);
    if (mask != nullptr && j < s.Tk)
      store_edge(mask + j, s.Tk - j < kLanes ? s.Tk - j : kLanes, open);
  }
  if (mask != nullptr)
    for (std::int64_t j = padded; j < s.Tk; ++j) mask[j] = 0.0f;
  gate.expected_rows[row] = sum(expected);
  gate.active_rows[row] = sum(active);
  return sum(total);
}

// weight holds dot products and becomes A e; dscore holds G.v and becomes the gradient of the
// scaled dot product; returns the row's part of the bias gradient.
inline float gate_grad_row(const AttentionGradArgs<>& args, std::int64_t b, std::int64_t h,
                           std::int64_t i, float* weight, float* dscore, std::int64_t first,
                           std::int64_t count, std::int64_t padded, float* u) {
  const AttentionShape& s = args.shape;
  const GateArgs& gate = args.gate;
  const float bias = gate.bias[h], lse = args.log_sum_exp[(b * s.H + h) * s.Tq + i];
  const float dexpected = args.dexpected[b * s.H + h];
  if (gate.sample) row_noise(s, gate, b, h, i, count, u);
  // The first pass needs G.y = sum_j A e (G.v); the gates are cheap enough to compute twice.
  Vec partial = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const IntVec valid = lanes_within(j, first, count);
    const Vec score = load(weight + j) * s.scale;
    const GateVectors g = gate_vectors(score, bias, gate.sample, u + (gate.sample ? j : 0));
    partial += keep(valid & g.open, exp(score - lse) * load(dscore + j));
  }
  const float expected_value = sum(partial);
  Vec dbias = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const IntVec valid = lanes_within(j, first, count);
    const Vec score = load(weight + j) * s.scale;
    const Vec a = exp(score - lse), gv = load(dscore + j);
    const GateVectors g = gate_vectors(score, bias, gate.sample, u + (gate.sample ? j : 0));
    const Vec open = keep(g.open, broadcast(1.0f));
    const Vec dgate = keep(valid, a * g.relaxed * (1.0f - g.relaxed) * gv +
                                      dexpected * g.expected * (1.0f - g.expected));
    dbias += dgate;
    store(weight + j, keep(valid, a * open));
    store(dscore + j, (keep(valid, a * (open * gv - expected_value)) + dgate) * s.scale);
  }
  return sum(dbias);
}
