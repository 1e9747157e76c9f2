// The keys of a config.json, with what is wrong with them.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pmaptrain::app {

// An object of a JSON file.
class JsonFile {
 public:
  // Throws Error (data) for a file that cannot be read, or that is no object.
  explicit JsonFile(std::string path);

  const std::string& path() const { return path_; }
  // Whether the key is there, and not null. `key` may be that of an object inside: "rope_parameters.rope_type".
  bool has(std::string_view key) const;
  // Throw Error (data) for a value of another type; without a default also where the key is missing.
  std::int64_t integer(std::string_view key) const;  // from 1 to 2^31 - 1
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  // Of one whole number, or of a list of them, from `least` on.
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<double> numbers(std::string_view key) const;
  // Of a list of texts the first; empty where there is none.
  std::string first_text(std::string_view key) const;
  // How many entries an object has; 0 where there is none.
  std::int64_t entries(std::string_view key) const;

  // Throws Error (data): the model has a key with a value for which nothing is here. `help` says what is supported.
  [[noreturn]] void refuse(std::string_view key, const std::string& help) const;

 private:
  const nlohmann::ordered_json* find(std::string_view key) const;
  const nlohmann::ordered_json& at(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

  std::string path_;
  std::shared_ptr<const nlohmann::ordered_json> json_;
};

}  // namespace pmaptrain::app
