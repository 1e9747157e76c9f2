// Appends typed equations to a program.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/graph/program.h"
#include "core/graph/type_list.h"

namespace pmaptrain {

class Builder {
 public:
  Builder(Program& program, const OpSet& ops) : program_(program), ops_(ops), current_(&program.equations) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  const OpSet& ops() const { return ops_; }
  const Mesh& mesh() const { return program_.mesh; }
  // Returns a copy, because appending an equation may move the program's types.
  Type type(Value value) const { return program_.type(value); }

  Value input(Group group, std::string name, Type type);
  // An input of which each device has its part.
  Value input(Group group, std::string name, DType dtype, Layout layout);
  // An input that is a bucket of these parts, and that its layout divides into shards.
  Value bucket(Group group, std::string name, DType dtype, std::vector<Part> parts, Layout layout);
  void output(std::string name, Value value) { program_.outputs.push_back({std::move(name), value}); }

  // One equation. For a local op whose operands have different sets, inserts the pvary that rule 1 requires. Throws
  // Error (usage) located at the current origin when the types do not fit.
  Value emit(const Op& op, std::span<const Value> operands);
  Value emit(const Op& op, std::initializer_list<Value> operands) {
    return emit(op, std::span<const Value>(operands.begin(), operands.size()));
  }
  std::vector<Value> emit_all(const Op& op, std::span<const Value> operands);

  // An equation that carries a region. `body` gets the region's parameters (of `param_types`) and returns what the
  // region yields.
  using Body = std::function<std::vector<Value>(std::span<const Value> params)>;
  std::vector<Value> emit_region(const Op& op, std::span<const Value> operands, std::span<const Type> param_types,
                                 const Body& body);

  // A scalar or splat constant, the same on every device.
  Value constant(DType dtype, double value, Shape shape = {});
  // `value` as one that varies over `axes` too; itself where it already does.
  Value vary(Value value, AxisSet axes);

  // Equations of the region that is being built (or of the program itself).
  const std::vector<Equation>& equations() const { return *current_; }

  // Sets the origin of equations appended during its life.
  class Scope {
   public:
    Scope(Builder& b, Origin origin)
        : b_(b), saved_(std::exchange(b.origin_, std::make_shared<const Origin>(std::move(origin)))) {}
    ~Scope() { b_.origin_ = std::move(saved_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& b_;
    std::shared_ptr<const Origin> saved_;
  };
  const Origin& origin() const { return *origin_; }

  // Equations whose results differentiate() computes again instead of reading them. The derivative of a model that
  // keeps few of its activations needs less memory.
  struct Rematerialised {
    std::size_t begin = 0, end = 0;  // among equations()
    std::vector<Value> inputs;       // from which they are computed again, with everything else that they read
  };
  // Marks the equations appended during its life. Within another such scope it does nothing: the outer one holds.
  class Rematerialise {
   public:
    Rematerialise(Builder& b, std::vector<Value> inputs) : b_(b), is_inner_(std::exchange(b.rematerialises_, true)) {
      if (!is_inner_) b.rematerialised_.push_back({b.equations().size(), b.equations().size(), std::move(inputs)});
    }
    ~Rematerialise() {
      b_.rematerialises_ = is_inner_;
      if (!is_inner_) b_.rematerialised_.back().end = b_.equations().size();
    }
    Rematerialise(const Rematerialise&) = delete;
    Rematerialise& operator=(const Rematerialise&) = delete;

   private:
    Builder& b_;
    const bool is_inner_;
  };
  // Of the region that is being built, in order.
  const std::vector<Rematerialised>& rematerialised() const { return rematerialised_; }

  // Equations that gather values from shards, and those after them that read these values. differentiate() gathers them
  // again where the derivatives of the latter begin, and repeats what is computed of these values alone, so that they
  // are not kept from the one to the other. Not in regions.
  struct Regathered {
    std::size_t begin = 0, gathered = 0, end = 0;  // among equations(): the gathers are before `gathered`
    std::vector<Value> shards;                     // that the gathers read
  };
  // Marks the equations appended during its life, of which those before gathered() are the gathers.
  class Regather {
   public:
    Regather(Builder& b, std::vector<Value> shards) : b_(b) {
      b.regathered_.push_back({b.equations().size(), b.equations().size(), b.equations().size(), std::move(shards)});
    }
    ~Regather() { b_.regathered_.back().end = b_.equations().size(); }
    Regather(const Regather&) = delete;
    Regather& operator=(const Regather&) = delete;

    void gathered() { b_.regathered_.back().gathered = b_.equations().size(); }

   private:
    Builder& b_;
  };
  const std::vector<Regathered>& regathered() const { return regathered_; }

 private:
  Value new_value(Type type);
  // The operands, varied where rule 1 requires it.
  std::vector<Value> varied(const Op& op, std::span<const Value> operands);
  // Appends an equation. Returns its results; the reference is valid until the next call.
  const std::vector<Value>& append(const Op& op, std::vector<Value> operands, std::vector<Region> regions);

  Program& program_;
  const OpSet& ops_;
  std::vector<Equation>* current_;
  std::vector<Rematerialised> rematerialised_;
  bool rematerialises_ = false;
  std::vector<Regathered> regathered_;
  TypeList operand_types_;  // of the equation at hand
  std::shared_ptr<const Origin> origin_ = std::make_shared<const Origin>();
};

}  // namespace pmaptrain
