// A dataset of two arrays, inputs and targets, whose first dimension is the example.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data/arrays/array.h"
#include "core/data/channels.h"
#include "core/data/dataset.h"

namespace pmaptrain::data {

// What the numbers of arrays are, which a config says, not a file.
struct ArrayMeaning {
  bool numeric_targets = false;        // integers (N) or (N,1) are numbers, not labels
  bool tokens = false;                 // integers of the inputs are indices into the table of an embedding layer
  Channels channels = Channels::none;  // of inputs of three dimensions that are no tokens
  bool label_maps = false;             // integers (N,H,W), of more dimensions too, are labels of positions
};

// What `channels: auto` is for inputs of this type and shape, which may be tokens; none where it says nothing, because
// the array has not three dimensions.
std::optional<Channels> channels_of(Element element, const Shape& shape, bool tokens);
// What that makes of them, in a line.
std::string describe(Channels channels, Element element, const Shape& shape);

// Whether sequences of this shape, which are read as [length, channels], have more channels than steps: the array may
// have the channels first.
bool may_be_channels_first(const Shape& sequence);

// Inputs: u8 stays u8, integers that are tokens become i32, all other types become f32 (the file's own numbers are
// read_exact_input()). An array (N) gives examples of shape [1], (N,A,B) gives [A,B,1], [A,B] or [B,A], as
// `meaning.channels` says. Targets: integers of shape (N) or (N,1) become i32 labels; floating-point targets become
// f32, and (N) gives [1]; integers of shape (N,C) become f32[C] (one-hot rows), but i32[C] labels if they have the
// shape of inputs that are tokens. Where targets are label maps, integers (N,H,W) or (N,H,W,1) become i32[H,W] labels,
// and (N,T,1) i32[T]. Conversions that may lose precision add a note to `notes`. Throws Error (data) if the numbers of
// examples differ, an array is empty, a number is NaN or infinite, or overflows f32, or a label 32 bits. `place` is the
// place of the files in the config, for errors during reading.
std::shared_ptr<const Dataset> make_dataset(Array inputs, const Array& targets, std::vector<std::string>& notes,
                                            const Place& place = {}, ArrayMeaning meaning = {});

// The shape of one example of inputs. Throws Error (data) for an array without examples.
Shape shape_of_inputs(const Array& inputs, const ArrayMeaning& meaning);

// Makes a dataset of inputs without targets.
std::shared_ptr<const Dataset> make_inputs(Array inputs, std::vector<std::string>& notes, const Place& place = {},
                                           ArrayMeaning meaning = {});

// Inputs and targets from rows of numbers. Throws Error (data) if there are no rows, rows are empty or differ in
// length, or the numbers of examples differ.
std::shared_ptr<const Dataset> make_dataset(const std::vector<std::vector<double>>& inputs,
                                            const std::vector<std::vector<double>>& targets);

}  // namespace pmaptrain::data
