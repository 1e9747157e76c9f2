// Changes of a run's numbers from one of its steps on: `run RUN --resume --change KEY=VALUE`.
//
// The numbers that may change are those in which members of an ensemble may differ: inputs of programs. In addition,
// optimizer.learning_rate may change as a whole, from a number to a schedule and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pmaptrain::spec {

struct ChangedKey;
struct Loaded;
struct Node;

struct Change {
  std::int64_t step = 0;           // the last step before it
  std::string key;                 // dotted; items of lists by index
  std::string value, before = {};  // as YAML; `before` is known once it was applied
  friend bool operator==(const Change& a, const Change& b) {
    return a.step == b.step && a.key == b.key && a.value == b.value;
  }
};

inline constexpr const char* learning_rate_key = "optimizer.learning_rate";

// Whether it is of the learning rate: as a whole, or of a number of its schedule.
bool is_of_rate(const Change& change);
// Whether it gives the learning rate a schedule, which counts from there on.
bool begins_schedule(const Change& change);

// KEY=VALUE, and its source for messages: the option, or a record.
struct ChangeText {
  std::string text, source = "--change";
};
ChangeText text_of(const Change& change);

// Applies changes after `step` to a loaded config: its spec, its tree and its changes are then those from there on;
// `resolved` keeps the first values. A schedule without a length of its own lasts `steps_left`. Of several values of
// one key the last one counts. Throws Error (usage) with all mistakes, each with its place: a key or a value that
// alters equations, that seeds or averages depend on, that the config does not have, or that the ensemble varies.
void apply_changes(Loaded& loaded, const std::vector<ChangeText>& texts, std::int64_t step, std::int64_t steps_left);

// KEY=VALUE with which --change changes what differs in `loaded`. Empty where it cannot.
std::string change_for(const ChangedKey& changed, const Loaded& loaded);

// The section x-changes of a run's config.yaml, which records its changes. Empty without any.
std::string print_changes(std::span<const Change> changes);
// The changes in the section of a parsed config; empty for an unrelated section of this name.
std::vector<Change> recorded_changes(const Node& config);

}  // namespace pmaptrain::spec
