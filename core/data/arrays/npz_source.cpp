#include "core/data/arrays/npz_source.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/data/arrays/array_dataset.h"
#include "core/data/file.h"
#include "core/data/opening.h"

namespace pmaptrain::data {

Declaration<Npz> Npz::declaration() {
  return declare::kind<Npz>(
      {.path = "npz",
       .meaning = "NumPy archives: one file with separate arrays for each split, or one file per split with the same "
                  "array names in each. Where the model begins with embedding, integers of the inputs are tokens, and "
                  "integer targets of their shape are labels of their positions. With softmax_cross_entropy integer "
                  "targets (N, H, W) are labels of pixels, or of other positions.",
       .example = "source: {npz: {file: f.npz, train: [x_train, y_train], test: [x_test, y_test]}}\n"
                  "source: {npz: {train: train.npz, test: test.npz, inputs: x, targets: y}}"},
      field(&Npz::file, {.path = "file",
                         .is_path = true,
                         .meaning = "The archive that contains all splits.",
                         .example = "file: digits.npz"}),
      field(&Npz::train, {.path = "train",
                          .need = Need::required,
                          .meaning = "With file: the array names of the inputs and the targets of the training split. "
                                     "Without file: the archive of the training split.",
                          .example = "train: [x_train, y_train]"}),
      field(&Npz::validation, split_key(data::Split::validation, "validation: [x_val, y_val]")),
      field(&Npz::test, split_key(data::Split::test, "test: [x_test, y_test]")),
      field(&Npz::inputs, {.path = "inputs",
                           .meaning = "Without file: the array name of the inputs in each archive.",
                           .example = "inputs: x"}),
      field(&Npz::targets, {.path = "targets",
                            .meaning = "Without file: the array name of the targets in each archive.",
                            .example = "targets: y"}),
      field(&Npz::channels,
            {.path = "channels",
             .meaning = "What the inputs of an array of three dimensions (N, A, B) are. last: sequences or signals "
                        "[A, B], with B channels; first: the same of A channels, transposed to [B, A] when they are "
                        "read; none: pictures [A, B, 1]. auto: none for 8-bit inputs, last for all others and before "
                        "embedding. The run says which, and its config has it.",
             .example = "channels: last"}));
}

Source Npz::open(const Opening& opening) const {
  const std::map<data::Split, Split> splits = given(train, validation, test);
  ArrayMeaning meaning{opening.numeric_targets, opening.token_inputs, channels, opening.label_maps};
  std::optional<Channels> decided;
  std::string note;
  if (channels == Channels::automatic) {
    const auto first =
        std::find_if(splits.begin(), splits.end(), [&](const auto& entry) { return opening.wants(entry.first); });
    const Split split = complete(first->second);
    const NpyHead head = about_file(split.file, [&] { return read_npz_head(split.file, split.inputs); });
    const bool tokens = opening.token_inputs && !is_floating(head.element);
    decided = channels_of(head.element, head.shape, tokens);
    meaning.channels = decided.value_or(Channels::none);
    if (decided && !tokens) note = describe(*decided, head.element, head.shape);
  }
  Source source = open_splits(splits, opening, [&](const Split& split, Notes& notes) {
    const Split whole = complete(split);
    return about_file(whole.file, [&] {
      Array inputs_of_split = read_npz(whole.file, whole.inputs);
      return make_dataset(std::move(inputs_of_split), read_npz(whole.file, whole.targets), notes, opening.place,
                          meaning);
    });
  });
  source.channels = decided;
  if (!note.empty()) source.notes.push_back(std::move(note));
  return source;
}

}  // namespace pmaptrain::data
