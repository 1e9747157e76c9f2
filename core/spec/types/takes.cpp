#include "core/spec/types/takes.h"

#include <cstdint>
#include <vector>

#include "core/base/text.h"

namespace pmaptrain::spec {
namespace {

std::string plain(double value) {
  if (value >= 1e15 || value <= -1e15) return exact(value);
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) < value || static_cast<double>(whole) > value ? exact(value) : with_commas(whole);
}

// " of at least 1", " from 0 to 1", " greater than 0"
std::string range_of(const Key& key, bool whole) {
  const bool low = key.low > -unbounded;
  const bool high = key.high < (whole ? largest_integer : unbounded);
  if (low && high && !key.open_low && !key.open_high) return " from " + plain(key.low) + " to " + plain(key.high);
  std::string text;
  if (low) text += (key.open_low ? " greater than " : " of at least ") + plain(key.low);
  if (low && high) text += " and";
  if (high) text += (key.open_high ? " less than " : " of at most ") + plain(key.high);
  return text;
}

}  // namespace

std::string takes(const Key& key) {
  switch (key.type) {
    case Type::map: {
      const std::string words = key.words.empty() ? "" : join(key.words, ", ") + " or ";
      return words + (children(key).empty() ? "no options" : "a map of options");
    }
    case Type::choice:
    case Type::choices: {
      const std::string list = "a list of " + std::string(key.name());
      if (!key.like.empty()) return list + ", as " + std::string(key.like);
      std::vector<std::string> names;
      for (const Key* other : alternatives(key)) names.emplace_back(other->name());
      const std::string number = key.or_number ? "a number" + range_of(key, false) + ", or " : "";
      return (key.type == Type::choices ? list + ", each one of " : number + "one of ") + join(names, ", ");
    }
    case Type::maps: return "a list of maps of options";
    case Type::text: return "text";
    case Type::texts: return "a text, or a list of texts";
    case Type::run_name: return "a name without '/'";
    case Type::layer_name: return "a name of letters, digits and '_', no digit first";
    case Type::path: return "a path";
    case Type::paths: return "a list of two paths";
    case Type::files: return "a path, or a list of paths";
    case Type::npz_split: return "a path, or a list of two names";
    case Type::word: return (key.words.size() == 1 ? "" : "one of ") + join(key.words, ", ");
    case Type::words:
      return "one of " + join(key.words, ", ") + ", or a map of names to one of " + join(key.item_words, ", ");
    case Type::boolean: return "true or false";
    case Type::integer: {
      std::string text = "an integer" + range_of(key, true);
      for (const std::string& word : key.words) text += " or '" + word + "'";
      return text;
    }
    case Type::seed: return "an integer from 0 to 18446744073709551615";
    case Type::number: return "a number" + range_of(key, false);
    case Type::duration: return "a duration such as '100 steps', '2 epochs' or '50000 examples'";
    case Type::interval:
      if (!key.steps) return "a duration such as '30 minutes' or '2 hours', or 'never'";
      return std::string("an interval such as '100 steps'") +
             (key.time ? ", '1 epoch' or '10 minutes'" : " or '1 epoch'") + ", or 'never'";
    case Type::amount: return "a count such as '1 batch' or '1000 examples'";
    case Type::memory: return "a whole number of MiB, GiB or TiB such as '80GiB'";
    case Type::durations: return "a list of durations such as '100 steps' or '2 epochs'";
    case Type::scales: return "a list of pairs of a duration and a number" + range_of(key, false);
    case Type::integers: {
      const std::string count = key.length == 0 ? "" : std::to_string(key.length) + " ";
      return "a list of " + count + "integers" + range_of(key, true);
    }
    case Type::numbers: {
      std::string text = "a list of numbers" + range_of(key, false);
      for (const std::string& word : key.words) text += " or '" + word + "'";
      return text;
    }
    case Type::range: return "a list of two numbers" + range_of(key, false) + ", the least first";
    case Type::spread: {
      Key distance = key;
      distance.low = 0;
      return "a number" + range_of(distance, false) + ", or a list of two numbers" + range_of(key, false) +
             ", the least first";
    }
    case Type::matrix: return "a list of lists of numbers";
    case Type::padding: return "SAME, VALID or a list of two pairs of integers" + range_of(key, true);
    case Type::axes: return "a map of one axis to its size, or a list of such maps";
    case Type::axis_names: return "a list of names of axes";
    case Type::tensors: return "a map of parameters to nested lists of numbers";
    case Type::varied: return "a map of keys to lists with one value for each member";
  }
  return {};
}

std::vector<std::string> units_of(const Key& key) {
  if (key.type == Type::amount) return {"batch", "batches", "example", "examples"};
  std::vector<std::string> units;
  if (key.steps) units = {"step", "steps", "epoch", "epochs", "example", "examples"};
  if (key.time) units.insert(units.end(), {"second", "seconds", "minute", "minutes", "hour", "hours"});
  return units;
}

std::string fallback_of(const Key& key) {
  if (key.need == Need::required) return "required";
  if (!key.fallback.empty()) return "default " + std::string(key.fallback);
  if (!key.fallback_text.empty()) return "default: " + std::string(key.fallback_text);
  return key.need == Need::alternative ? "" : "optional";
}

}  // namespace pmaptrain::spec
