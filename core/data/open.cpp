#include "core/data/open.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/data/array_dataset.h"
#include "core/data/file.h"
#include "core/data/synthetic.h"

namespace pmaptrain::data {
namespace {

// The arguments for opening a source, besides its options.
struct Opening {
  std::uint64_t seed = 0;
  std::int64_t devices = 1;
  Place place;  // of the source in the config
};

std::shared_ptr<const Dataset> open_idx(const spec::FilePair& pair, std::vector<std::string>& notes,
                                        const Place& place) {
  Array inputs = read_idx(pair.inputs);  // first, so that its errors are reported first
  return make_dataset(std::move(inputs), read_idx(pair.targets), notes, place);
}

std::shared_ptr<const Dataset> open_npz(const spec::Npz::Split& split, std::vector<std::string>& notes,
                                        const Place& place) {
  Array inputs = read_npz(split.file, split.inputs);
  return make_dataset(std::move(inputs), read_npz(split.file, split.targets), notes, place);
}

// Reads both splits by `read` and checks that their fields are equal.
template <class Pair, class Read>
void open_splits(Source& source, const Pair& train, const std::optional<Pair>& test, const Place& place, Read read) {
  source.train = read(train, source.notes, place);
  if (!test) return;
  source.test = read(*test, source.notes, place);
  const auto check = [](std::string_view what, const Field& a, const Field& b) {
    if (a.dtype == b.dtype && a.shape == b.shape) return;
    fail_data(
        fmt::format("the train split's {} are {}{}, but the test split's are {}{}", what, pmaptrain::to_string(a.dtype),
                    pmaptrain::to_string(a.shape), pmaptrain::to_string(b.dtype), pmaptrain::to_string(b.shape)),
        "the examples of both splits must have the same type and shape");
  };
  check("inputs", source.train->input(), source.test->input());
  check("targets", source.train->target(), source.test->target());
}

void describe(Source& source, std::string_view name) {
  source.description = fmt::format("{}: {} train", name, source.train->size());
  if (source.test) source.description += fmt::format(", {} {}", source.test->size(), source.test_name);
  const Field input = source.train->input();
  source.description +=
      fmt::format(" examples of {}{}", pmaptrain::to_string(input.dtype), pmaptrain::to_string(input.shape));
}

Source open_source(const spec::FashionMnist& s, const Opening& opening) {
  const auto pair = [&](std::string_view prefix) {
    return spec::FilePair{fmt::format("{}/{}-images-idx3-ubyte.gz", s.dir, prefix),
                          fmt::format("{}/{}-labels-idx1-ubyte.gz", s.dir, prefix)};
  };
  Source source;
  try {
    open_splits(source, pair("train"), std::optional(pair("t10k")), opening.place, open_idx);
  } catch (const Error& error) {
    if (s.dir != spec::FashionMnist{}.dir) throw;  // the user chose this folder
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& d : diagnostics) {
      d.help =
          "Debian's package dataset-fashion-mnist has these files (apt-get install dataset-fashion-mnist); "
          "data.source.fashion_mnist.dir sets another folder";
    }
    throw Error(error.status(), std::move(diagnostics));
  }
  describe(source, "fashion_mnist");
  return source;
}

Source open_source(const spec::Idx& s, const Opening& opening) {
  Source source;
  open_splits(source, s.train, s.test, opening.place, open_idx);
  describe(source, "idx");
  return source;
}

Source open_source(const spec::Npz& s, const Opening& opening) {
  Source source;
  std::optional<spec::Npz::Split> test;
  if (s.test) test = s.complete(*s.test);
  open_splits(source, s.complete(s.train), test, opening.place, open_npz);
  describe(source, "npz");
  return source;
}

Source open_source(const spec::SyntheticLinear& s, const Opening& opening) {
  LinearSource linear = make_linear(s, opening.seed, opening.devices);
  Source source;
  source.train = std::move(linear.dataset);
  source.truths = {{"dense_0.kernel", std::move(linear.w)}, {"dense_0.bias", {linear.b}}};
  describe(source, "synthetic_linear");
  return source;
}

Source open_source(const spec::SyntheticImages& s, const Opening& opening) {
  Source source;
  source.train = make_images(s, opening.seed, Split::train);
  source.test = s.test == 0 ? nullptr : make_images(s, opening.seed, Split::test);
  describe(source, "synthetic_images");
  return source;
}

Source open_source(const spec::Values& s, const Opening&) {
  Source source;
  source.train = make_dataset(s.inputs, s.targets);
  describe(source, "values");
  return source;
}

}  // namespace

std::uint64_t seed_of(const spec::DataSpec& spec, std::uint64_t seed) { return spec.seed.value_or(seed); }

Source open(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t devices) {
  const Opening opening{seed_of(spec, seed), devices, spec.source_place};
  try {
    return std::visit([&](const auto& s) { return open_source(s, opening); }, spec.source);
  } catch (const Error& error) {
    throw_at(spec.source_place, error);
  }
}

Sampler training_sampler(const spec::DataSpec& spec, std::uint64_t seed, std::int64_t examples) {
  const bool shuffle = spec.shuffle && !std::holds_alternative<spec::BatchAll>(spec.batch_size);
  return shuffle ? Sampler::shuffled(examples, seed_of(spec, seed)) : Sampler::in_order(examples);
}

}  // namespace pmaptrain::data
