#include "core/runtime/plan.h"

namespace pmaptrain {
namespace {

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {}

  std::string print() {
    text_ += "blocks " + std::to_string(plan_.blocks.size()) + " of " +
             std::to_string(plan_.blocks.empty() ? 0 : plan_.blocks.front().count) + " device(s)\n";
    text_ += "barriers " + std::to_string(plan_.barriers_per_step()) + "\n";
    const PoolSizes& pools = plan_.pools;
    text_ += "bytes constants=" + std::to_string(pools.constants) + " worker=" + std::to_string(pools.worker) +
             " shared=" + std::to_string(pools.shared) + " devices=" + std::to_string(pools.devices) +
             " arena=" + std::to_string(pools.arena) + " accumulators=" + std::to_string(pools.accumulators) + "\n";
    for (std::size_t i = 0; i < plan_.program->inputs.size(); ++i) {
      text_ += "input " + plan_.program->inputs[i].name + " " + buffer(plan_.inputs[i]) + "\n";
    }
    for (std::size_t number = 0; number < plan_.stages.size(); ++number) {
      text_ += "stage " + std::to_string(number) + "\n";
      const Stage& stage = plan_.stages[number];
      if (!stage.invariant.empty()) text_ += "  once\n";
      print(stage.invariant, "    ");
      if (!stage.varying.empty()) text_ += "  each block\n";
      print(stage.varying, "    ");
    }
    for (std::size_t i = 0; i < plan_.program->outputs.size(); ++i) {
      text_ += "output " + plan_.program->outputs[i].name + " " + buffer(plan_.outputs[i]) + "\n";
    }
    return std::move(text_);
  }

 private:
  std::string buffer(int index) const {
    const Buffer& b = plan_.buffers[static_cast<std::size_t>(index)];
    return std::string(to_string(b.home)) + "+" + std::to_string(b.offset) + ":" + std::string(to_string(b.dtype)) +
           "[" + std::to_string(b.elements) + "]";
  }

  std::string list(const std::vector<int>& buffers) const {
    std::string text;
    for (int index : buffers) text += (text.empty() ? "" : ", ") + buffer(index);
    return text;
  }

  void print(const std::vector<Step>& steps, const std::string& indent) {
    for (const Step& step : steps) print(step, indent);
  }

  void print(const Step& step, const std::string& indent) {
    const std::string op = step.equation == nullptr ? "" : to_string(step.equation->op, &plan_.program->mesh);
    const std::string accumulator = "accumulator " + std::to_string(step.accumulator);
    text_ += indent;
    switch (step.kind) {
      case Step::Kind::kernel:
        if (!step.row_sums.empty()) {
          for (int index : step.row_sums) {
            text_ += (index == step.row_sums.front() ? "accumulator " : ", accumulator ") + std::to_string(index);
          }
          text_ += " = " + op + " over the block's rows " + list(step.operands);
          break;
        }
        text_ += list(step.results) + " = " + op;
        text_ += step.parts > 0 ? " over all rows in " + std::to_string(step.parts) + " parts"
                 : step.split   ? " in ranges"
                                : "";
        text_ += " " + list(step.operands);
        break;
      case Step::Kind::copy: text_ += list(step.results) + " = copy " + list(step.operands); break;
      case Step::Kind::accumulate:
        text_ += accumulator + " = " + op + " within the block " + list(step.operands);
        break;
      case Step::Kind::combine:
        text_ += list(step.results) + " = " + op + (step.split ? " in ranges" : "") + " over blocks of " + accumulator;
        break;
      case Step::Kind::exchange: text_ += list(step.results) + " = " + op + " of devices " + list(step.operands); break;
      case Step::Kind::loop:
        text_ += "loop " + std::to_string(step.iterations) + " times, slices " + list(step.slices) + " of " +
                 list(step.operands) + "\n";
        print(step.before, indent + "  first ");
        print(step.body, indent + "  ");
        return;
    }
    text_ += "\n";
  }

  const Plan& plan_;
  std::string text_;
};

}  // namespace

std::string to_text(const Plan& plan) { return Printer(plan).print(); }

}  // namespace pmaptrain
