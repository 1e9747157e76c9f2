#include "core/data/arrays/values.h"

#include "core/data/arrays/array_dataset.h"
#include "core/data/opening.h"

namespace pmaptrain::data {

Declaration<Values> Values::declaration() {
  return declare::kind<Values>(
      {.path = "values",
       .meaning = "Examples written in the config itself.",
       .example = "source: {values: {inputs: [[0.0], [1.0]], targets: [[0.5], [2.5]]}}"},
      field(&Values::inputs, {.path = "inputs",
                              .need = Need::required,
                              .low = -declare::unbounded,
                              .high = declare::unbounded,
                              .meaning = "One list of numbers for each example; a number x is short for [x].",
                              .example = "inputs: [[0.0], [1.0]]"}),
      field(&Values::targets, {.path = "targets",
                               .need = Need::required,
                               .low = -declare::unbounded,
                               .high = declare::unbounded,
                               .meaning = "One list of numbers for each example, in the same order.",
                               .example = "targets: [[0.5], [2.5]]"}));
}

Source Values::open(const Opening& /*opening*/) const {
  Source source;
  source.train = make_dataset(inputs, targets);
  return source;
}

}  // namespace pmaptrain::data
