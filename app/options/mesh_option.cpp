#include "app/options/mesh_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/options/arguments.h"
#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

constexpr std::size_t most_axes = 32;
constexpr std::int64_t most_devices = 65'536;

bool names_an_axis(const std::string& name) {
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return name.find_first_not_of(letters) == std::string::npos && !(name.front() >= '0' && name.front() <= '9');
}

}  // namespace

std::pair<std::string, std::string> split_option(const std::string& option, const std::string& argument,
                                                 const std::string& form) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size()) {
    fail_option(option, argument, option + " takes " + form + ", not '" + argument + "'");
  }
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

std::vector<Axis> axes_of(const std::vector<std::string>& arguments) {
  std::vector<Axis> axes;
  for (const std::string& argument : arguments) {
    const std::pair<std::string, std::string> parts = split_option("--mesh", argument, "AXIS=N");
    const std::string &name = parts.first, &size = parts.second;
    if (!names_an_axis(name)) {
      fail_option("--mesh", argument, "'" + name + "' is not a valid axis name",
                  "use letters, digits and '_', such as data_shards");
    }
    Axis axis{name, 0};
    const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), axis.size);
    if (error != std::errc{} || stop != size.data() + size.size() || axis.size < 1) {
      fail_option("--mesh", argument,
                  fmt::format("axis '{}' needs an integer size of at least 1, not '{}'", name, size));
    }
    const auto same = std::find_if(axes.begin(), axes.end(), [&](const Axis& other) { return other.name == name; });
    if (same != axes.end()) {
      same->size = axis.size;
    } else {
      axes.push_back(axis);
    }
    double devices = 1;
    for (const Axis& other : axes) devices *= static_cast<double>(other.size);
    if (axes.size() > most_axes || devices > static_cast<double>(most_devices)) {
      fail_option(
          "--mesh", argument,
          "a mesh has at most " + std::to_string(most_axes) + " axes and " + with_commas(most_devices) + " devices");
    }
  }
  return axes;
}

}  // namespace pmaptrain::app
