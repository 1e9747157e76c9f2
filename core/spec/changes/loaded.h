// A loaded config, and the options that override its file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/change.h"
#include "core/spec/spec.h"

namespace pmaptrain::spec {

struct Overrides {
  std::vector<std::string> set;  // "KEY=VALUE", in order
  std::optional<std::int64_t> devices;
  std::optional<std::int64_t> workers;
  int processes = 1;  // that carry the devices
  std::optional<std::uint64_t> seed;
  std::optional<std::string> name;
  std::optional<std::string> max_time;
  std::optional<std::string> data_root;  // the folder below which the files of data.source lie
  std::optional<std::string> base;       // of lora, in place of model.init.from.path
  bool is_run = false;                   // the config is that of a run folder, which may have moved
};

struct Node;

struct Loaded {
  Spec spec;
  std::shared_ptr<const Node> tree;   // the checked config, with the places of its values
  std::string resolved;               // the resolved config as YAML; running it repeats the run
  std::vector<Change> recorded;       // what x-changes of the file has; a new run does not repeat it
  std::vector<Change> changes;        // applied to `spec` and `tree`, in order; see apply_changes()
  std::vector<std::string> notes;     // what may not be meant, such as "optimizer.sgd replaces optimizer.adam"
  std::vector<std::string> facts;     // plain information, such as where the data was found
  std::vector<std::string> warnings;  // of a run that goes on
  Interval max_time;                  // --max-time, which is no part of the config

  std::vector<std::string> facts_and_notes() const;
};

// Puts what the data decided in place of data.source.npz.channels: auto, in the spec, the tree and the resolved config.
// A config that was changed keeps its resolved text.
void set_channels(Loaded& loaded, data::Channels channels);

}  // namespace pmaptrain::spec
