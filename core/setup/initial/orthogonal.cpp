#include "core/setup/initial/orthogonal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

#include "core/base/saturate.h"

namespace pmaptrain::setup {
namespace {

using Vector = std::span<double>;

// In parts that a compiler can add side by side, in an order that does not depend on the machine.
double dot(Vector a, Vector b) {
  std::array<double, 16> parts = {};
  std::size_t i = 0;
  for (; i + parts.size() <= a.size(); i += parts.size()) {
    for (std::size_t k = 0; k < parts.size(); ++k) parts[k] += a[i + k] * b[i + k];
  }
  for (; i < a.size(); ++i) parts[0] += a[i] * b[i];
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// So many vectors are taken from all later ones while they are in a cache.
constexpr std::size_t together = 16;

// Takes from `vector` its part along each of the orthonormal ones before it; and once more, for what rounding left the
// first time.
void take_from(Vector vector, std::span<const Vector> before) {
  for (int time = 0; time < 2; ++time) {
    for (const Vector other : before) {
      const double along = dot(vector, other);
      for (std::size_t i = 0; i < vector.size(); ++i) vector[i] -= along * other[i];
    }
  }
}

}  // namespace

std::vector<double> orthogonal(PhiloxKey key, std::int64_t rows, std::int64_t columns) {
  const auto length = static_cast<std::size_t>(std::max(rows, columns));
  const auto count = static_cast<std::size_t>(std::min(rows, columns));
  // Vector v has the elements [v * length, (v + 1) * length).
  std::vector<double> vectors(length * count);
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = standard_normal(key, i);
  std::vector<Vector> all;
  for (std::size_t v = 0; v < count; ++v) all.push_back(Vector(vectors).subspan(v * length, length));
  for (std::size_t begin = 0; begin < count; begin += together) {
    const std::span<const Vector> group = std::span(all).subspan(begin, std::min(together, count - begin));
    for (std::size_t v = 0; v < group.size(); ++v) {
      take_from(group[v], group.first(v));
      const double norm = std::sqrt(dot(group[v], group[v]));
      for (double& element : group[v]) element /= norm;
    }
    for (const Vector later : std::span(all).subspan(begin + group.size())) take_from(later, group);
  }
  if (rows <= columns) return vectors;
  std::vector<double> transposed(vectors.size());
  for (std::size_t v = 0; v < count; ++v) {
    for (std::size_t i = 0; i < length; ++i) transposed[i * count + v] = vectors[v * length + i];
  }
  return transposed;
}

std::size_t orthogonal_bytes(std::int64_t rows, std::int64_t columns) {
  const std::size_t copies = rows > columns ? 2 : 1;
  return product_of(product_of(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)),
                    copies * sizeof(double));
}

}  // namespace pmaptrain::setup
