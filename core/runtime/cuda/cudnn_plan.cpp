#include "core/runtime/cuda/cudnn_plan.h"

#include <cuda_runtime_api.h>

namespace {

// Where the frontend checks attention, it asks CUDA for the version of the current GPU, also if a graph is for a
// described one. It gets the answer here: `described_major` is the version of the described GPU, 0 if there is none.
thread_local int described_major = 0;
cudaError_t planned_device(int* device) {
  return described_major > 0 ? (*device = 0, cudaSuccess) : cudaGetDevice(device);
}
cudaError_t planned_properties(cudaDeviceProp* properties, int device) {
  if (described_major == 0) return cudaGetDeviceProperties(properties, device);
  *properties = {};
  properties->major = described_major;
  return cudaSuccess;
}

}  // namespace

#define cudaGetDevice planned_device
#define cudaGetDeviceProperties planned_properties
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#include <cudnn_frontend.h>
#pragma GCC diagnostic pop
#undef cudaGetDevice
#undef cudaGetDeviceProperties
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/kernel/gpu_budget.h"
#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {

namespace fe = cudnn_frontend;

struct CudnnPlanner {
  Handle<cudnnHandle_t, cudnnDestroy> handle;          // for a GPU of this machine
  std::shared_ptr<const fe::DeviceProperties> device;  // for a described GPU
  std::string gpu;                                     // its properties
  int described_major = 0;                             // the version of a described GPU: 9 for an H100
};

std::shared_ptr<CudnnPlanner> make_cudnn_planner() {
  auto planner = std::make_shared<CudnnPlanner>();
  if (const cudnnStatus_t status = cudnnCreate(planner->handle.create()); status != CUDNN_STATUS_SUCCESS) {
    fail_resource(fmt::format("GPU: cuDNN {} does not start: {}", cudnnGetVersion(), cudnnGetErrorString(status)),
                  "its libraries must be of one version: scripts/bootstrap --cuda fetches them");
  }
  planner->gpu = name_of_gpu();
  return planner;
}

std::shared_ptr<CudnnPlanner> make_cudnn_planner(const std::string& properties) {
  auto planner = std::make_shared<CudnnPlanner>();
  auto device = std::make_shared<fe::DeviceProperties>();
  if (fe::error_t error = device->deserialize({properties.begin(), properties.end()}); error.is_bad()) {
    fail_running("GPU: cuDNN does not read these properties of a device: " + error.get_message());
  }
  planner->device = std::move(device);
  planner->gpu = properties;
  const auto json = nlohmann::json::parse(properties, nullptr, false);
  planner->described_major = json.is_object() ? json.value("deviceVer", 0) / 100 : 0;
  return planner;
}

std::string properties_for_planning(int gpu) {
  fe::DeviceProperties device;
  std::vector<std::uint8_t> text;
  fe::error_t error = device.set_device_id(gpu).build();
  if (error.is_good()) error = device.serialize(text);
  if (error.is_bad()) fail_running("GPU: cuDNN does not describe the device: " + error.get_message());
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

namespace {

// An engine that needs more than `modest_workspace` is used only if there is no other, because it leaves less memory
// for batches.
constexpr std::int64_t modest_workspace = std::int64_t{64} << 20, most_workspace = conv_budget;

enum Name : std::int64_t { name_x = 1, name_kernel, name_y, name_bias };

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Sizes = std::vector<std::int64_t>;
using Addresses = std::unordered_map<std::int64_t, void*>;

fe::DataType_t cudnn_type(DType dtype) {
  return dtype == DType::bf16  ? fe::DataType_t::BFLOAT16
         : dtype == DType::f64 ? fe::DataType_t::DOUBLE
                               : fe::DataType_t::FLOAT;
}

// cuDNN orders dimensions as examples, channels, height, width, with the depth of volumes before the height. The
// strides say that the channels of a pixel are contiguous in memory (NHWC).
Sizes dimensions(const Shape& nhwc) {
  Sizes sizes = nhwc;
  std::rotate(sizes.begin() + 1, sizes.end() - 1, sizes.end());
  return sizes;
}
Sizes channels_innermost(const Sizes& nchw) {
  Sizes strides(nchw.size(), 1);
  std::int64_t stride = nchw[1];
  for (std::size_t i = nchw.size() - 1; i >= 2; --i) {
    strides[i] = stride;
    stride *= nchw[i];
  }
  strides[0] = stride;
  return strides;
}

struct Definition {
  const GpuConv& shape;
  const ConvTypes& types;
  fe::DataType_t compute = types.input == DType::f64 ? fe::DataType_t::DOUBLE : fe::DataType_t::FLOAT;

  fe::graph::Tensor_attributes attributes(Name name, const Sizes& sizes, DType dtype, std::size_t alignment) const {
    return fe::graph::Tensor_attributes()
        .set_uid(name)
        .set_dim(sizes)
        .set_stride(channels_innermost(sizes))
        .set_data_type(cudnn_type(dtype))
        .set_alignment(static_cast<std::int64_t>(alignment));
  }
  Tensor input(fe::graph::Graph& graph, Name name, const Sizes& sizes) const {
    return graph.tensor(attributes(name, sizes, types.input, types.input_alignment));
  }
  void make_output(const Tensor& tensor, Name name, const Sizes& sizes) const {
    *tensor = attributes(name, sizes, types.output, types.output_alignment).set_output(true);
  }

  template <class Attributes>
  Attributes windows() const {
    Sizes before, after;
    for (const auto& [low, high] : shape.padding) {
      before.push_back(low);
      after.push_back(high);
    }
    return Attributes()
        .set_pre_padding(before)
        .set_post_padding(after)
        .set_stride(shape.strides)
        .set_dilation(shape.dilation)
        .set_compute_data_type(compute);
  }

  void define(fe::graph::Graph& graph) const {
    graph.set_io_data_type(cudnn_type(types.input)).set_intermediate_data_type(compute).set_compute_data_type(compute);
    const Sizes x = dimensions(shape.x), y = dimensions(shape.y);
    Sizes kernel{shape.kernel.rbegin(), shape.kernel.rbegin() + 2};  // out, in
    kernel.insert(kernel.end(), shape.kernel.begin(), shape.kernel.end() - 2);
    switch (shape.kind) {
      case GpuConv::Kind::forward: {
        Tensor sum = graph.conv_fprop(input(graph, name_x, x), input(graph, name_kernel, kernel),
                                      windows<fe::graph::Conv_fprop_attributes>());
        if (types.with_bias) {
          sum->set_data_type(compute);
          Sizes one_pixel(y.size(), 1);
          one_pixel[1] = y[1];
          const Tensor bias = graph.tensor(attributes(name_bias, one_pixel, types.bias, types.bias_alignment));
          sum = graph.pointwise(
              sum, bias,
              fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD).set_compute_data_type(compute));
        }
        if (types.with_relu) {
          sum->set_data_type(compute);
          sum = graph.pointwise(
              sum,
              fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD).set_compute_data_type(compute));
        }
        return make_output(sum, name_y, y);
      }
      case GpuConv::Kind::input_grad:
        return make_output(graph.conv_dgrad(input(graph, name_y, y), input(graph, name_kernel, kernel),
                                            windows<fe::graph::Conv_dgrad_attributes>()),
                           name_x, x);
      case GpuConv::Kind::kernel_grad:
        return make_output(graph.conv_wgrad(input(graph, name_y, y), input(graph, name_x, x),
                                            windows<fe::graph::Conv_wgrad_attributes>()),
                           name_kernel, kernel);
    }
  }

  // Notes that an engine must not have: of engines that are less precise, and of those that spread a NaN or a rounding
  // error over the whole image (FFT). If the plan has to be deterministic, also of engines whose bits differ from run
  // to run, and of Winograd's, which spread them over a tile. On tiles of 13x13, Winograd's are less precise.
  std::vector<fe::NumericalNote_t> avoided() const {
    using Note = fe::NumericalNote_t;
    std::vector<Note> notes{Note::DOWN_CONVERT_INPUTS, Note::REDUCED_PRECISION_REDUCTION, Note::FFT,
                            Note::WINOGRAD_TILE_13x13};
    if (types.deterministic) {
      notes.insert(notes.end(),
                   {Note::NONDETERMINISTIC, Note::WINOGRAD, Note::WINOGRAD_TILE_4x4, Note::WINOGRAD_TILE_6x6});
    }
    if (!types.tensor_cores) notes.push_back(Note::TENSOR_CORE);
    return notes;
  }
};

// Lets the heuristics list the plans of a graph, and leaves out those with one of the notes in `avoided`.
fe::error_t define_plans(fe::graph::Graph& graph, const CudnnPlanner& planner,
                         const std::vector<fe::NumericalNote_t>& avoided, std::int64_t workspace) {
  if (auto error = graph.validate(); error.is_bad()) return error;
  if (planner.device != nullptr) graph.set_device_properties(planner.device);
  if (auto error = planner.handle ? graph.build_operation_graph(planner.handle.get()) : graph.build_operation_graph();
      error.is_bad()) {
    return error;
  }
  if (auto error = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}); error.is_bad()) {
    return error;
  }
  graph.deselect_numeric_notes(avoided);
  graph.deselect_workspace_greater_than(workspace);
  return graph.check_support();
}

void run(fe::graph::Graph& graph, std::int64_t index, Addresses addresses, std::byte* workspace, cudnnHandle_t handle,
         cudaStream_t stream, std::string_view what) {
  if (const cudnnStatus_t status = cudnnSetStream(handle, stream); status != CUDNN_STATUS_SUCCESS) {
    fail_running(fmt::format("GPU: {}: {}", what, cudnnGetErrorString(status)));
  }
  if (fe::error_t error = graph.execute_plan_at_index(handle, addresses, workspace, index); error.is_bad()) {
    fail_running(fmt::format("GPU: {}: {}", what, error.get_message()));
  }
}

Addresses addresses_of(const ConvMemory& memory, GpuConv::Kind kind, bool with_bias) {
  const auto written = [&](GpuConv::Kind computed, const std::byte* read) -> void* {
    return computed == kind ? memory.to : const_cast<std::byte*>(read);
  };
  Addresses addresses{{name_x, written(GpuConv::Kind::input_grad, memory.x)},
                      {name_kernel, written(GpuConv::Kind::kernel_grad, memory.kernel)},
                      {name_y, written(GpuConv::Kind::forward, memory.y)}};
  if (with_bias) addresses[name_bias] = const_cast<std::byte*>(memory.bias);
  return addresses;
}

enum AttentionName : std::int64_t {
  name_q = 1,
  name_k,
  name_v,
  name_out,
  name_stats,
  name_dout,
  name_dq,
  name_dk,
  name_dv
};

// cuDNN orders dimensions as examples, heads, positions, elements. The strides say that positions come before heads in
// memory. Statistics have cuDNN's own order: before version 9.26, backward engines for some GPUs ignore their strides.
struct AttentionDefinition {
  const GpuAttention& call;

  fe::graph::Tensor_attributes heads(AttentionName name, std::int64_t positions) const {
    return fe::graph::Tensor_attributes()
        .set_uid(name)
        .set_dim({call.examples, call.heads, positions, call.width})
        .set_stride({positions * call.heads * call.width, call.width, call.heads * call.width, 1})
        .set_data_type(fe::DataType_t::BFLOAT16)
        .set_alignment(16);
  }
  fe::graph::Tensor_attributes statistics() const {
    return fe::graph::Tensor_attributes()
        .set_uid(name_stats)
        .set_dim({call.examples, call.heads, call.queries, 1})
        .set_stride({call.heads * call.queries, call.queries, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
  }
  template <class Attributes>
  Attributes attributes() const {
    Attributes attributes;
    attributes.set_attn_scale(1 / std::sqrt(static_cast<float>(call.width)));
    if (call.causal)
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
    return attributes;
  }

  void define(fe::graph::Graph& graph) const {
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const Tensor q = graph.tensor(heads(name_q, call.queries));
    const Tensor k = graph.tensor(heads(name_k, call.keys)), v = graph.tensor(heads(name_v, call.keys));
    if (call.kind == GpuAttention::Kind::forward) {
      const auto [out, statistics_of_out] =
          graph.sdpa(q, k, v, attributes<fe::graph::SDPA_attributes>().set_generate_stats(true));
      *out = heads(name_out, call.queries).set_output(true);
      *statistics_of_out = statistics().set_output(true);
      return;
    }
    const Tensor out = graph.tensor(heads(name_out, call.queries)), dout = graph.tensor(heads(name_dout, call.queries));
    const auto [dq, dk, dv] = graph.sdpa_backward(
        q, k, v, out, dout, graph.tensor(statistics()),
        attributes<fe::graph::SDPA_backward_attributes>().set_deterministic_algorithm(call.deterministic));
    *dq = heads(name_dq, call.queries).set_output(true);
    *dk = heads(name_dk, call.keys).set_output(true);
    *dv = heads(name_dv, call.keys).set_output(true);
  }
};

}  // namespace

std::vector<ConvPlan> make_conv_plans(const CudnnPlanner& planner, const GpuConv& shape, const ConvTypes& types,
                                      int most, std::string& why) {
  for (const std::int64_t workspace : {modest_workspace, most_workspace}) {
    const auto graph = std::make_shared<fe::graph::Graph>();
    const Definition definition{shape, types};
    definition.define(*graph);
    if (fe::error_t error = define_plans(*graph, planner, definition.avoided(), workspace); error.is_bad()) {
      why = error.get_message();
      continue;
    }
    std::vector<ConvPlan> plans;
    for (std::int64_t i = 0; i < graph->get_execution_plan_count() && std::ssize(plans) < most; ++i) {
      if (fe::error_t error = graph->build_plan_at_index(i); error.is_bad()) {
        why = error.get_message();
        continue;
      }
      ConvPlan plan;
      if (graph->get_plan_name_at_index(i, plan.name).is_bad()) continue;
      plan.workspace = static_cast<std::size_t>(std::max<std::int64_t>(graph->get_workspace_size_plan_at_index(i), 0));
      if (!plans.empty() && plan.workspace > plans.front().workspace) continue;
      plan.run = [graph, i, kind = shape.kind, with_bias = types.with_bias, handle = planner.handle.get()](
                     cudaStream_t stream, const ConvMemory& memory) {
        run(*graph, i, addresses_of(memory, kind, with_bias), memory.workspace, handle, stream, "a convolution");
      };
      plans.push_back(std::move(plan));
    }
    if (!plans.empty()) return plans;
  }
  return {};
}

std::string conv_text(const CudnnPlanner& planner, const GpuConv& shape, const ConvTypes& types) {
  std::string padding;
  for (const auto& [before, after] : shape.padding) padding += fmt::format(" {}+{}", before, after);
  return fmt::format(
      "{}, cuDNN {}, frontend {}: convolution {} of {} by {} giving {}, {} calls, strides {}, dilation {}, padding{}, "
      "{} to {}, bias {} {}, relu {}, tensor cores {}, alignment {} {} {}",
      planner.gpu, cudnnGetVersion(), CUDNN_FRONTEND_VERSION, static_cast<int>(shape.kind), to_string(shape.x),
      to_string(shape.kernel), to_string(shape.y), shape.calls, to_string(shape.strides), to_string(shape.dilation),
      padding, to_string(types.input), to_string(types.output), types.with_bias, to_string(types.bias), types.with_relu,
      types.tensor_cores, types.input_alignment, types.output_alignment, types.bias_alignment);
}

std::optional<AttentionPlan> make_attention_plan(const CudnnPlanner& planner, const GpuAttention& call) {
  described_major = planner.described_major;
  const auto graph = std::make_shared<fe::graph::Graph>();
  AttentionDefinition{call}.define(*graph);
  std::vector<fe::NumericalNote_t> avoided;
  if (call.deterministic) avoided.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  if (define_plans(*graph, planner, avoided, attention_budget).is_bad()) return std::nullopt;
  std::int64_t index = 0;
  while (index < graph->get_execution_plan_count() && graph->build_plan_at_index(index).is_bad()) ++index;
  if (index == graph->get_execution_plan_count()) return std::nullopt;
  const std::int64_t bytes = graph->get_workspace_size_plan_at_index(index);
  return AttentionPlan{
      static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)),
      [graph, index, is_gradient = call.kind == GpuAttention::Kind::gradient, handle = planner.handle.get()](
          cudaStream_t stream, const AttentionMemory& memory) {
        Addresses addresses{{name_q, memory.q},
                            {name_k, memory.k},
                            {name_v, memory.v},
                            {name_out, memory.out},
                            {name_stats, memory.stats}};
        if (is_gradient) {
          addresses.insert(
              {{name_dout, memory.dout}, {name_dq, memory.dq}, {name_dk, memory.dk}, {name_dv, memory.dv}});
        }
        run(*graph, index, std::move(addresses), memory.workspace, handle, stream, "attention");
      }};
}

}  // namespace pmaptrain::cuda
