// The time of a traced run by layer, from the file that `run --trace FILE` writes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pmaptrain::report {

struct TraceTable {
  std::string run, steps;  // "cnn", "2..6"
  struct Item {
    std::string layer, op;  // the layer is empty for what belongs to none
    double seconds = 0;     // over all workers and steps
  };
  std::vector<Item> items;  // the longest first
  double waits = 0;         // for other workers
  double total() const;     // of the items
};

// Throws Error: usage if there is no such file, data if it is no trace of pmaptrain or damaged.
TraceTable read_trace(const std::filesystem::path& file);

}  // namespace pmaptrain::report
