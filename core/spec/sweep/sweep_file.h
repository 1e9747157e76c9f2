// The checked keys of a sweep file, with the nodes of its values.
#pragma once

#include <string>
#include <vector>

#include "core/spec/changes/assignment.h"
#include "core/spec/sweep.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// What one value of a parameter sets: one key, or the keys of a map under a free name.
using Assignments = std::vector<Assignment>;

struct SweepFile {
  SweepSpec spec;
  std::string base;                       // the path of the base config
  Assignments set;                        // in all trials
  std::vector<Node> keys;                 // of the parameters
  std::vector<std::vector<Node>> values;  // of each parameter: of choice and range its values; else its bounds
  std::vector<bool> free;                 // whether a parameter's values are maps of keys under a free name
  std::vector<Assignments> replicates;
  Node metric;  // the place of the metric, or of the whole file
  bool says_metric = false, says_mode = false;
  Node tree;  // the file with defaults and absolute paths
};

// Applies --set to the tree of a sweep file and checks it.
SweepFile read_sweep_file(const std::string& path, const std::vector<std::string>& set);

// The segments of a key in the file, each with the place of the whole key.
std::vector<Node> segments_of(const Node& key);

}  // namespace pmaptrain::spec
