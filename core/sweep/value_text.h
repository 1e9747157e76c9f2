// Values of the parameters of trials as a person reads them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/report/json.h"

namespace pmaptrain::sweep {

constexpr int all_digits = 0;  // a number as it is written

// A value (JSON) with at most some digits of its numbers. Of a map the keys and their values, without those that are
// empty: "sgd momentum 0.9", of a choice of an optimizer "adam".
std::string value_text(const report::Json& value, int digits = 4);

// The texts of values of one parameter, by value. One that sets keys together is "64" where it sets the same key of
// several layers to that, else "batch_size 64, learning_rate 0.1". A key has the same name in all of them, which is
// that of no other key.
std::map<std::string, std::string> coupled_texts(const std::set<std::string>& values, int digits = 4);

// A trial's parameters (JSON) for a line: "optimizer.learning_rate=0.01432, size=large". Numbers have four digits; the
// exact ones are in the config, CSV and JSON.
std::string parameters_text(const std::string& parameters);

// The values of these parameters, in the same way.
std::vector<std::string> parameter_values(const std::string& parameters, const std::vector<std::string>& names,
                                          int digits = 4);

}  // namespace pmaptrain::sweep
