// Sparse rows, plain and compressed, with labels that are classes and that are numbers.
#include "core/data/tables/libsvm.h"

#include <cmath>

#include "core/base/error.h"
#include "core/data/tables/csv_reader.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {
namespace {

const std::string sparse_path = "fuzz.libsvm";

void read(std::string_view text, const data::SparseForm& form) {
  const data::SparseRows rows = data::read_sparse_rows(text, sparse_path, form);
  require(!rows.labels.empty() && rows.ends.size() == rows.labels.size(), "there are rows, and each has an end");
  require(rows.ends.back() == rows.columns.size() && rows.columns.size() == rows.values.size(),
          "the rows have all numbers");
  for (const std::uint32_t column : rows.columns) require(column < form.features, "columns are within the features");
  for (const float value : rows.values) require(std::isfinite(value), "inputs are finite");
  plant_bug(rows.labels.size() == 2 && rows.columns.size() == 3, std::as_bytes(std::span(text)));
}

}  // namespace

void fuzz_one(std::span<const std::byte> input) {
  for (const bool whole : {true, false}) {
    for (const bool skips : {true, false}) {
      try {
        const data::Bytes text = data::text_of(copy_of(input), sparse_path);
        read(data::as_text(text), {whole, 100, {}, skips});
      } catch (const Error& error) {
        require(error.status() == ExitStatus::data || error.status() == ExitStatus::resource,
                "what is wrong with a file is a matter of data, or too large");
      }
    }
  }
}

}  // namespace pmaptrain::fuzz
