// What makes a measurement on held-out examples mean less than it seems to, and training examples that contradict each
// other.
#pragma once

#include <memory>

#include "core/data/dataset.h"
#include "core/spec/spec.h"

namespace pmaptrain::input {

// Warns of examples of a split that stand in `train` as well, with the same inputs and target; where targets are
// classes, with the same inputs. Rows are compared by hashes of 64 bits; of a large split, of about the first 512 MiB.
// Images that do not fit in memory are compared by the bytes of their files, where two have one size, up to 4,096 of
// them. Texts are compared by their files, and synthetic examples not at all.
void warn_of_shared(data::Source& source, const data::Dataset& train, data::Split held_out, const spec::DataSpec& spec);

// Warns of training examples with equal inputs and different classes, compared in the same way.
void warn_of_conflicts(data::Source& source, const data::Dataset& train, const spec::DataSpec& spec);

// Warns of classes of the other splits that no training example has.
void warn_of_untrained(data::Source& source, const spec::DataSpec& spec);

}  // namespace pmaptrain::input
