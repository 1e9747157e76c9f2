// An operation as the graph sees it: a small immutable value and a pointer to its static table of rules.
//
// The graph names no particular op. Each op is a struct in core/ops with the members that rules_of requires; a struct
// without one of them does not compile, and the message names it.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/type.h"

namespace pmaptrain {

class Builder;
struct Region;

// A value of a program, by its index in Program::types.
struct Value {
  std::int32_t id = -1;
  friend auto operator<=>(const Value&, const Value&) = default;
};

// Visits an op's attributes by name: how they are printed, parsed and compared.
class AttributeVisitor {
 public:
  virtual ~AttributeVisitor() = default;
  virtual void field(std::string_view name, std::int64_t& value) = 0;
  virtual void field(std::string_view name, double& value) = 0;
  virtual void field(std::string_view name, bool& value) = 0;
  virtual void field(std::string_view name, DType& value) = 0;
  virtual void field(std::string_view name, std::optional<DType>& value) = 0;
  virtual void field(std::string_view name, AxisSet& value) = 0;
  virtual void field(std::string_view name, std::vector<std::int64_t>& value) = 0;
  virtual void field(std::string_view name, std::vector<double>& value) = 0;
  virtual void field(std::string_view name, std::vector<Shape>& value) = 0;
  virtual void field(std::string_view name, std::vector<std::pair<std::int64_t, std::int64_t>>& value) = 0;
  // Whether attributes that have their usual value are left out.
  virtual bool leaves_out_usual() const { return false; }

  // An attribute that seldom differs from its usual value: printed only where it does.
  template <class T>
  void seldom(std::string_view name, T& value, const T& usual) {
    if (!leaves_out_usual() || value != usual) field(name, value);
  }
  void seldom(std::string_view name, std::optional<DType>& value) { seldom(name, value, std::optional<DType>()); }
  void flag(std::string_view name, bool& value) { seldom(name, value, false); }
};

// Thrown by an op's infer when its operands break a rule of docs/program.md. Builder, parser and checker add where.
struct TypeError : std::runtime_error {
  TypeError(int rule_number, const std::string& message, std::string help_text = {})
      : std::runtime_error(message), rule(rule_number), help(std::move(help_text)) {}
  int rule;
  std::string help;
};

// The arguments of a type rule. For an op with a region, region_params and region_results are the types of the region's
// parameters and results; `types` are the types of all values of the program, by Value::id.
struct InferContext {
  const Mesh& mesh;
  std::span<const Type> operands;
  std::span<const Type> region_params = {};
  std::span<const Type> region_results = {};
  const Region* region = nullptr;
  std::span<const Type> types = {};
};

// The cost of one execution on one logical device. `wire` is the bytes sent in a collective, by its axes.
struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written
  std::vector<std::pair<AxisSet, double>> wire = {};
};

// The arguments of a derivative rule, which computes the cotangents of an equation's operands from those of its
// results. An empty cotangent stands for zero. A cotangent has exactly the type of its value. `b` appends equations.
struct VjpContext {
  Builder& b;
  std::span<const Value> operands;
  std::span<const Value> results;
  std::span<const std::optional<Value>> cotangents;
  std::span<const bool> needed;  // by operand: whether its cotangent is needed
};
using Cotangents = std::vector<std::optional<Value>>;

// The explicit entry of an op that has no derivative. A cotangent that reaches one is the user's error.
struct NoDerivative {
  std::string_view because;
};

// How an op depends on the rows, dimension 0, of its operands. An op of kind keeps or sums runs on some of the rows
// when the types of a call say so: its kernels take the number of rows from these types, never from an attribute.
struct RowRule {
  enum class Kind : std::uint8_t {
    whole,  // a row of a result may need every row of the operands
    keeps,  // row i of each result needs row i of the operands, and all of `whole_operands`
    sums,   // the results are sums over the rows of all operands alike, so that running the op on several devices' rows
            // laid one after another gives the sum of their results. Op::rows takes a sum of bf16 for `whole`: it is
            // rounded once, of all rows
  };
  Kind kind = Kind::whole;
  std::uint32_t whole_operands =
      0;  // of kind keeps: bit i is set where every row of the results reads all of operand i
  // For kind `sums` with one result: which ranges of the result can be computed separately. The columns of an array are
  // along its last dimension.
  enum class Parts : std::uint8_t {
    none,
    rows,     // the columns i to j of the first operand, a matrix, determine the rows i to j of the result
    columns,  // the columns i to j of the second operand determine the columns i to j of the result
    either,   // both
  };
  Parts parts = Parts::none;

  bool reads_all_of(std::size_t operand) const { return operand < 32 && (whole_operands >> operand & 1U) != 0; }
};

// For an op that keeps rows where `condition` holds, all of the operands in `whole_operands` aside.
constexpr RowRule keeps_rows_if(bool condition, std::uint32_t whole_operands = 0) {
  return condition ? RowRule{RowRule::Kind::keeps, whole_operands} : RowRule{};
}

// The explicit entry of an op of kind whole.
struct WholeRows {
  std::string_view because;
};

// Whether an op reads the values of other logical devices, those of its group along `axes`, and how. An op has the
// attributes that its kind names. The elementwise kinds have any number of operands, the others one.
enum class Communication : std::uint8_t {
  none,
  sum,         // over the group, elementwise
  max,         // likewise
  min,         // likewise
  scatter,     // the sum, of which each device has its own part along `dim`
  gather,      // the arrays of the group, one after another along `dim`
  slice,       // nothing is read of other devices: each keeps its own part of its array along `dim`
  all_to_all,  // of each array in the group the device's own part along `split`, one after another along `concat`
  permute,     // the array of the device that `pairs` name as the sender; zeros where they name none
  coordinate,  // nothing is read, but each device has its own value
};

constexpr bool reads_other_devices(Communication how) {
  return how != Communication::none && how != Communication::slice && how != Communication::coordinate;
}
constexpr bool is_along_dim(Communication how) {
  return how == Communication::scatter || how == Communication::gather || how == Communication::slice;
}

// What a backend needs to know of a collective. Members of its kind alone have a meaning.
struct CollectiveRule {
  Communication kind = Communication::none;
  AxisSet axes = {};
  std::int64_t dim = 0;
  std::int64_t split = 0, concat = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs = {};  // places in the group: from, to
};

// The operands of an op that repeats its region: `consts`, then `carries`, then slices (core/ops/loop).
struct LoopRule {
  std::int64_t iterations = 0, consts = 0, carries = 0;
};

struct OpRules {
  std::string_view name;
  bool local;        // rule 1: operands of equal sets, and the results have that set
  bool elementwise;  // element i of the result needs only element i of each operand (or a scalar one)
  bool region;       // an equation of it carries a region
  bool view;         // the result is its operand's bytes under another type: nothing to carry out
  bool packs;        // the result is a bucket of the operands (core/graph/bucket.h)
  bool unpacks;      // the operand is a bucket of the results
  bool adds;         // elementwise, and the result is the sum of the operands
  bool in_place;     // writes some elements of operand 0 and keeps the others, so it may run in the operand's memory
  Communication communication;
  CollectiveRule (*collective)(const void* op);  // null of kind none
  AxisSet (*axes)(const void* op);               // of an op over named axes; null for every other op
  LoopRule (*loop)(const void* op);              // of an op that repeats its region; null for every other op
  RowRule (*rows)(const void* op, std::span<const Type> operands,
                  std::span<const Type> results);  // null: see whole_rows
  std::string_view whole_rows;                     // why all are read
  std::optional<double> (*splat)(const void* op);  // the value of every element; null for an op that has operands
  std::vector<Type> (*infer)(const void* op, const InferContext& context);
  Cost (*cost)(const void* op, const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results);
  Cotangents (*derivative)(const void* op, VjpContext& context);  // null: see no_derivative
  std::string_view no_derivative;                                 // why there is none
  void (*attributes)(void* op, AttributeVisitor& visitor);
  void (*read_attributes)(const void* op, AttributeVisitor& visitor);  // of a copy
  std::shared_ptr<void> (*make)();
};

template <class T>
concept HasName = requires {
  { T::name } -> std::convertible_to<std::string_view>;
};
template <class T>
concept HasLocal = requires {
  { T::local } -> std::convertible_to<bool>;
};
template <class T>
concept HasInfer = requires(const T& op, const InferContext& c) {
  { op.infer(c) } -> std::same_as<std::vector<Type>>;
};
template <class T>
concept HasCost = requires(const T& op, const Mesh& m, std::span<const Type> t) {
  { op.cost(m, t, t) } -> std::same_as<Cost>;
};
template <class T>
concept HasAttributes = requires(T& op, AttributeVisitor& v) {
  op.attributes(v);
};
template <class T>
concept HasVjp = requires(const T& op, VjpContext& c) {
  { op.derivative(c) } -> std::same_as<Cotangents>;
};
template <class T>
concept HasNoVjp = requires {
  { T::derivative } -> std::convertible_to<NoDerivative>;
};

template <class T>
concept IsElementwise = requires {
  requires T::elementwise;
};
template <class T>
concept IsRegion = requires {
  requires T::region;
};
template <class T>
concept IsView = requires {
  requires T::view;
};
template <class T>
concept Packs = requires {
  requires T::packs;
};
template <class T>
concept Unpacks = requires {
  requires T::unpacks;
};
template <class T>
concept HasAxes = requires(const T& op) {
  { op.axes } -> std::convertible_to<AxisSet>;
};
template <class T>
concept HasCommunication = requires {
  { T::communication } -> std::convertible_to<Communication>;
};
template <class T>
concept SaysWhatItReads = HasCommunication<T> || requires {
  requires T::local;
};
template <class T>
concept HasDim = requires(const T& op) {
  { op.dim } -> std::convertible_to<std::int64_t>;
};
template <class T>
concept HasSplitAndConcat = requires(const T& op) {
  { op.split } -> std::convertible_to<std::int64_t>;
  { op.concat } -> std::convertible_to<std::int64_t>;
};
template <class T>
concept HasPairs = requires(const T& op) {
  { op.pairs } -> std::convertible_to<std::vector<std::pair<std::int64_t, std::int64_t>>>;
};
template <class T>
concept IsLoop = requires(const T& op) {
  { op.loop_rule() } -> std::same_as<LoopRule>;
};
template <class T>
concept Adds = requires {
  requires T::adds;
};
template <class T>
concept WritesInPlace = requires {
  requires T::writes_in_place;
};
template <class T>
concept HasSplat = requires(const T& op) {
  { op.splat() } -> std::same_as<std::optional<double>>;
};
template <class T>
concept HasRowRule = requires(const T& op, std::span<const Type> types) {
  { op.row_rule(types, types) } -> std::same_as<RowRule>;
};
template <class T>
concept HasWholeRows = requires {
  { T::row_rule } -> std::convertible_to<WholeRows>;
};

template <class T>
constexpr Communication communication_of() {
  if constexpr (HasCommunication<T>) {
    return T::communication;
  } else {
    return Communication::none;
  }
}

template <class T>
CollectiveRule collective_rule(const T& op) {
  constexpr Communication kind = communication_of<T>();
  CollectiveRule rule;
  rule.kind = kind;
  rule.axes = op.axes;
  if constexpr (is_along_dim(kind)) rule.dim = op.dim;
  if constexpr (kind == Communication::all_to_all) rule.split = op.split, rule.concat = op.concat;
  if constexpr (kind == Communication::permute) rule.pairs = op.pairs;
  return rule;
}

template <class T>
constexpr OpRules make_rules() {
  OpRules rules{};
  rules.name = T::name;
  rules.local = T::local;
  rules.elementwise = IsElementwise<T>;
  rules.region = IsRegion<T>;
  rules.view = IsView<T>;
  rules.packs = Packs<T>;
  rules.unpacks = Unpacks<T>;
  rules.adds = Adds<T>;
  rules.in_place = WritesInPlace<T>;
  if constexpr (HasSplat<T>) {
    rules.splat = [](const void* op) { return static_cast<const T*>(op)->splat(); };
  }
  rules.communication = communication_of<T>();
  if constexpr (communication_of<T>() != Communication::none) {
    rules.collective = [](const void* op) { return collective_rule(*static_cast<const T*>(op)); };
  }
  if constexpr (HasAxes<T>) {
    rules.axes = [](const void* op) { return static_cast<const T*>(op)->axes; };
  }
  if constexpr (IsLoop<T>) {
    rules.loop = [](const void* op) { return static_cast<const T*>(op)->loop_rule(); };
  }
  if constexpr (HasRowRule<T>) {
    rules.rows = [](const void* op, std::span<const Type> operands, std::span<const Type> results) {
      return static_cast<const T*>(op)->row_rule(operands, results);
    };
  } else {
    rules.whole_rows = T::row_rule.because;
  }
  rules.infer = [](const void* op, const InferContext& context) { return static_cast<const T*>(op)->infer(context); };
  rules.cost = [](const void* op, const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) {
    return static_cast<const T*>(op)->cost(mesh, operands, results);
  };
  if constexpr (HasVjp<T>) {
    rules.derivative = [](const void* op, VjpContext& context) {
      return static_cast<const T*>(op)->derivative(context);
    };
  } else {
    rules.no_derivative = T::derivative.because;
  }
  rules.attributes = [](void* op, AttributeVisitor& visitor) { static_cast<T*>(op)->attributes(visitor); };
  rules.read_attributes = [](const void* op, AttributeVisitor& visitor) {
    T copy = *static_cast<const T*>(op);
    copy.attributes(visitor);
  };
  rules.make = []() -> std::shared_ptr<void> { return std::make_shared<T>(); };
  return rules;
}

template <class T>
const OpRules& rules_of() {
  static_assert(HasName<T>, "this op lacks its name: static constexpr std::string_view name");
  static_assert(HasLocal<T>, "this op does not say whether it is local: static constexpr bool local");
  static_assert(SaysWhatItReads<T>,
                "this op is not local and does not say what it reads of other devices: "
                "static constexpr Communication communication");
  constexpr Communication how = communication_of<T>();
  static_assert(how == Communication::none || HasAxes<T>, "this op lacks the axes that it works over: AxisSet axes");
  static_assert(!is_along_dim(how) || HasDim<T>,
                "this op lacks the dimension along which the devices' parts lie: std::int64_t dim");
  static_assert(how != Communication::all_to_all || HasSplitAndConcat<T>,
                "this op lacks the dimensions along which it cuts and concatenates: std::int64_t split, concat");
  static_assert(how != Communication::permute || HasPairs<T>,
                "this op lacks its pairs of sender and receiver: "
                "std::vector<std::pair<std::int64_t, std::int64_t>> pairs");
  static_assert(HasInfer<T>, "this op lacks its type rule: std::vector<Type> infer(const InferContext&) const");
  static_assert(HasCost<T>, "this op lacks its cost: Cost cost(const Mesh&, operands, results) const");
  static_assert(HasAttributes<T>, "this op lacks its text form: void attributes(AttributeVisitor&)");
  static_assert(HasVjp<T> || HasNoVjp<T>,
                "this op lacks its derivative: Cotangents derivative(VjpContext&) const, or "
                "static constexpr NoDerivative derivative{\"because ...\"}");
  static_assert(HasRowRule<T> || HasWholeRows<T>,
                "this op does not say how it depends on rows: RowRule row_rule(operands, results) const, or "
                "static constexpr WholeRows row_rule{\"because ...\"}");
  static constexpr OpRules rules = make_rules<T>();
  return rules;
}

class Op {
 public:
  template <HasName T>
  Op(T op) : rules_(&rules_of<T>()), op_(share(std::move(op))) {}  // NOLINT: implicit by design
  Op(const OpRules& rules, std::shared_ptr<const void> op) : rules_(&rules), op_(std::move(op)) {}

  const OpRules& rules() const { return *rules_; }
  std::string_view name() const { return rules_->name; }
  bool local() const { return rules_->local; }

  // The struct, when this op is a T; else null.
  template <class T>
  const T* as() const {
    return rules_ == &rules_of<T>() ? static_cast<const T*>(op_.get()) : nullptr;
  }

  // Types of the results. Applies rule 1 to local ops, and to all the bounds of rule 6. Throws TypeError.
  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const {
    return rules_->cost(op_.get(), mesh, operands, results);
  }
  Cotangents derivative(VjpContext& context) const { return rules_->derivative(op_.get(), context); }

  // The axes that an op over named axes works over (collectives, pvary, axis_index); none for every other op.
  AxisSet axes() const { return rules_->axes != nullptr ? rules_->axes(op_.get()) : AxisSet(); }
  RowRule rows(std::span<const Type> operands, std::span<const Type> results) const;
  CollectiveRule collective() const {
    return rules_->collective != nullptr ? rules_->collective(op_.get()) : CollectiveRule();
  }
  // Of an op that repeats its region.
  LoopRule loop() const { return rules_->loop(op_.get()); }
  bool is_loop() const { return rules_->loop != nullptr; }

  const void* data() const { return op_.get(); }
  const std::shared_ptr<const void>& shared() const { return op_; }

 private:
  // Ops without attributes, which most are, need no memory of their own.
  template <class T>
  static std::shared_ptr<const void> share(T op) {
    if constexpr (std::is_empty_v<T>) {
      static constexpr T the_one{};
      return {std::shared_ptr<const void>(), &the_one};
    } else {
      return std::make_shared<const T>(std::move(op));
    }
  }

  std::vector<Type> infer_unchecked(const InferContext& context) const;

  const OpRules* rules_;
  std::shared_ptr<const void> op_;
};

// "psum[axes={devices}]": the name and the attributes. Without a mesh, axes print by index.
std::string to_string(const Op& op, const Mesh* mesh = nullptr);
// Appends bytes that are the same for two ops exactly when these are: the same rules, the same attributes.
void append_key(const Op& op, std::string& key);

// The ops that parser, builder and differentiation need by role. core/ops provides the one instance.
struct OpSet {
  std::span<const OpRules* const> all;
  Op (*pvary)(AxisSet axes);
  Op (*psum)(AxisSet axes);
  Op (*add)();
  Op (*constant)(DType dtype, Shape shape, double value);
  Op (*optimization_barrier)();

  const OpRules* find(std::string_view name) const;
};

}  // namespace pmaptrain
