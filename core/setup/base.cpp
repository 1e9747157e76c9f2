#include "core/setup/base.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/bf16.h"
#include "core/run/files/file_writer.h"
#include "core/setup/advice.h"
#include "core/setup/initial/patterns.h"
#include "core/setup/initialize.h"

namespace pmaptrain::setup {
namespace {

[[noreturn]] void refuse(const spec::Spec& spec, std::string message) {
  const bool is_drawn = !spec.model.initial_from;
  throw Error(ExitStatus::data,
              Diagnostic{"data",
                         is_drawn ? spec.lora->place : spec.model.init_place,
                         std::move(message),
                         is_drawn ? "the base was drawn from the seed of the run: continue with that seed"
                                  : "restore the file or the run of the base; --base PATH says where it lies by now",
                         {}});
}

// The values of a run's model.init. That the base is gone is told with the option that names it elsewhere.
InitialValues open_values(const model::Model& model, const spec::Spec& spec, bool is_of_run, Membership membership,
                          const InitialFile* opened) {
  try {
    return {model, spec.model, spec.seed, membership, opened};
  } catch (const Error& error) {
    if (!is_of_run) throw;
    throw with_note_of_base(error);
  }
}

// Calls `use` with ranges of the parameter's values, and with the number of the first element of each.
template <class Use>
void for_each_slice(const InitialValues& initial, const model::Parameter& parameter, DType dtype, std::uint64_t seed,
                    const Use& use) {
  constexpr std::size_t most = std::size_t{1} << 20;
  const auto count = static_cast<std::size_t>(numel(parameter.shape));
  // The rows of an orthogonal matrix are drawn together.
  const bool by_slices = initial.draws(parameter) && parameter.initializer.kind != layers::InitializerKind::orthogonal;
  std::vector<std::byte> values(by_slices ? std::min(most, count) * size_of(dtype) : 0);
  if (!by_slices) values = initial.of(parameter);
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t bytes = std::min(most, count - first) * size_of(dtype);
    const std::span<std::byte> slice = std::span(values).subspan(by_slices ? 0 : first * size_of(dtype), bytes);
    if (by_slices) draw(parameter, seed, dtype, slice, first);
    use(first, slice);
  }
}

// The values in another type, in memory that is used again.
std::span<const std::byte> converted(std::span<const std::byte> values, DType from, DType to,
                                     std::vector<std::byte>& memory) {
  dispatch_floating(from, [&]<class From>() {
    dispatch_floating(to, [&]<class To>() {
      memory.resize(values.size() / sizeof(From) * sizeof(To));
      for (std::size_t i = 0; i < values.size() / sizeof(From); ++i) {
        From value;
        std::memcpy(&value, values.data() + i * sizeof(From), sizeof value);
        const auto rounded = static_cast<To>(value);
        std::memcpy(memory.data() + i * sizeof(To), &rounded, sizeof rounded);
      }
    });
  });
  return memory;
}

}  // namespace

Error with_note_of_base(const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  diagnostics.back().notes.push_back("--base PATH says where the base of the run lies by now");
  return Error(error.status(), std::move(diagnostics));
}

std::vector<std::string> check_base(const Setup& setup, const InitialValues& initial) {
  if (!setup.model.lora) return {};
  const auto refuse_usage = [&](std::string message, std::string help) {
    throw Error(ExitStatus::usage,
                Diagnostic{"config", setup.model.lora->place, std::move(message), std::move(help), {}});
  };
  std::vector<std::string> drawn;
  for (const model::Parameter& parameter : setup.model.parameters) {
    if (parameter.lora == layers::LoraRole::base && initial.draws(parameter)) drawn.push_back(parameter.name);
  }
  if (initial.varies_by_member()) {
    refuse_usage("members share the base of lora, and model.init.from has another one for each member",
                 "model.init.from.member: 0 takes that of one member");
  }
  for (std::int64_t m = 1; m < std::ssize(setup.members) && !drawn.empty(); ++m) {
    if (setup.member_spec(m).seed == setup.member_spec().seed) continue;
    refuse_usage("members share the base of lora, and " + some_of(drawn) + " would be drawn from the seed of each",
                 "model.init.from takes the base from a file or a run; or leave seed out of ensemble.vary");
  }
  if (drawn.empty()) return {};
  return {"lora" + in_parentheses(setup.model.lora->place) + " leaves " + some_of(drawn) + " as they are, drawn at " +
          "random: model.init.from takes trained values"};
}

std::shared_ptr<const InitialFile> open_base(const model::Model& model, const spec::Spec& spec,
                                             const run::FirstProcess& first) {
  if (!model.lora || !spec.model.initial_from || first.is_alone()) return nullptr;
  try {
    return std::make_shared<const InitialFile>(open_initial_file(spec.model, first));
  } catch (const FailedElsewhere&) {
    throw;
  } catch (const Error& error) {
    throw with_note_of_base(error);
  }
}

std::string read_base(const model::Model& model, const spec::Spec& spec, const std::string& expected,
                      const TakeBase& take, Membership membership, const InitialFile* opened) {
  if (!model.lora) return "";
  const InitialValues initial = open_values(model, spec, !expected.empty(), membership, opened);
  std::string identities;
  for (const model::Parameter& parameter : model.parameters) {
    if (parameter.lora != layers::LoraRole::base) continue;
    identities += parameter.name;
    for_each_slice(initial, parameter, model.dtype, spec.seed,
                   [&](std::size_t first, std::span<const std::byte> values) {
                     identities += " " + run::hash_hex(values);
                     take(parameter, first, values);
                   });
    identities += "\n";
    initial.release(parameter);
  }
  std::string identity = run::hash_hex(std::as_bytes(std::span(identities)));
  if (expected.empty() || identity == expected) return identity;
  const auto& from = spec.model.initial_from;
  refuse(spec, fmt::format("the base of the run has changed: {} has the identity {}; the run was trained beside {}",
                           from ? "'" + from->path + "'" : "what the seed draws", identity, expected));
}

std::string write_base(Module& module, const model::Model& model, const spec::Spec& spec, const std::string& expected,
                       Membership membership, const InitialFile* opened) {
  std::vector<std::byte> rounded;
  const auto write = [&](const model::Parameter& parameter, std::size_t first, std::span<const std::byte> values) {
    const DType stored = parameter.stored_as.value_or(model.dtype);
    if (stored != model.dtype) values = converted(values, model.dtype, stored, rounded);
    module.wait(
        module.write(module.input(parameter.name), {every_device, every_member}, values, first * size_of(stored)));
  };
  return read_base(model, spec, expected, write, membership, opened);
}

}  // namespace pmaptrain::setup
