#include "tests/app/trace.h"

#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace pmaptrain::tests {

Shell traced(const std::vector<std::string>& command, const std::string& trace, const std::string& below,
             int killed_after) {
  std::string script = "PMAPTRAIN_TRACE=" + trace + " PMAPTRAIN_TRACE_BELOW=" + below +
                       " PMAPTRAIN_TRACE_KILL=" + std::to_string(killed_after) +
                       " LD_PRELOAD=" + std::filesystem::path(PMAPTRAIN_WRITE_TRACE).string() +
                       " ASAN_OPTIONS=verify_asan_link_order=0 exec";
  for (const std::string& word : command) script += " '" + word + "'";
  return {script};
}

std::vector<Record> read_trace(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<Record> records;
  Record record;
  while (text >> record.call >> record.of) {
    std::size_t size = 0;
    if (record.call == "write") text >> record.at >> size;
    if (record.call == "truncate") text >> record.at;
    if (record.call != "write" && record.call != "truncate" && record.call != "sync") text >> record.name;
    if (record.call == "create" || record.call == "mkdir" || record.call == "link") text >> record.made;
    if (record.call == "link" || record.call == "rename" || record.call == "exchange") text >> record.other;
    text.get();  // the end of the line
    record.bytes.resize(size);
    text.read(record.bytes.data(), static_cast<std::streamsize>(size));
    if (!text) throw std::runtime_error("the trace is damaged");
    records.push_back(record);
    record = {};
  }
  return records;
}

}  // namespace pmaptrain::tests
