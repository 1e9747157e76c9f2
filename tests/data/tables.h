// Tables of text as files, and the examples that are read from them.
#pragma once

#include <string>
#include <vector>

#include "core/data/tables/csv_source.h"
#include "core/input/open.h"
#include "tests/data/files.h"

namespace pmaptrain::testing {

// Files, and the source that reads them.
struct Tables {
  TemporaryFolder folder;
  spec::DataSpec data;

  explicit Tables(const std::string& train, const std::string& test = "") {
    data::Csv csv;
    csv.train = {folder.write("train.csv", train)};
    if (!test.empty()) csv.test = {folder.write("test.csv", test)};
    csv.target = {{"y"}};
    data.source = csv;
    data.source_place = {"a.yaml", 3, 5, 1, ""};
  }
  // The options of the source, which are stored again at the end of the expression that changes them.
  class Options {
   public:
    explicit Options(data::SourceKind& source) : source_(source), csv_(*source.as<data::Csv>()) {}
    ~Options() { source_ = csv_; }
    Options(const Options&) = delete;
    data::Csv* operator->() { return &csv_; }

   private:
    data::SourceKind& source_;
    data::Csv csv_;
  };
  Options csv() { return Options(data.source); }
  data::Source open(const data::Encoding* known = nullptr, std::optional<data::Split> only = std::nullopt) const {
    return input::open(data, 0, 1, only, known);
  }
  // As by a run that goes on, which has left these rows out.
  data::Source open_without(const data::Skipped& left_out) const {
    data::Encoding continued;
    continued.exact = true;
    continued.skipped = left_out;
    return input::open(data, 0, 1, std::nullopt, nullptr, &continued);
  }
  // The message and the help, without the folder of the files.
  std::string refusal(const data::Encoding* known = nullptr) const {
    std::string text =
        error_of([&] { open(known, known != nullptr ? std::optional(data::Split::test) : std::nullopt); });
    const std::string prefix = folder / "";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }
};

inline std::vector<float> input_of(const data::Dataset& dataset, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(numel(dataset.input().shape)));
  std::vector<std::byte> target(dataset.target().bytes());
  dataset.read(index, reinterpret_cast<std::byte*>(values.data()), target.data());
  return values;
}
template <class T>
T target_of(const data::Dataset& dataset, std::int64_t index) {
  T value = {};
  REQUIRE(dataset.target().bytes() == sizeof(T));
  dataset.read(index, nullptr, reinterpret_cast<std::byte*>(&value));
  return value;
}

}  // namespace pmaptrain::testing
