// Writes the model of a run to a file that other programs read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/evaluate/trained_members.h"
#include "core/exports/onnx_model.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::exports {

enum class ExportFormat : std::uint8_t {
  onnx,        // inputs to predictions, with all that is between: onnx_model.h
  safetensors  // the parameters alone, in a layout of model/layout.h
};

struct ExportRequest {
  ExportFormat format = ExportFormat::onnx;
  model::ParameterLayout layout = model::ParameterLayout::flax;  // of safetensors
  std::string checkpoint = "last";                               // or "best", or a step
  spec::Weights weights = spec::Weights::ema;
  run::MemberNumber member = std::nullopt;  // of an ensemble; none: the mean of all members, which ONNX has alone
};

class Exporter {
 public:
  // Opens the checkpoint, but not the run's data. `loaded` is the run's config. Throws Error: usage for a request that
  // does not fit the run, or a model that is too large for the format; data.
  Exporter(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const ExportRequest& request);

  // Throws Error (data) if the checkpoint changes meanwhile, and what the sink throws.
  void write(run::ByteSink& sink) const;

  std::int64_t parameters() const { return models_.front().model.parameter_count(); }  // of each member
  std::int64_t members() const { return std::ssize(models_); }
  const std::string& checkpoint() const { return found_.checkpoint; }
  const std::string& source() const { return found_.trained.parameters.path; }  // the file of the checkpoint
  // Members without a best checkpoint, which the mean leaves out.
  const std::vector<std::int64_t>& left_out() const { return found_.left_out; }

 private:
  TrainedModel trained_model(spec::Spec spec, std::int64_t member) const;  // which computes in float32
  void make_graph(const spec::Loaded& loaded);
  void write_parameters(run::ByteSink& sink) const;

  ExportRequest request_;
  bool ignores_unknown_ = false;  // whether a category that the training split does not have counts as none
  evaluate::TrainedMembers found_;
  std::vector<TrainedModel> models_;  // of the members
  std::unique_ptr<onnx::Graph> graph_;
};

}  // namespace pmaptrain::exports
