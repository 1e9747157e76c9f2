#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/runtime/cpu/plan.h"

namespace pmaptrain::cpu {
namespace {

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {}

  std::string print() {
    text_ = fmt::format("barriers {}\n", plan_.barriers_per_step());
    for (std::size_t i = 0; i < plan_.cuts.size(); ++i) {
      text_ += fmt::format("cut {} {}\n", i, describe(plan_.cuts[i]));
    }
    print("persistent", plan_.persistent);
    print("transient", plan_.transient);
    for (std::size_t i = 0; i < plan_.program->inputs.size(); ++i) {
      text_ += "input " + plan_.program->inputs[i].name + " " + buffer(plan_.inputs[i]) + "\n";
    }
    for (std::size_t number = 0; number < plan_.stages.size(); ++number) print(plan_.stages[number], number);
    for (std::size_t i = 0; i < plan_.program->outputs.size(); ++i) {
      text_ += "output " + plan_.program->outputs[i].name + " " + buffer(plan_.outputs[i]) + "\n";
    }
    return std::move(text_);
  }

 private:
  void print(std::string_view title, const PoolSizes& sizes) {
    text_ += fmt::format("bytes {}", title);
    const auto add = [&](std::string_view name, std::size_t bytes) {
      if (bytes > 0) text_ += fmt::format(" {}={}", name, bytes);
    };
    add("constants", sizes.constants);
    add("worker", sizes.worker);
    add("shared", sizes.shared);
    add("devices", sizes.devices);
    add("batch", sizes.batch);
    add("arena", sizes.arena);
    add("accumulators", sizes.accumulators);
    add("base", sizes.base);
    text_ += "\n";
  }

  void print(const Stage& stage, std::size_t number) {
    text_ += fmt::format("stage {}\n", number);
    for (const StageLoop& loop : plan_.loops) {
      if (loop.first == number)
        text_ +=
            fmt::format("  first of stages {} to {}, which run {} times\n", number, loop.end - 1, loop.iterations());
    }
    print("each worker", stage.every_worker);
    for (const ChunkList& chunked : stage.chunk_lists) {
      print(fmt::format("each of {} chunk(s) of {} elements{}", chunked.chunks, chunked.elements, over(chunked.axes)),
            chunked.instructions);
    }
    print("tasks", stage.tasks);
    for (const PieceList& list : stage.piece_lists)
      print(fmt::format("each piece of cut {}", list.cut), list.instructions);
  }

  std::string over(AxisSet axes) const { return axes.empty() ? "" : " over " + plan_.program->mesh.to_string(axes); }

  std::string describe(const Cut& cut) const {
    std::string text = fmt::format("{} piece(s) of up to {} {}", cut.pieces.size(), cut.largest(),
                                   cut.rows_per_instance > 0 ? "row(s)" : "instance(s)");
    if (cut.rows_per_instance > 0) text += fmt::format(", of {} a device", cut.rows_per_instance);
    return text + over(cut.axes);
  }

  void print(std::string_view title, const std::vector<Instruction>& instructions) {
    if (instructions.empty()) return;
    text_ += fmt::format("  {}\n", title);
    print(instructions, "    ");
  }

  std::string buffer(int index) const {
    const Buffer& b = plan_.buffers[static_cast<std::size_t>(index)];
    return fmt::format("{}{}+{}:{}[{}]", b.persistent ? "persistent " : "", to_string(b.pool), b.offset,
                       to_string(b.dtype), b.elements);
  }

  std::string list(const std::vector<int>& buffers) const {
    std::string text;
    for (int index : buffers) text += (text.empty() ? "" : ", ") + buffer(index);
    return text;
  }

  std::string op(const Equation* equation) const { return to_string(equation->op, &plan_.program->mesh); }

  void print(const std::vector<Instruction>& instructions, const std::string& indent) {
    for (const Instruction& instruction : instructions) {
      text_ += indent + visit([&](const auto& i) { return line(i, indent); }, instruction) + "\n";
    }
  }

  std::string line(const Kernel& i, const std::string&) const {
    return fmt::format("{} = {} {}", list(i.results), op(i.equation), list(i.operands));
  }
  std::string line(const RowSums& i, const std::string&) const {
    return fmt::format("accumulator {} = {} over the piece's rows {}", fmt::join(i.accumulators, ", "), op(i.equation),
                       list(i.operands));
  }
  std::string line(const ProductInParts& i, const std::string&) const {
    return fmt::format("{} = {} over all rows in {} parts {}{}", buffer(i.result), op(i.equation), i.parts,
                       i.of_columns ? "of columns " : "", list(i.operands));
  }
  std::string line(const Copy& i, const std::string&) const {
    return fmt::format("{} = {} {}", buffer(i.to), i.iteration_parts > 0 ? "slice of" : "copy", buffer(i.from));
  }
  std::string line(const PackOperand& i, const std::string&) const {
    return fmt::format("{} = pack {} for operand {} of {}", buffer(i.to), buffer(i.from), i.operand, op(i.equation));
  }
  std::string line(const ReducePartial& i, const std::string&) const {
    return fmt::format("accumulator {} = {} within the piece {}", i.accumulator, op(i.equation), buffer(i.operand));
  }
  std::string line(const ReduceCombine& i, const std::string&) const {
    if (i.step == ReduceCombine::Step::tree)
      return fmt::format("{} = {} over the sums of the processes {}", buffer(i.result), op(i.equation),
                         buffer(i.operand));
    if (i.accumulator < 0)
      return fmt::format("{} = {} over slices {}", buffer(i.result), op(i.equation), buffer(i.operand));
    return fmt::format("{} = {} over pieces of accumulator {}", buffer(i.result), op(i.equation), i.accumulator);
  }
  std::string line(const Communicate& i, const std::string&) const {
    std::string text = "exchange with other processes";
    for (const Communicate::Values& values : i.values) text += " " + buffer(values.to);
    return text;
  }
  std::string line(const Exchange& i, const std::string&) const {
    return fmt::format("{} = {} of devices {}", buffer(i.result), op(i.equation), buffer(i.operand));
  }
  std::string line(const Loop& i, const std::string& indent) {
    std::string text = fmt::format("loop {} times", i.iterations);
    for (const Copy& slice : i.slice_copies)
      text += fmt::format(", {} = slice of {}", buffer(slice.to), buffer(slice.from));
    for (const Copy& copy : i.carry_copies) text += fmt::format("\n{}  first {}", indent, line(copy, indent));
    Printer inner(plan_);
    inner.print(i.body, indent + "  ");
    if (!inner.text_.empty()) inner.text_.pop_back();  // the caller adds the line break
    return text + "\n" + inner.text_;
  }

  const Plan& plan_;
  std::string text_;
};

}  // namespace

std::string to_text(const Plan& plan) { return Printer(plan).print(); }

}  // namespace pmaptrain::cpu
