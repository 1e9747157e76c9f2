// Joins the updates of many parameters into one launch, like multi-tensor optimizers. Parameters, their state and their
// gradients are stored contiguously in the same order, so one launch of the elementwise chain covers all of them, and
// the padding between them.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/saturate.h"
#include "core/runtime/gpu/lowering.h"

namespace pmaptrain::gpu {
namespace {

// An operand or a result of a launch.
struct Argument {
  const Type* type;
  Pool pool;
  std::size_t begin;
  bool is_result;

  std::size_t end() const { return begin + bytes(*type); }
};

// A launch of an elementwise chain on one slice.
struct Chain {
  const Equation* equation;
  std::vector<Argument> arguments;  // operands, then results
  std::int64_t elements;            // elements of a result
  std::size_t rule = 0;             // equal for chains with the same text

  // The offset of the first result.
  std::size_t begin() const {
    return std::find_if(arguments.begin(), arguments.end(), [](const Argument& each) { return each.is_result; })->begin;
  }
};

// A set of byte ranges in all pools. Ranges that overlap or touch are merged.
class Ranges {
 public:
  bool overlap(const Argument& argument) const {
    const auto next = ranges_.lower_bound({argument.pool, argument.end()});
    if (next == ranges_.begin()) return false;
    const auto& [begin, end] = *std::prev(next);
    return begin.first == argument.pool && end > argument.begin;
  }
  void add(const Argument& argument) {
    std::size_t begin = argument.begin, end = argument.end();
    // Merge all ranges that touch the new one.
    for (auto next = ranges_.upper_bound({argument.pool, end}); next != ranges_.begin();) {
      const auto known = std::prev(next);
      if (known->first.first != argument.pool || known->second < begin) break;
      begin = std::min(begin, known->first.second);
      end = std::max(end, known->second);
      next = ranges_.erase(known);
    }
    ranges_[{argument.pool, begin}] = end;
  }

 private:
  std::map<std::pair<Pool, std::size_t>, std::size_t> ranges_;  // from begin to end
};

bool is_chain(const Launch& launch) {
  const Equation& equation = *launch.equation;
  if (equation.regions.empty() || !equation.op.rules().elementwise || launch.devices > 1) return false;
  const std::int64_t elements = numel(launch.result_types.front());
  const auto is_simple = [&](const Type& type) {
    return numel(type) == 1 || (numel(type) == elements && is_floating(type.dtype));
  };
  return elements > 0 && std::all_of(launch.operand_types.begin(), launch.operand_types.end(), is_simple) &&
         std::all_of(launch.result_types.begin(), launch.result_types.end(), is_simple);
}

class Joiner {
 public:
  explicit Joiner(const Plan& plan) : plan_(plan) {}

  void run(std::vector<Command>& commands) {
    std::vector<Command> done;
    for (std::size_t i = 0; i < commands.size();) {
      if (Loop* const loop = std::get_if<Loop>(&commands[i])) Joiner(plan_).run(loop->body);
      const std::vector<Found> found = independent(commands, i);
      if (found.empty()) done.push_back(std::move(commands[i]));
      for (std::size_t first = 0, end = 0; first < found.size(); first = end) {
        begin(found[first].chain);
        for (end = first + 1; end < found.size() && extend(found[end].chain); ++end) {
        }
        done.emplace_back(end > first + 1 ? joined(*found[first].launch) : *found[first].launch);
      }
      i += std::max(found.size(), std::size_t{1});
    }
    commands = std::move(done);
  }

 private:
  Chain chain_of(const Launch& launch) const {
    Chain chain{launch.equation, {}, numel(launch.result_types.front())};
    const auto add = [&](const std::vector<Location>& places, const std::vector<Type>& types, bool are_results) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        const Buffer& buffer = plan_.buffer(places[i].buffer);
        chain.arguments.push_back({&types[i], buffer.pool, buffer.offset + places[i].offset, are_results});
      }
    };
    add(launch.operands, launch.operand_types, false);
    add(launch.results, launch.result_types, true);
    return chain;
  }

  struct Found {
    const Launch* launch;
    Chain chain;
  };

  // The longest sequence of launches from command `i` on that are independent of each other, sorted by rule and by the
  // position of their results.
  std::vector<Found> independent(const std::vector<Command>& commands, std::size_t i) {
    std::vector<Found> found;
    std::map<std::string, std::size_t> rules;
    Ranges read, written;
    for (; i < commands.size(); ++i) {
      const Launch* const launch = std::get_if<Launch>(&commands[i]);
      if (launch == nullptr || !is_chain(*launch)) break;
      Chain chain = chain_of(*launch);
      const bool waits = std::any_of(chain.arguments.begin(), chain.arguments.end(), [&](const Argument& each) {
        return written.overlap(each) || (each.is_result && read.overlap(each));
      });
      if (waits) break;
      for (const Argument& each : chain.arguments) (each.is_result ? written : read).add(each);
      chain.rule =
          rules.try_emplace(text_of(*plan_.program, launch->equation->regions.front()), rules.size()).first->second;
      found.push_back({launch, std::move(chain)});
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return std::pair(a.chain.rule, a.chain.begin()) < std::pair(b.chain.rule, b.chain.begin());
    });
    return found;
  }

  void begin(const Chain& first) {
    run_ = {first};
    largest_index_ = 0;
  }

  // Tries to add `next` to the run. In the joined launch, each array of `next` must begin right after the padding that
  // follows the previous launch's array, at the same element offset for all arguments; all other arguments must be
  // equal.
  bool extend(const Chain& next) {
    if (next.rule != run_.front().rule) return false;
    run_.push_back(next);
    const std::size_t largest_before = largest_index_;
    if (run_.back().elements > largest().elements) largest_index_ = run_.size() - 1;
    if (is_in_step() && is_free_of_overlaps()) return true;
    largest_index_ = largest_before;
    run_.pop_back();
    return false;
  }

  const Chain& largest() const { return run_[largest_index_]; }
  // Whether an argument is an array with one element per element of the result, rather than a scalar. This cannot be
  // decided from a launch on one element, so the largest launch of the run decides.
  bool is_array(std::size_t argument) const {
    const Chain& chain = largest();
    return chain.elements > 1 && numel(*chain.arguments[argument].type) == chain.elements;
  }

  // Whether the arguments of the last launch follow those of the previous one.
  bool is_in_step() const {
    const Chain &first = run_.front(), &previous = run_[run_.size() - 2], &last = run_.back();
    std::int64_t elements_before = -1;
    for (std::size_t i = 0; i < last.arguments.size(); ++i) {
      const Argument &before = previous.arguments[i], &here = last.arguments[i];
      // The place of a constant may differ between GPUs, but all GPUs need equal commands.
      if (here.pool != before.pool || (is_array(i) && here.pool == Pool::constant)) return false;
      if (here.begin != (is_array(i) ? round_up(before.end(), alignment) : before.begin)) return false;
      if (!is_array(i)) continue;
      if (numel(*here.type) != last.elements || numel(*before.type) != previous.elements) return false;
      const std::size_t bytes = here.begin - first.arguments[i].begin;
      const auto elements = static_cast<std::int64_t>(bytes / size_of(here.type->dtype));
      if (elements_before >= 0 && elements != elements_before) return false;
      elements_before = elements;
    }
    return elements_before >= 0;
  }

  // Separate launches may reuse memory one after another, but in a joined launch each result needs its own memory. It
  // may only share that of an operand that is the same array.
  bool is_free_of_overlaps() const {
    const Chain& first = run_.front();
    const Chain& last = run_.back();
    for (std::size_t r = 0; r < first.arguments.size(); ++r) {
      if (!first.arguments[r].is_result) continue;
      for (std::size_t i = 0; i < r; ++i) {
        const Argument &result = first.arguments[r], &other = first.arguments[i];
        if (result.pool != other.pool || (result.begin == other.begin && !other.is_result)) continue;
        if (result.begin < last.arguments[i].end() && other.begin < last.arguments[r].end()) return false;
      }
    }
    return true;
  }

  Launch joined(const Launch& first) const {
    Launch launch = first;
    launch.equation = largest().equation;
    std::size_t argument = 0;
    for (std::vector<Type>* const types : {&launch.operand_types, &launch.result_types}) {
      for (Type& type : *types) {
        const std::size_t i = argument++;
        if (!is_array(i)) continue;
        const std::size_t bytes = run_.back().arguments[i].end() - run_.front().arguments[i].begin;
        type.shape = {static_cast<std::int64_t>(bytes / size_of(type.dtype))};
      }
    }
    return launch;
  }

  const Plan& plan_;
  std::vector<Chain> run_;
  std::size_t largest_index_ = 0;  // index in `run_`
};

}  // namespace

void join_launches(Plan& plan) { Joiner(plan).run(plan.commands); }

}  // namespace pmaptrain::gpu
