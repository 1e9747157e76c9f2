#include "core/passes/inline_chains.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/graph/check.h"
#include "core/ops/fused/fused.h"
#include "core/ops/fused_columns/fused_columns.h"
#include "core/passes/recompute.h"
#include "core/passes/slice.h"
#include "core/passes/uses.h"

namespace pmaptrain {
namespace {

// Smaller arrays stay in a cache.
constexpr std::int64_t least_in_memory = std::int64_t{1} << 16;
// The most equations of a chain that others compute again.
constexpr std::size_t most_inlined = 64;

// An H100 reads 4 bytes in the time of a thread's part of a tanh.
constexpr ArithmeticBytes gpu_arithmetic{4, 1.5, 0.1};

class Inliner {
 public:
  Inliner(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded)
      : program_(program), equations_(equations), readers_(program.types.size()) {
    for (std::size_t i = 0; i < equations_.size(); ++i) {
      for (const Value operand : equations_[i].operands) add_reader(operand, i);
    }
    for (const Value value : yielded) add_reader(value, end);
  }

  // From the last chain on, so that what a chain reads is known when the chains before are considered.
  bool run() {
    bool found = false;
    for (std::size_t i = equations_.size(); i-- > 0;) found |= consider(i);
    std::erase_if(equations_, [](const Equation& equation) { return equation.results.empty(); });
    return found;
  }

 private:
  static constexpr std::size_t end = static_cast<std::size_t>(-1);  // whoever reads a yielded value

  std::vector<std::size_t>& readers(Value value) { return readers_[static_cast<std::size_t>(value.id)]; }
  void add_reader(Value value, std::size_t i) {
    std::vector<std::size_t>& known = readers(value);
    if (std::find(known.begin(), known.end(), i) == known.end()) known.push_back(i);
  }

  // The number of elements that a chain, or a sum of columns, computes; 0 for other equations.
  std::int64_t elements_of(const Equation& equation) const {
    if (equation.op.as<ops::Fused>() != nullptr) return numel(program_.type(equation.results[0]));
    if (equation.op.as<ops::FusedColumns>() == nullptr) return 0;
    for (const Equation& inner : equation.regions[0].equations) {
      if (inner.op.as<ops::ReduceSum>() != nullptr) return numel(program_.type(inner.operands[0]));
    }
    return 0;
  }

  double size(Value value) const { return static_cast<double>(bytes(program_.type(value))); }

  // What a reader has of a chain.
  struct Reader {
    std::size_t equation;
    std::vector<Value> wanted;  // values of the chain's region
    Slice slice;
  };

  bool consider(std::size_t i) {
    const Equation chain = equations_[i];
    if (chain.op.as<ops::Fused>() == nullptr) return false;
    const std::int64_t elements = elements_of(chain);
    if (elements < least_in_memory) return false;
    const Region& region = chain.regions[0];
    const auto inlines = [&](std::size_t reader) {
      return reader != end && elements_of(equations_[reader]) == elements;
    };
    std::vector<Value> stored, params;  // of the region's results, and of the chain's operands
    std::vector<Reader> found;
    Outside outside = outside_of(chain, region);
    double before = 0, after = 0;
    const auto read = [&](const Slice& slice, std::size_t reader) {
      double sum = 0;
      for (const Value value : slice.reads) {
        const Value operand = outside.at(value.id);
        const auto& own = equations_[reader].operands;
        if (reader == i || std::find(own.begin(), own.end(), operand) == own.end()) sum += size(operand);
      }
      return sum;
    };
    for (const Value operand : chain.operands) before += size(operand);
    for (std::size_t r = 0; r < chain.results.size(); ++r) {
      const std::vector<std::size_t>& all = readers(chain.results[r]);
      if (!std::all_of(all.begin(), all.end(), inlines)) {
        stored.push_back(region.results[r]);
        continue;
      }
      before += size(chain.results[r]) * static_cast<double>(1 + all.size());
      for (const std::size_t reader : all) {
        auto known = std::find_if(found.begin(), found.end(), [&](const Reader& x) { return x.equation == reader; });
        if (known == found.end()) known = found.insert(found.end(), {reader, {}, {}});
        known->wanted.push_back(region.results[r]);
      }
    }
    if (found.empty()) return false;
    if (!stored.empty()) after += read(slice_of(region, stored, outside), i);
    for (std::size_t r = 0; r < chain.results.size(); ++r) {
      if (std::find(stored.begin(), stored.end(), region.results[r]) != stored.end()) {
        outside[region.results[r].id] = chain.results[r];
      }
    }
    for (Reader& reader : found) {
      reader.slice = slice_of(region, reader.wanted, outside);
      if (reader.slice.equations.size() > most_inlined || !keeps_matrix(reader, chain, outside, elements)) return false;
      after += read(reader.slice, reader.equation);
      for (const std::size_t at : reader.slice.equations) {
        after += gpu_arithmetic.of(region.equations[at].op) * static_cast<double>(elements);
      }
    }
    if (after >= before) return false;

    for (const Reader& reader : found) put_inside(chain, reader, outside);
    for (const Value operand : chain.operands) std::erase(readers(operand), i);
    if (stored.empty()) {
      equations_[i].results.clear();
    } else {
      equations_[i] = part_of_chain(program_, chain, stored, outside_of(chain, region));
      for (const Value operand : equations_[i].operands) add_reader(operand, i);
    }
    return true;
  }

  // A fused_columns equation needs an operand with all elements.
  bool keeps_matrix(const Reader& reader, const Equation& chain, const Outside& outside, std::int64_t elements) const {
    const Equation& equation = equations_[reader.equation];
    const auto is_matrix = [&](Value value) { return numel(program_.type(value)) == elements; };
    return equation.op.as<ops::FusedColumns>() == nullptr ||
           std::any_of(reader.slice.reads.begin(), reader.slice.reads.end(),
                       [&](Value value) { return is_matrix(outside.at(value.id)); }) ||
           std::any_of(equation.operands.begin(), equation.operands.end(), [&](Value value) {
             return is_matrix(value) &&
                    std::find(chain.results.begin(), chain.results.end(), value) == chain.results.end();
           });
  }

  void put_inside(const Equation& chain, const Reader& reader, const Outside& outside) {
    Equation& equation = equations_[reader.equation];
    const Region& own = equation.regions[0];
    Equation made{equation.op, {}, equation.results, equation.origin, {}};
    Region body;
    const Outside inside = copy_slice(program_, chain.regions[0], reader.slice, outside, made, body);
    Outside copies;  // by value of the reader's region
    for (std::size_t p = 0; p < own.params.size(); ++p) {
      const Value operand = equation.operands[p];
      Value& copy = copies[own.params[p].id];
      const auto result = std::find(chain.results.begin(), chain.results.end(), operand) - chain.results.begin();
      const auto known = std::find(made.operands.begin(), made.operands.end(), operand) - made.operands.begin();
      const Value of_chain =
          result < std::ssize(chain.results) ? chain.regions[0].results[static_cast<std::size_t>(result)] : Value{};
      if (of_chain != Value{} && inside.contains(of_chain.id)) {
        copy = inside.at(of_chain.id);
      } else if (known < std::ssize(made.operands)) {
        copy = body.params[static_cast<std::size_t>(known)];
      } else {
        copy = new_value(program_, own.params[p]);
        made.operands.push_back(operand);
        body.params.push_back(copy);
      }
    }
    for (Equation inner : own.equations) {
      for (Value& operand : inner.operands) operand = copies.at(operand.id);
      const Value result = inner.results[0];
      inner.results = {copies[result.id] = new_value(program_, result)};
      body.equations.push_back(std::move(inner));
    }
    for (const Value result : own.results) body.results.push_back(copies.at(result.id));
    made.regions.push_back(std::move(body));
    for (const Value operand : equation.operands) std::erase(readers(operand), reader.equation);
    equation = std::move(made);
    for (const Value operand : equation.operands) add_reader(operand, reader.equation);
  }

  Program& program_;
  std::vector<Equation>& equations_;
  std::vector<std::vector<std::size_t>> readers_;  // by value
};

bool inline_chains(Program& program, std::vector<Equation>& equations, std::span<const Value> yielded) {
  bool found = false;
  for (Equation& equation : equations) {
    if (!equation.op.is_loop()) continue;
    Region& body = equation.regions[0];
    found |= inline_chains(program, body.equations, body.results);
  }
  return Inliner(program, equations, yielded).run() || found;
}

}  // namespace

Program inline_chains(Program program) {
  const std::vector<Value> yielded = yielded_by(program);
  if (inline_chains(program, program.equations, yielded)) check(program, "inline_chains");
  return program;
}

}  // namespace pmaptrain
