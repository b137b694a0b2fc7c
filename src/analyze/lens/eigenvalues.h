// Eigenvalues of small general matrices, by LAPACK.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace filigree {

// All n eigenvalues of a real n x n matrix (row-major), in no particular order. Throws Error when a
// value is not finite or the steps do not converge.
std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix, std::size_t n);

// Sum of the eigenvalues over the sum of their magnitudes, in [-1, 1]: 1 when all are positive
// numbers, -1 when all are negative (Elhage et al. 2021). 0 for a matrix without any.
double positive_share(std::span<const std::complex<double>> values);

}  // namespace filigree
