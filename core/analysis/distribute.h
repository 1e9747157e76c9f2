// Divides the collectives of a program among ranks: which sums each rank adds, which part of a sum is its own, and what
// it sends and receives. A rank is a process of the CPU backend, or a GPU.
//
// A sum over the devices of several ranks has up to four steps:
//   sum_blocks  a rank adds what it has: the largest subtrees of the tree of blocks whose blocks are its own
//   exchange    ranks send these sums to each other: whole, or of a large sum the part that the receiver adds
//   sum_tree    a rank adds the rest of the tree, of a large sum for its part alone
//   gather      ranks that read the same parts send each other those that they have added
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/analysis/facts.h"
#include "core/analysis/packed_sums.h"
#include "core/analysis/rows.h"
#include "core/mesh/share.h"

namespace pmaptrain {

// Ranks add up sums of at least this many bytes in parts. Of smaller ones each rank gets all addends and adds up all,
// because one exchange takes less time than two.
inline constexpr std::size_t least_in_parts = std::size_t{256} << 10;

// Of a value that only all_slices along the same axes and dimension 0 read: these equations, and their axes. So each
// device along the axes reads one of the equal parts of the value.
struct PartsRead {
  AxisSet axes;
  std::vector<const Equation*> by;
};

// Such values of a program, by their ids.
std::map<std::int32_t, PartsRead> parts_read(const Program& program, const Facts& facts);

// Elements that a rank sends to another one or receives from it, counted in the memory of the value that has them.
struct RankMessage {
  int other = 0;
  IndexRange elements;
};

struct RankMessages {
  std::vector<RankMessage> sends, receives;
};

// What a rank does for a sum over devices.
struct RankSum {
  // The sums of all ranks. `slice` is the place of one in the memory for sums; if the sum is added in parts, there is
  // one memory for the rank's own sums, and one for what it receives, in which a slice is its part of a sum.
  std::vector<Contribution> sums;
  std::int64_t slices = 0, received = 0;  // of these memories
  bool in_parts = false;
  IndexRange own;  // the elements of the sum that this rank adds
  RankMessages exchange, gather;
  bool is_gathered = false;  // whether any rank has messages to gather
};

// What a rank gets of a value for a collective that moves it between devices: its instances.
struct RankInstances {
  std::vector<Contribution> all;
  std::int64_t slices = 0;
  RankMessages messages;
};

// A step of what a rank does for a collective, with all operands together: sum_blocks, exchange, sum_tree, gather, or
// send_receive of instances; "[parts]" follows a step in which each rank has a part of the sum.
struct RankStep {
  std::string what;
  std::int64_t elements = 0;           // that a rank adds, as results
  std::size_t sent = 0, received = 0;  // bytes
};
// Adds to the step of this name, which comes last if it is new.
void add_step(std::vector<RankStep>& steps, const RankStep& step);

// The collectives of a program, as a rank carries them out. The process of `share` is the rank.
class Distribution {
 public:
  // With private copies (Source::private_copies) nothing is added in parts. All that is referred to must outlive this.
  Distribution(const Program& program, const Facts& facts, const RowFacts& rows, const Share& share,
               bool private_copies = false);

  // Of operand number `operand` of an equation that adds over devices, or takes a maximum or minimum; and of `elements`
  // elements of it, one of summed_arrays().
  RankSum sum(const Equation& equation, std::size_t operand, std::int64_t elements) const;
  // How many elements each array has that is summed by itself. That is the operand. A bucket whose sum differs between
  // devices is summed array by array.
  std::vector<std::int64_t> summed_arrays(const Equation& equation, std::size_t operand) const;
  // The same of an equation that moves values between devices.
  RankInstances instances(const Equation& equation, std::size_t operand) const;
  // The steps of any equation; none if no rank sends anything for it.
  std::vector<RankStep> steps(const Equation& equation) const;

 private:
  const Program& program_;
  const RowFacts& rows_;
  const Share share_;
  const bool private_copies_;
  const std::map<std::int32_t, PackedSum> packed_sums_;
  const std::map<std::int32_t, PartsRead> parts_read_;
};

}  // namespace pmaptrain
