#include "core/losses/equations.h"

#include <limits>
#include <numeric>

#include "core/equations/arithmetic.h"
#include "core/equations/division.h"

namespace pmaptrain::losses {

using namespace equations;

namespace {

std::vector<std::int64_t> dims_before(std::size_t dim) {
  std::vector<std::int64_t> dims(dim);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// A device's part of the classes.
class Part {
 public:
  Part(Builder& b, Value output, const Classes& classes)
      : b_(b), shape_(b.type(output).shape), last_(shape_.size() - 1), axes_(classes.axes) {
    const std::int64_t own = shape_.back();
    first_ = offset_along(b, axes_, own);
    if (own * b.mesh().group_size(axes_) == classes.count) return;
    const Value count = b.constant(DType::i32, static_cast<double>(classes.count));
    within_ = over_rows(b.emit(ops::Lt{}, {own_numbers(), count}));
  }

  // `values` with `otherwise` at the padding.
  Value within_or(Value values, double otherwise) const {
    return within_ ? select(b_, *within_, values, scalar_like(b_, values, otherwise)) : values;
  }
  // The number among all classes of each that is numbered within the part.
  Value of_all(Value own) const { return add(b_, own, first_); }
  // Which class is the label [B...] of its row, if it is one of this part.
  Value is_label(Value labels) const { return b_.emit(ops::Eq{}, {numbers(), over_classes(labels)}); }
  // The number of each class, i32 of the shape.
  Value numbers() const { return over_rows(own_numbers()); }
  // [B...] repeated over the classes.
  Value over_classes(Value values) const { return b_.emit(ops::Broadcast{shape_, dims_before(last_)}, {values}); }
  Value largest(Value values) const { return b_.emit(ops::ReduceMax{{std::ssize(shape_) - 1}}, {values}); }
  Value largest_of_all(Value largest) const { return b_.emit(ops::Pmax{axes_}, {largest}); }
  Value least_of_all(Value values) const { return b_.emit(ops::Pmin{axes_}, {values}); }
  std::size_t last() const { return last_; }
  AxisSet axes() const { return axes_; }

 private:
  // i32[own]
  Value own_numbers() const { return of_all(b_.emit(ops::Iota{DType::i32, {shape_.back()}, 0}, {})); }
  // A value for each class repeated over the rows.
  Value over_rows(Value each) const { return broadcast_along(b_, each, shape_, static_cast<std::int64_t>(last_)); }

  Builder& b_;
  Shape shape_;
  std::size_t last_;
  AxisSet axes_;
  Value first_{};                // the number of its first class, i32[]
  std::optional<Value> within_;  // bool of the shape, if it has padding
};

// Of padding: its exponential adds 0, and its difference to any logit is finite.
constexpr double below_all = -1e30;

// The same equations as below on the classes of each device; both sums are added over the devices. The backward pass
// computes again what has a number for each class, so logits alone are kept.
Value divided_cross_entropy(Builder& b, Value logits, Value labels, const std::optional<Smoothing>& smoothing,
                            const Classes& classes) {
  const Part part(b, logits, classes);
  // It varies before it stops gradients, or the transpose of pvary would add up one of all classes, for nothing.
  const Value most = b.vary(part.largest_of_all(part.largest(part.within_or(logits, below_all))), part.axes());
  const Value largest = b.emit(ops::StopGradient{}, {most});
  Value exponentials{}, at_label{};
  {
    const Builder::Rematerialise again(b, {logits, largest, labels});
    const Value shifted = sub(b, part.within_or(logits, below_all), part.over_classes(largest));
    const Value zero = scalar_like(b, shifted, 0.0);
    exponentials = sum_from(b, b.emit(ops::Exp{}, {shifted}), part.last());
    at_label = sum_from(b, select(b, part.is_label(labels), shifted, zero), part.last());
    if (smoothing) {
      const Value of_each = sum_from(b, part.within_or(shifted, 0.0), part.last());
      at_label = add(b, mul(b, at_label, smoothing->rest), mul(b, of_each, smoothing->share));
    }
  }
  const std::vector<Value> sums = b.emit_all(ops::Psum{part.axes()}, std::vector{exponentials, at_label});
  return sub(b, b.emit(ops::Log{}, {sums[0]}), sums[1]);
}

}  // namespace

// log Σ exp(logits) - Σ t · logits, with the largest logit subtracted so that exp never overflows. The shift cancels
// in the value, so it needs no gradient.
Value softmax_cross_entropy(Builder& b, Value logits, Value labels, std::optional<Smoothing> smoothing,
                            const Classes& classes) {
  if (classes.are_divided(b, logits)) return divided_cross_entropy(b, logits, labels, smoothing, classes);
  const Shape shape = b.type(logits).shape;
  const std::size_t last = shape.size() - 1;
  const std::vector<std::int64_t> others = dims_before(last);
  const Value largest = b.emit(ops::StopGradient{}, {b.emit(ops::ReduceMax{{std::ssize(others)}}, {logits})});
  const Value shifted = sub(b, logits, b.emit(ops::Broadcast{shape, others}, {largest}));
  const Value normaliser = b.emit(ops::Log{}, {sum_from(b, b.emit(ops::Exp{}, {shifted}), last)});
  const bool one_label = b.type(labels).shape.size() == last;
  Value distribution = one_label ? b.emit(ops::OneHot{shape[last], b.type(logits).dtype}, {labels})
                                 : cast(b, labels, b.type(logits).dtype);
  if (smoothing) distribution = add(b, mul(b, distribution, smoothing->rest), smoothing->share);
  return sub(b, normaliser, sum_from(b, mul(b, shifted, distribution), last));
}

Value largest_class(Builder& b, Value output, const Classes& classes) {
  const ops::Argmax argmax{std::ssize(b.type(output).shape) - 1};
  if (!classes.are_divided(b, output)) return b.emit(argmax, {output});
  const Part part(b, output, classes);
  output = part.within_or(output, -std::numeric_limits<double>::infinity());
  const Value own = part.largest(output);
  const Value is_largest = b.emit(ops::Eq{}, {own, part.largest_of_all(own)});
  const Value candidate = part.of_all(b.emit(argmax, {output}));
  const Value none = scalar_like(b, candidate, static_cast<double>(classes.count));
  return part.least_of_all(select(b, is_largest, candidate, none));
}

Value is_among_largest(Builder& b, Value output, Value labels, std::int64_t k, const Classes& classes) {
  const DType dtype = b.type(output).dtype;
  if (!classes.are_divided(b, output)) {
    const Value best = b.emit_all(ops::TopK{k}, std::vector{output})[1];
    const Value label = broadcast_along(b, labels, b.type(best).shape, 0);
    return sum_from(b, cast(b, b.emit(ops::Eq{}, {best, label}), dtype), 1);
  }
  // By how many outputs come before that of the label.
  const Part part(b, output, classes);
  output = part.within_or(output, -std::numeric_limits<double>::infinity());
  const Value zero = scalar_like(b, output, 0.0);
  const Value at_label = select(b, part.is_label(labels), output, zero);
  const Value of_label = b.emit(ops::Psum{part.axes()}, {sum_from(b, at_label, part.last())});
  const Value each = part.over_classes(of_label);
  const Value is_lower = b.emit(ops::Lt{}, {part.numbers(), part.over_classes(labels)});
  const Value ties = b.emit(ops::Eq{}, {output, each});
  const Value before_in_ties = select(b, ties, cast(b, is_lower, dtype), zero);
  const Value above = b.emit(ops::Gt{}, {output, each});
  const Value before = sum_from(b, select(b, above, scalar_like(b, output, 1.0), before_in_ties), part.last());
  const Value rank = b.emit(ops::Psum{part.axes()}, {before});
  const Value is_among = cast(b, b.emit(ops::Lt{}, {rank, scalar_like(b, rank, static_cast<double>(k))}), dtype);
  // Of NaN nothing is larger.
  return select(b, b.emit(ops::Eq{}, {of_label, of_label}), is_among, scalar_like(b, is_among, 0.0));
}

Value feature_mean(Builder& b, Value values) {
  const Shape shape = b.type(values).shape;
  const Value sum = sum_from(b, values, 1);
  const std::int64_t features = numel(Shape(shape.begin() + 1, shape.end()));
  return features == 1 ? sum : div(b, sum, static_cast<double>(features));
}

Value position_mean(Builder& b, Value values, std::optional<std::int64_t> ignored_label) {
  return ignored_label ? values : feature_mean(b, values);
}

Value counting_weights(Builder& b, Value weights, Value labels, std::int64_t ignored_label, std::int64_t positions) {
  const Shape shape = b.type(labels).shape;
  if (shape.size() > 1) {
    const Value share = div(b, weights, static_cast<double>(positions));
    weights = broadcast_along(b, share, shape, 0);
  }
  const Value ignored = b.emit(ops::Eq{}, {labels, scalar_like(b, labels, static_cast<double>(ignored_label))});
  return select(b, ignored, scalar_like(b, weights, 0.0), weights);
}

Value difference(Builder& b, Value output, Value targets) {
  return sub(b, output, cast(b, targets, b.type(output).dtype));
}

Value of_features(Builder& b, Value like, const std::vector<double>& weights) {
  return broadcast_along(b, vector_constant(b, b.type(like).dtype, weights), b.type(like).shape, 1);
}

Value targets_like(Builder& b, Value output, Value targets) {
  const Value expected = cast(b, targets, b.type(output).dtype);
  return b.type(expected).shape == b.type(output).shape ? expected
                                                        : b.emit(ops::Reshape{b.type(output).shape}, {expected});
}

}  // namespace pmaptrain::losses
