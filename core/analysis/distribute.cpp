#include "core/analysis/distribute.h"

#include <algorithm>

#include "core/analysis/chunks.h"
#include "core/analysis/row_cut.h"

namespace pmaptrain {
namespace {

// Which ranks read which parts of a sum.
class Readers {
 public:
  // The ranks divide a sum among those that read the same parts, so any two must read the same parts, or none in
  // common. Else all count as readers of the whole sum.
  Readers(const Share& share, AxisSet along) : parts_(share.mesh().group_size(along)) {
    for (int rank = 0; rank < share.processes(); ++rank) read_.push_back(share.instances(along, rank));
    const auto clash = [](const IndexRange& a, const IndexRange& b) {
      return a != b && a.first < b.first + b.count && b.first < a.first + a.count;
    };
    const bool divide = std::none_of(read_.begin(), read_.end(), [&](const IndexRange& own) {
      return std::any_of(read_.begin(), read_.end(), [&](const IndexRange& other) { return clash(own, other); });
    });
    if (!divide) parts_ = 1, read_.assign(read_.size(), {0, 1});
  }

  // The ranks that read the same parts as `rank`, in ascending order; it is one of them.
  std::vector<int> like(int rank) const {
    std::vector<int> ranks;
    for (int other = 0; other < std::ssize(read_); ++other) {
      if (read(other) == read(rank)) ranks.push_back(other);
    }
    return ranks;
  }

  // The range of a sum that a rank adds.
  IndexRange range(int rank, std::int64_t elements) const {
    const std::vector<int> ranks = like(rank);
    const std::int64_t part = elements / parts_;
    const IndexRange own = chunks_of_rank(
        read(rank).count * part, std::find(ranks.begin(), ranks.end(), rank) - ranks.begin(), std::ssize(ranks));
    return {read(rank).first * part + own.first, own.count};
  }

  bool any_alike() const {
    return std::any_of(read_.begin(), read_.end(),
                       [&](const IndexRange& each) { return std::count(read_.begin(), read_.end(), each) > 1; });
  }

 private:
  const IndexRange& read(int rank) const { return read_[static_cast<std::size_t>(rank)]; }

  std::int64_t parts_;
  std::vector<IndexRange> read_;  // by rank
};

void send_whole(const Share& share, const std::vector<Contribution>& all, std::int64_t elements, RankMessages& into) {
  for (const Contribution& each : all) {
    if (each.slice < 0) continue;
    const IndexRange slice{each.slice * elements, elements};
    if (each.owner != share.process()) {
      into.receives.push_back({each.owner, slice});
      continue;
    }
    for (const int reader : each.readers) into.sends.push_back({reader, slice});
  }
}

void send_parts(const Share& share, const Readers& readers, std::int64_t elements, RankSum& sum) {
  const int self = share.process();
  sum.own = readers.range(self, elements);
  sum.slices = 0;
  for (Contribution& each : sum.sums) {
    each.slice = each.owner == self ? sum.slices++ : sum.received++;
    if (each.owner != self) {
      sum.exchange.receives.push_back({each.owner, {each.slice * sum.own.count, sum.own.count}});
      continue;
    }
    for (const int reader : each.readers) {
      const IndexRange part = readers.range(reader, elements);
      sum.exchange.sends.push_back({reader, {each.slice * elements + part.first, part.count}});
    }
  }
  for (const int other : readers.like(self)) {
    if (other == self) continue;
    sum.gather.sends.push_back({other, sum.own});
    sum.gather.receives.push_back({other, readers.range(other, elements)});
  }
  sum.is_gathered = readers.any_alike();
}

std::size_t bytes_of(const std::vector<RankMessage>& messages, DType dtype) {
  std::size_t bytes = 0;
  for (const RankMessage& message : messages)
    bytes += static_cast<std::size_t>(message.elements.count) * size_of(dtype);
  return bytes;
}

}  // namespace

void add_step(std::vector<RankStep>& steps, const RankStep& step) {
  auto known = std::find_if(steps.begin(), steps.end(), [&](const RankStep& each) { return each.what == step.what; });
  if (known == steps.end()) known = steps.insert(known, {step.what});
  known->elements += step.elements;
  known->sent += step.sent;
  known->received += step.received;
}

std::map<std::int32_t, PartsRead> parts_read(const Program& program, const Facts& facts) {
  std::map<std::int32_t, PartsRead> found;
  for (const Equation& equation : program.equations) {
    const CollectiveRule rule = equation.op.collective();
    if (rule.kind != Communication::slice || rule.dim != 0) continue;
    PartsRead& read = found[equation.operands.front().id];
    if (read.by.empty() || read.axes == rule.axes) read.axes = rule.axes, read.by.push_back(&equation);
  }
  std::erase_if(found,
                [&](const auto& each) { return std::ssize(each.second.by) != facts.of(Value{each.first}).uses; });
  return found;
}

Distribution::Distribution(const Program& program, const Facts& facts, const RowFacts& rows, const Share& share,
                           bool private_copies)
    : program_(program),
      rows_(rows),
      share_(share),
      private_copies_(private_copies),
      packed_sums_(packed_sums(program, facts)),
      parts_read_(parts_read(program, facts)) {}

std::vector<std::int64_t> Distribution::summed_arrays(const Equation& equation, std::size_t operand) const {
  const Value of = equation.operands[operand];
  const auto packed = packed_sums_.find(of.id);
  const bool is_one = program_.type(of).varying - equation.op.axes() == AxisSet() && !private_copies_;
  if (packed == packed_sums_.end() || is_one) return {numel(program_.type(of))};
  std::vector<std::int64_t> arrays;
  for (const Value each : packed->second.pack->operands) arrays.push_back(numel(program_.type(each)));
  return arrays;
}

RankSum Distribution::sum(const Equation& equation, std::size_t operand, std::int64_t elements) const {
  const Type& of = program_.type(equation.operands[operand]);
  const Value result = equation.results[operand];
  const CollectiveRule rule = equation.op.collective();
  const AxisSet along = equation.op.axes();
  RankSum sum;
  sum.sums = sums_of_processes(share_, of.varying, along);
  // Sums that pieces of rows add are written by these pieces.
  const bool of_rows = rows_.of(result) == RowKind::rows;
  sum.in_parts = bytes(of) >= least_in_parts && (of.varying - along).empty() && !of_rows && !private_copies_;
  if (!sum.in_parts) {
    sum.own = {0, elements};
    sum.slices = slices_of(sum.sums);
    send_whole(share_, sum.sums, elements, sum.exchange);
    return sum;
  }
  const auto read = parts_read_.find(result.id);
  AxisSet axes = read != parts_read_.end() ? read->second.axes : AxisSet();
  if (is_reduce_scatter(equation.op)) axes = rule.dim == 0 ? rule.axes : AxisSet();
  send_parts(share_, Readers(share_, axes), elements, sum);
  return sum;
}

RankInstances Distribution::instances(const Equation& equation, std::size_t operand) const {
  const Type& of = program_.type(equation.operands[operand]);
  RankInstances found;
  found.all = instances_of_processes(share_, of.varying);
  found.slices = slices_of(found.all);
  send_whole(share_, found.all, numel(of), found.messages);
  return found;
}

std::vector<RankStep> Distribution::steps(const Equation& equation) const {
  std::vector<RankStep> steps;
  const Communication how = equation.op.rules().communication;
  if (share_.is_whole() || !reads_other_devices(how) || equation.op.axes().empty()) return steps;
  const bool adds = how == Communication::sum || how == Communication::scatter || how == Communication::max ||
                    how == Communication::min;
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Type& of = program_.type(equation.operands[i]);
    const auto exchanged = [&](const std::string& what, const RankMessages& messages) {
      return RankStep{what, 0, bytes_of(messages.sends, of.dtype), bytes_of(messages.receives, of.dtype)};
    };
    if (!adds) {
      const RankInstances moved = instances(equation, i);
      if (any_is_sent(moved.all)) add_step(steps, exchanged("send_receive", moved.messages));
      continue;
    }
    for (const std::int64_t elements : summed_arrays(equation, i)) {
      const RankSum added = sum(equation, i, elements);
      if (!any_is_sent(added.sums)) continue;
      const std::string parts = added.in_parts ? "[parts]" : "";
      const auto own = std::count_if(added.sums.begin(), added.sums.end(),
                                     [&](const Contribution& each) { return each.owner == share_.process(); });
      const std::int64_t results = share_.instances(of.varying - equation.op.axes()).count;
      add_step(steps, {"sum_blocks", own * elements});
      add_step(steps, exchanged("exchange" + parts, added.exchange));
      add_step(steps, {"sum_tree" + parts, results * added.own.count});
      if (added.is_gathered) add_step(steps, exchanged("gather" + parts, added.gather));
    }
  }
  return steps;
}

}  // namespace pmaptrain
