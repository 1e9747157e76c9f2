#include "core/passes/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/unary.h"

namespace pmaptrain {
namespace {

// Values of smaller chains stay in a cache between a chain and its readers.
constexpr std::int64_t least_elements = 1024;
// The bytes of what has to be kept, by those that need no longer be stored: the means of rows come on top.
constexpr double most_kept = 1.25;
// The most equations that a chain computes again for one other chain.
constexpr std::size_t most_equations = 64;

template <class... Ops>
bool is_one_of(const Op& op) {
  return (... || (op.as<Ops>() != nullptr));
}

// Measured on a CPU with AVX-512: a tanh takes 0.6 ns, and 4 bytes 0.27 ns.
constexpr ArithmeticBytes arithmetic{8, 3, 0.5};

class Recompute {
 public:
  Recompute(const Dataflow& flow, const Chains& chains, const Lists& readers)
      : flow_(flow), chains_(chains), must_store_(flow.size()), reading_(flow.size()), copies_(chains.chains.size()) {
    for (std::size_t i = 0; i < flow.size(); ++i) {
      const std::size_t own = chains.chain_of[i];
      if (own == no_chain) continue;
      for (const std::size_t reader : readers[i]) {
        const std::size_t c = reader == no_chain ? no_chain : chains.chain_of[reader];
        if (c == own) continue;
        if (c == no_chain || !are_alike(c, own)) {
          must_store_[i] = true;
        } else {
          add_reader(i, c);
        }
      }
    }
  }

  // A chain comes after those that it reads, so its own copies are known when theirs are chosen.
  std::vector<std::vector<std::size_t>> run() {
    for (std::size_t c = chains_.chains.size(); c-- > 0;) {
      if (chains_.chains[c].elements >= least_elements) consider(c);
    }
    for (std::vector<std::size_t>& copies : copies_) std::sort(copies.begin(), copies.end());
    return std::move(copies_);
  }

 private:
  // What a chain would compute again of the chain that is considered, and the values that it would then have to load.
  struct Plan {
    std::size_t reader;
    std::vector<std::size_t> equations;
    std::vector<Value> loads;
    double bytes = 0;  // of an element: loads, and arithmetic in bytes
  };

  bool are_alike(std::size_t a, std::size_t b) const {
    const Chain &x = chains_.chains[a], &y = chains_.chains[b];
    return x.elements == y.elements && x.varying == y.varying;
  }

  void add_reader(std::size_t i, std::size_t chain) {
    std::vector<std::size_t>& reading = reading_[i];
    if (std::find(reading.begin(), reading.end(), chain) == reading.end()) reading.push_back(chain);
  }

  bool is_inside(std::size_t i, std::size_t chain) const {
    return chains_.chain_of[i] == chain ||
           std::find(copies_[chain].begin(), copies_[chain].end(), i) != copies_[chain].end();
  }

  // Bytes of a value for each element of a chain: of one that is broadcast, a part.
  double bytes_per_element(Value value, std::size_t chain) const {
    const Type& type = flow_.program().type(value);
    return static_cast<double>(bytes(type)) / static_cast<double>(chains_.chains[chain].elements);
  }

  // The values that a chain loads.
  std::unordered_set<std::int32_t>& loads_of(std::size_t chain) {
    const auto [found, is_new] = loads_.try_emplace(chain);
    if (is_new) {
      for (const std::size_t i : chains_.chains[chain].members) {
        for (const Value operand : flow_.equation(i).operands) found->second.insert(flow_.source(operand).id);
      }
    }
    return found->second;
  }

  void consider(std::size_t c) {
    double stored = 0, before = 0;
    std::vector<std::size_t> soft;  // members that are stored for other chains alone
    std::vector<std::size_t> readers;
    for (const std::size_t i : chains_.chains[c].members) {
      if (must_store_[i] || reading_[i].empty()) continue;
      const double size = bytes_per_element(flow_.equation(i).results.front(), c);
      soft.push_back(i);
      stored += size;
      before += size * static_cast<double>(1 + reading_[i].size());
      for (const std::size_t reader : reading_[i]) {
        if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
      }
    }
    if (soft.empty()) return;
    std::vector<Plan> plans;
    std::unordered_set<std::int32_t> kept;
    double after = 0, kept_bytes = 0;
    for (const std::size_t reader : readers) {
      plans.push_back(plan_of(c, reader, soft));
      if (plans.back().equations.size() > most_equations) return;
      after += plans.back().bytes;
      for (const Value value : plans.back().loads) {
        if (kept.insert(value.id).second) kept_bytes += bytes_per_element(value, c);
      }
    }
    if (after > before || kept_bytes > stored * most_kept) return;
    for (const Plan& plan : plans) carry_out(plan, c);
  }

  Plan plan_of(std::size_t c, std::size_t reader, const std::vector<std::size_t>& soft) {
    Plan plan{reader, {}, {}};
    std::unordered_set<std::size_t> found;
    for (const std::size_t i : soft) {
      if (std::find(reading_[i].begin(), reading_[i].end(), reader) != reading_[i].end()) visit(i, c, plan, found);
    }
    std::unordered_set<std::int32_t> loads;
    for (const std::size_t i : plan.equations) {
      plan.bytes += arithmetic.of(flow_.equation(i).op);
      for (const Value operand : flow_.equation(i).operands) {
        const Value from = flow_.source(operand);
        const std::size_t* const at = flow_.definition(from);
        if (at != nullptr && (found.contains(*at) || is_inside(*at, reader))) continue;
        if (loads_of(reader).contains(from.id) || !loads.insert(from.id).second) continue;
        plan.loads.push_back(from);
        plan.bytes += bytes_per_element(from, c);
      }
    }
    return plan;
  }

  // Adds member i of chain c, and the members that it needs, up to values that are stored in any case.
  void visit(std::size_t i, std::size_t c, Plan& plan, std::unordered_set<std::size_t>& found) const {
    if (found.size() > most_equations || is_inside(i, plan.reader) || !found.insert(i).second) return;
    plan.equations.push_back(i);
    for (const Value operand : flow_.equation(i).operands) {
      const std::size_t* const at = flow_.definition(flow_.source(operand));
      if (at != nullptr && chains_.chain_of[*at] == c && !must_store_[*at]) visit(*at, c, plan, found);
    }
  }

  void carry_out(const Plan& plan, std::size_t c) {
    std::vector<std::size_t>& copies = copies_[plan.reader];
    copies.insert(copies.end(), plan.equations.begin(), plan.equations.end());
    for (const std::size_t i : chains_.chains[c].members) {
      if (must_store_[i] || !is_inside(i, plan.reader)) continue;
      std::erase(reading_[i], plan.reader);
      loads_of(plan.reader).erase(flow_.equation(i).results.front().id);
    }
    for (const Value value : plan.loads) {
      loads_of(plan.reader).insert(value.id);
      const std::size_t* const at = flow_.definition(value);
      if (at == nullptr || chains_.chain_of[*at] == no_chain || must_store_[*at]) continue;
      if (are_alike(chains_.chain_of[*at], plan.reader)) {
        add_reader(*at, plan.reader);
      } else {
        must_store_[*at] = true;
      }
    }
  }

  const Dataflow& flow_;
  const Chains& chains_;
  std::vector<bool> must_store_;                   // by equation: whether any but chains alike reads its result
  std::vector<std::vector<std::size_t>> reading_;  // by equation: the other chains that load its result
  std::vector<std::vector<std::size_t>> copies_;   // by chain
  std::unordered_map<std::size_t, std::unordered_set<std::int32_t>> loads_;
};

}  // namespace

double ArithmeticBytes::of(const Op& op) const {
  using namespace ops;
  if (is_one_of<Exp, Expm1, Log, Log1p, Sin, Cos, Tanh, Erf, Pow>(op)) return transcendental;
  if (is_one_of<Div, Rem, Sqrt, Rsqrt>(op)) return division;
  return other;
}

std::vector<std::vector<std::size_t>> find_recomputed(const Dataflow& flow, const Chains& chains,
                                                      const Lists& readers) {
  return Recompute(flow, chains, readers).run();
}

}  // namespace pmaptrain
