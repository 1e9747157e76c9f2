// What is said of rows that are not of the training split, from which the encoding of a table is.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tables/csv.h"

namespace pmaptrain::data {

// Notes the categories that the training split does not have. `where` names the rows.
void note_unknown(const TableDataset& table, std::string_view where, std::vector<std::string>& notes);

// Notes how many numbers are missing, by column, where means of the training split stand for them; of columns with gaps
// in `train` nothing.
void note_filled(const TableDataset& table, std::string_view where, const Encoding& encoding,
                 std::vector<std::string>& notes, const TableDataset* train = nullptr);
// The same of the other splits, with the training split if it is there.
void note_filled(const std::map<Split, std::shared_ptr<TableDataset>>& splits, const Encoding& encoding,
                 std::vector<std::string>& notes);

// Throws Error (data) for a file without columns that the encoding has.
void check_has_columns(const Csv& csv, const TableText& file, const Encoding& known);

}  // namespace pmaptrain::data
