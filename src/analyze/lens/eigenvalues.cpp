#include "analyze/lens/eigenvalues.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace filigree {
namespace {

using Complex = std::complex<double>;

constexpr int kMostSteps = 120;  // for one eigenvalue; a handful is usual
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// A square matrix whose subdiagonal is worked off from the end.
class Hessenberg {
 public:
  Hessenberg(std::span<const double> matrix, std::size_t n)
      : n_(n), h_(matrix.begin(), matrix.end()) {
    reduce();
  }

  std::vector<Complex> values() {
    std::vector<Complex> found;
    std::size_t end = n_;  // rows and columns that are left
    int steps = 0;
    while (end > 0) {
      const std::size_t begin = block_begin(end);
      if (begin + 1 == end) {
        found.push_back(at(end - 1, end - 1));
        --end;
        steps = 0;
        continue;
      }
      require(++steps <= kMostSteps, "eigenvalues: {} QR steps did not find one of {} eigenvalues",
              kMostSteps, n_);
      // Now and then a shift from elsewhere, should the usual one go in circles.
      const Complex shift =
          steps % 12 == 0 ? at(end - 1, end - 1) + std::abs(at(end - 1, end - 2)) : wilkinson(end);
      qr_step(begin, end, shift);
    }
    return found;
  }

 private:
  Complex& at(std::size_t i, std::size_t j) { return h_[i * n_ + j]; }

  // Householder reflections make everything below the first subdiagonal zero.
  void reduce() {
    std::vector<Complex> v(n_);
    for (std::size_t k = 0; k + 2 < n_; ++k) {
      double norm = 0;
      for (std::size_t i = k + 1; i < n_; ++i) norm += std::norm(at(i, k));
      norm = std::sqrt(norm);
      if (norm == 0) continue;
      for (std::size_t i = k + 1; i < n_; ++i) v[i] = at(i, k);
      const double size = std::abs(v[k + 1]);
      v[k + 1] += size == 0 ? Complex(norm) : v[k + 1] / size * norm;
      double squares = 0;
      for (std::size_t i = k + 1; i < n_; ++i) squares += std::norm(v[i]);
      for (std::size_t j = 0; j < n_; ++j) {
        Complex sum = 0;
        for (std::size_t i = k + 1; i < n_; ++i) sum += std::conj(v[i]) * at(i, j);
        sum *= 2 / squares;
        for (std::size_t i = k + 1; i < n_; ++i) at(i, j) -= v[i] * sum;
      }
      for (std::size_t i = 0; i < n_; ++i) {
        Complex sum = 0;
        for (std::size_t j = k + 1; j < n_; ++j) sum += at(i, j) * v[j];
        sum *= 2 / squares;
        for (std::size_t j = k + 1; j < n_; ++j) at(i, j) -= sum * std::conj(v[j]);
      }
    }
  }

  // First row of the last block that does not fall apart.
  std::size_t block_begin(std::size_t end) {
    std::size_t begin = end - 1;
    while (begin > 0) {
      const double neighbours = std::abs(at(begin - 1, begin - 1)) + std::abs(at(begin, begin));
      if (std::abs(at(begin, begin - 1)) <= kEpsilon * neighbours ||
          std::abs(at(begin, begin - 1)) < std::numeric_limits<double>::min()) {
        at(begin, begin - 1) = 0;
        break;
      }
      --begin;
    }
    return begin;
  }

  // The eigenvalue of the last 2 x 2 block that is nearer to its last element.
  Complex wilkinson(std::size_t end) {
    const Complex a = at(end - 2, end - 2), b = at(end - 2, end - 1), c = at(end - 1, end - 2),
                  d = at(end - 1, end - 1);
    const Complex half = (a - d) / 2.0, root = std::sqrt(half * half + b * c);
    const Complex plus = half + root, minus = half - root;
    const Complex& larger = std::abs(plus) > std::abs(minus) ? plus : minus;
    return larger == 0.0 ? d : d - b * c / larger;
  }

  // H - shift = Q R, then R Q + shift, with rotations; only the block itself matters for its
  // values.
  void qr_step(std::size_t begin, std::size_t end, Complex shift) {
    for (std::size_t i = begin; i < end; ++i) at(i, i) -= shift;
    std::vector<std::pair<Complex, Complex>> rotations;
    for (std::size_t k = begin; k + 1 < end; ++k) {
      const Complex x = at(k, k), y = at(k + 1, k);
      const double length = std::hypot(std::abs(x), std::abs(y));
      const Complex c = length == 0 ? 1.0 : x / length, s = length == 0 ? 0.0 : y / length;
      rotations.emplace_back(c, s);
      for (std::size_t j = k; j < end; ++j) {
        const Complex upper = at(k, j), lower = at(k + 1, j);
        at(k, j) = std::conj(c) * upper + std::conj(s) * lower;
        at(k + 1, j) = -s * upper + c * lower;
      }
    }
    for (std::size_t k = begin; k + 1 < end; ++k) {
      const auto& [c, s] = rotations[k - begin];
      for (std::size_t i = begin; i < std::min(k + 2, end); ++i) {
        const Complex left = at(i, k), right = at(i, k + 1);
        at(i, k) = left * c + right * s;
        at(i, k + 1) = -left * std::conj(s) + right * std::conj(c);
      }
    }
    for (std::size_t i = begin; i < end; ++i) at(i, i) += shift;
  }

  std::size_t n_;
  std::vector<Complex> h_;
};

}  // namespace

std::vector<Complex> eigenvalues(std::span<const double> matrix, std::size_t n) {
  require(matrix.size() == n * n, "eigenvalues: {} numbers are no {} x {} matrix", matrix.size(), n,
          n);
  for (const double value : matrix)
    require(std::isfinite(value), "eigenvalues: the matrix holds {}", value);
  return Hessenberg(matrix, n).values();
}

double positive_share(std::span<const Complex> values) {
  double sum = 0, magnitude = 0;
  for (const Complex& value : values) {
    sum += value.real();
    magnitude += std::abs(value);
  }
  return magnitude > 0 ? sum / magnitude : 0;
}

}  // namespace filigree
