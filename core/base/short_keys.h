// Short names of keys.
#pragma once

#include <string>
#include <vector>

namespace pmaptrain {

// The last segments of each key, as few as tell it apart from the other keys: of "model.layers.0.dense" and
// "model.layers.2.dense" they are "0.dense" and "2.dense", of "optimizer.learning_rate" alone "learning_rate". A number
// is not a name on its own: of "model.layers.1" it is "layers.1". Keys are different from one another.
std::vector<std::string> short_keys(const std::vector<std::string>& keys);

}  // namespace pmaptrain
