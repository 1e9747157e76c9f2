#include "core/setup/orthogonal.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

namespace pmaptrain::train {
namespace {

using Vector = std::span<double>;

double dot(Vector a, Vector b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

// Takes from `vector` its part along each of the orthonormal ones before it.
void take_from(Vector vector, std::span<const Vector> before) {
  for (const Vector other : before) {
    const double along = dot(vector, other);
    for (std::size_t i = 0; i < vector.size(); ++i) vector[i] -= along * other[i];
  }
}

}  // namespace

std::vector<double> orthogonal(PhiloxKey key, std::int64_t rows, std::int64_t columns) {
  const auto length = static_cast<std::size_t>(std::max(rows, columns));
  const auto count = static_cast<std::size_t>(std::min(rows, columns));
  // Vector v has the elements [v * length, (v + 1) * length).
  std::vector<double> vectors(length * count);
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = standard_normal(key, i);
  std::vector<Vector> done;
  for (std::size_t v = 0; v < count; ++v) {
    const Vector vector = Vector(vectors).subspan(v * length, length);
    // Once more, for what rounding left the first time.
    take_from(vector, done);
    take_from(vector, done);
    const double norm = std::sqrt(dot(vector, vector));
    for (double& element : vector) element /= norm;
    done.push_back(vector);
  }
  if (rows <= columns) return vectors;
  std::vector<double> transposed(vectors.size());
  for (std::size_t v = 0; v < count; ++v) {
    for (std::size_t i = 0; i < length; ++i) transposed[i * count + v] = vectors[v * length + i];
  }
  return transposed;
}

}  // namespace pmaptrain::train
