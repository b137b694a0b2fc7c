#include "analyze/lens/eigenvalues.h"

#include <cmath>

#include "filigree/error.h"

// LAPACK has no header of its own in C; strings pass their lengths behind the other arguments.
extern "C" void dgeev_(const char* left, const char* right, const int* n, double* matrix,
                       const int* stride, double* real, double* imaginary, double* left_vectors,
                       const int* left_stride, double* right_vectors, const int* right_stride,
                       double* work, const int* work_size, int* info, std::size_t left_length,
                       std::size_t right_length);

namespace filigree {

std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix, std::size_t n) {
  require(matrix.size() == n * n, "eigenvalues: {} numbers are no {} x {} matrix", matrix.size(), n,
          n);
  for (const double value : matrix)
    require(std::isfinite(value), "eigenvalues: the matrix holds {}", value);
  if (n == 0) return {};
  constexpr std::size_t kMostRows = 1 << 14;  // its sizes are of 32 bits
  require(n <= kMostRows, "eigenvalues: {} rows are more than {}", n, kMostRows);

  // Column-major, LAPACK sees the transpose, which has the same eigenvalues.
  std::vector<double> changed(matrix.begin(), matrix.end());
  const int size = static_cast<int>(n), one = 1, work_size = 8 * size;
  std::vector<double> real(n), imaginary(n), work(8 * n);
  double no_vectors = 0;
  int info = 0;
  dgeev_("N", "N", &size, changed.data(), &size, real.data(), imaginary.data(), &no_vectors, &one,
         &no_vectors, &one, work.data(), &work_size, &info, 1, 1);
  require(info == 0, "eigenvalues: of {} eigenvalues, the first {} were not found", n, info);
  std::vector<std::complex<double>> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = {real[i], imaginary[i]};
  return values;
}

double positive_share(std::span<const std::complex<double>> values) {
  double sum = 0, magnitude = 0;
  for (const std::complex<double>& value : values) {
    sum += value.real();
    magnitude += std::abs(value);
  }
  return magnitude > 0 ? sum / magnitude : 0;
}

}  // namespace filigree
