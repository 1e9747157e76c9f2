#include "core/data/arrays/npz_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/lengths.h"
#include "core/data/file.h"
#include "core/data/opening.h"
#include "core/data/subset.h"

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
                          .meaning = "With file: the array names of the inputs and the targets of the training split, "
                                     "or a map of inputs, targets and lengths to names. Without file: the archive of "
                                     "the training split.",
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
             .example = "channels: last"}),
      field(
          &Npz::lengths,
          {.path = "lengths",
           .meaning = "Without file: the array name of the lengths in each archive, an integer for each example. Of a "
                      "sequence only so many positions count; what the array holds behind them is padding, and has "
                      "no effect.",
           .example = "lengths: n"}),
      field(
          &Npz::padding_token,
          {.path = "padding_token",
           .low = -2147483648.0,
           .high = 2147483647,
           .meaning = "Of tokens: a sequence ends before the tokens of this number that are last in its row. The same "
                      "token elsewhere is a token like others.",
           .example = "padding_token: 0",
           .fallback_text = "none"}));
}

namespace {

std::string describe_lengths(const std::vector<std::int32_t>& lengths, std::int64_t positions) {
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  return fmt::format("npz: sequences have {} to {} of {} positions, {:.1f} in the mean", *least, *most, positions,
                     all / static_cast<double>(lengths.size()));
}

}  // namespace

std::vector<std::int32_t> Npz::lengths_of(const Array& of_inputs, const Split& split) const {
  if (channels == Channels::first || channels == Channels::none) {
    fail_data(fmt::format("channels: {} has no sequences (N, T, ...), and npz has lengths", declare::word_of(channels)),
              "channels: last, with x.transpose(0, 2, 1) for arrays that have the channels first");
  }
  if (padding_token) return lengths_before_padding(of_inputs, *padding_token);
  return read_lengths(read_npz(split.file, split.lengths), of_inputs);
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
    decided = channels_of(head.element, head.shape, tokens || has_lengths());
    meaning.channels = decided.value_or(Channels::none);
    if (decided && !tokens) note = describe(*decided, head.element, head.shape);
  }
  Source source = open_splits(splits, opening, [&](const Split& split, Notes& notes) {
    const Split whole = complete(split);
    return about_file(whole.file, [&] {
      Array of_inputs = read_npz(whole.file, whole.inputs), of_targets = read_npz(whole.file, whole.targets);
      if (!has_lengths()) return make_dataset(std::move(of_inputs), of_targets, notes, opening.place, meaning);
      std::vector<std::int32_t> found = lengths_of(of_inputs, whole);
      notes.push_back(describe_lengths(found, of_inputs.shape[1]));
      of_inputs = without_padding(of_inputs, found);
      const Shape& shape = of_targets.shape;
      const bool of_positions = shape.size() > 1 && shape[0] == of_inputs.shape[0] && shape[1] == of_inputs.shape[1];
      if (of_positions) of_targets = without_padding(of_targets, found);
      const auto dataset = make_dataset(std::move(of_inputs), of_targets, notes, opening.place, meaning);
      return with_lengths(dataset, std::move(found), opening.ignored_label.value_or(label_of_padding));
    });
  });
  source.channels = decided;
  if (!note.empty()) source.notes.push_back(std::move(note));
  return source;
}

}  // namespace pmaptrain::data
