// Tables in text files, plain and compressed, as inputs and as targets.
#include "core/data/tables/csv.h"

#include <cmath>

#include "core/base/error.h"
#include "core/data/tables/csv_source.h"
#include "core/data/tables/table.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {
namespace {

const std::string path = "fuzz.csv";

data::Csv options(bool header) {
  data::Csv csv;
  csv.train = {path};
  csv.header = header;
  csv.target = {{header ? "y" : "2"}};
  csv.categorical = {{header ? "c" : "1"}};
  csv.missing = {data::Missing::mean, data::Missing::category, {}};
  return csv;
}

void read(const data::TableText& file, const data::Csv& csv, data::TargetKind kind) {
  const data::TableColumns columns = data::columns_of(csv, data::header_of(csv, file), path);
  data::Table table = data::read_table(csv, {file}, columns, kind);
  require(table.rows >= 1, "a table has a row");
  plant_bug(table.texts.entries().size() == 1 && table.rows > 1, file.text.view());
  const bool numeric = kind == data::TargetKind::numbers;
  const data::Encoding encoding = data::learn(csv, columns, table, numeric);
  data::TableDataset dataset(std::move(table), encoding, csv, path, numeric);
  std::vector<float> example(static_cast<std::size_t>(numel(dataset.input().shape)));
  std::vector<std::byte> target(dataset.target().bytes());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, reinterpret_cast<std::byte*>(example.data()), target.data());
    for (const float value : example) require(std::isfinite(value), "inputs are finite");
  }
}

}  // namespace

void fuzz_one(std::span<const std::byte> input) {
  for (const bool header : {true, false}) {
    for (const auto kind : {data::TargetKind::numbers, data::TargetKind::texts, data::TargetKind::either}) {
      try {
        read({path, data::text_of(copy_of(input), path)}, options(header), kind);
      } catch (const Error& error) {
        require(error.status() == ExitStatus::data || error.status() == ExitStatus::resource,
                "what is wrong with a file is a matter of data, or too large");
      }
    }
  }
}

}  // namespace pmaptrain::fuzz
