// The names of the classes and labels of tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/data/tables/csv_source.h"
#include "core/data/tables/table.h"

namespace pmaptrain::data {

std::vector<std::string> sorted_texts(const Dictionary& dictionary);
std::vector<std::string> texts_of(const std::vector<ColumnName>& names);

// Whether targets that are numbers, but no labels, look like names of classes all the same.
bool name_classes(const Table& table);
// Whether a name is a whole number as digits.
bool is_whole(const std::string& text);

// The labels of a cell, without blanks around them: "a;b".
std::vector<std::string> labels_in(std::string_view cell, std::string_view separator);

// The names of the classes, or of the labels of cells with several: as the config lists them, else sorted. Throws Error
// (data) where no cell has a label.
std::vector<std::string> classes_of(const Csv& csv, const Table& table);

// What is probably not meant: names in the notation of lists of other languages, and listed classes without a row.
std::vector<std::string> notes_on_classes(const Csv& csv, const Table& table, const std::vector<std::string>& classes);

}  // namespace pmaptrain::data
