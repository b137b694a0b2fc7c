#include "filigree/analyze/lens/eigenvalues.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "filigree/base/error.h"

namespace filigree {
namespace {

using Complex = std::complex<double>;

constexpr int kMostSteps = 120;  // for one eigenvalue; a handful is usual
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// The library's own product looks for infinities in every call, which is most of its time.
Complex times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
// conj(a) b.
Complex conjugate_times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
}

// A square matrix whose subdiagonal is worked off from the end.
class Hessenberg {
 public:
  Hessenberg(std::span<const double> matrix, std::size_t n) : n_(n) {
    const std::vector<double> reduced_matrix = reduced(matrix, n);
    h_.assign(reduced_matrix.begin(), reduced_matrix.end());
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
  static std::vector<double> reduced(std::span<const double> matrix, std::size_t n) {
    std::vector<double> m(matrix.begin(), matrix.end());
    std::vector<double> v(n), sums(n);
    for (std::size_t k = 0; k + 2 < n; ++k) {
      double norm = 0;
      for (std::size_t i = k + 1; i < n; ++i) norm += m[i * n + k] * m[i * n + k];
      norm = std::sqrt(norm);
      if (norm == 0) continue;
      for (std::size_t i = k + 1; i < n; ++i) v[i] = m[i * n + k];
      v[k + 1] += v[k + 1] < 0 ? -norm : norm;
      double squares = 0;
      for (std::size_t i = k + 1; i < n; ++i) squares += v[i] * v[i];
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t i = k + 1; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) sums[j] += v[i] * m[i * n + j];
      for (std::size_t i = k + 1; i < n; ++i) {
        const double factor = 2 * v[i] / squares;
        for (std::size_t j = 0; j < n; ++j) m[i * n + j] -= factor * sums[j];
      }
      for (std::size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::size_t j = k + 1; j < n; ++j) sum += m[i * n + j] * v[j];
        sum *= 2 / squares;
        for (std::size_t j = k + 1; j < n; ++j) m[i * n + j] -= sum * v[j];
      }
      for (std::size_t i = k + 2; i < n; ++i) m[i * n + k] = 0;
    }
    return m;
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
        at(k, j) = conjugate_times(c, upper) + conjugate_times(s, lower);
        at(k + 1, j) = times(c, lower) - times(s, upper);
      }
    }
    for (std::size_t k = begin; k + 1 < end; ++k) {
      const auto& [c, s] = rotations[k - begin];
      for (std::size_t i = begin; i < std::min(k + 2, end); ++i) {
        const Complex left = at(i, k), right = at(i, k + 1);
        at(i, k) = times(left, c) + times(right, s);
        at(i, k + 1) = conjugate_times(c, right) - conjugate_times(s, left);
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
