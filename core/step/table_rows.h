// A table of which a step changes only the rows that its batch names, such as that of an embedding with sgd.
//
// Its gradient over all devices is one row for each token, so devices exchange tokens and these rows instead of sums as
// large as the table. Rows of equal tokens are added at the place of the first of them, in the order of the global
// batch; so no bit depends on how devices share the table. The update then runs on rows that are taken out of the table
// and written back. At the places of further equal tokens all of this is 0, and nothing is written.
#pragma once

#include "core/graph/builder.h"
#include "core/model/buckets.h"
#include "core/model/model.h"

namespace pmaptrain::step {

class TableRows {
 public:
  // `bucket` has Bucket::tokens; `tokens` are the inputs of a device's batch. Appends the equations that find equal
  // tokens. All references outlive this.
  TableRows(Builder& b, const model::Model& model, const model::Bucket& bucket, const model::Sharding& sharding,
            Value tokens);

  // The sum over all devices of the gradients of the rows at each device's tokens, as a bucket of rows.
  Value summed(Value gradients) const;
  // Of what a device owns of the table, or of a slot like it: its rows as a bucket. Rows that it does not own are 0.
  Value rows_of(Value owned) const;
  // `owned` with these rows in place of its own.
  Value with_rows(Value owned, Value rows) const;

 private:
  Value gathered(Value value) const;  // [rows of a device, rest...] -> [rows of all, rest...]
  Value as_table(Value bucket) const;
  Value as_bucket(Value rows) const;

  Builder& b_;
  std::int64_t tokens_ = 0, features_ = 0;
  Value first_;  // i32[tokens]: the place of the first equal token
  Value named_;  // i32[tokens]: at that place the row in what a device owns; else, and for other rows, none of them
};

// The shape of the gradient of a bucket's parameter as a device has it.
Shape gradient_shape(const model::Model& model, const Mesh& mesh, const model::Bucket& bucket, std::size_t parameter);

}  // namespace pmaptrain::step
