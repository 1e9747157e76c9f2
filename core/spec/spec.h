// A validated config as plain values, after defaults and options have been applied.
//
// The meaning and the range of each field are stated once, in its row (rows/row.h). Validation, `help`, the schema,
// docs/config.md, the resolved config and the binding are derived from the rows. The default of an optional key is the
// default member initializer of its field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/losses/loss.h"
#include "core/mesh/mesh.h"
#include "core/mesh/roles.h"
#include "core/metrics/metric.h"
#include "core/optimizers/options.h"
#include "core/spec/data.h"
#include "core/spec/durations.h"
#include "core/spec/model.h"

namespace pmaptrain::spec {

using losses::Loss;
using losses::takes_numbers;
using metrics::Metric;

// ---- mesh ----------------------------------------------------------------------------------------------------------
enum class Backend { cpu, cuda, automatic, reference };

struct MeshSpec {
  Mesh mesh;
  AxisRoles roles;  // bind() sets them
  Backend backend = Backend::cpu;
  bool deterministic = false;            // on GPUs: the same bits on any number of them
  std::optional<int> blocks;             // of sums over devices (core/mesh/blocks.h); bind() sets it
  bool blocks_are_automatic = false;     // whether bind() has chosen their number
  Timeout timeout;                       // of a process that does not answer
  bool tf32 = false;                     // on GPUs: operands of products may be rounded to TF32
  std::optional<MemorySize> gpu_memory;  // of each GPU; none: all that it has
  std::optional<int> workers;            // none: automatic
  Place place;                           // of mesh.axes or --devices
};

// ---- train ---------------------------------------------------------------------------------------------------------
enum class OnNonfinite { halt, skip };

struct BestSpec {
  std::string metric = "loss";  // or the name of one of `metrics`
  std::optional<Mode> mode;     // none: mode_of(metric)
  Place place = {};
};

struct CheckpointSpec {
  Interval every;  // of steps, or of time
  std::int64_t keep = 3;
  std::optional<BestSpec> best;
};

struct EarlyStoppingSpec {
  std::string metric = "loss";
  std::optional<Mode> mode;
  std::int64_t patience = 5;  // in evaluations
  double min_delta = 0.0;
  Place place = {};
};

enum class SpikeAction { warn, halt };
struct LossSpikeSpec {
  double factor = 3.0;
  Duration window;
  SpikeAction action = SpikeAction::warn;
};

struct TrainSpec {
  Duration duration;
  Interval log_every, eval_every, verify_replicas;
  bool eval_every_is_default = true;  // then a missing test split gives no note
  CheckpointSpec checkpoint;
  std::optional<EarlyStoppingSpec> early_stopping;
  std::optional<optimizers::Ema> ema;
  OnNonfinite on_nonfinite = OnNonfinite::halt;
  std::optional<LossSpikeSpec> loss_spike;
  bool tensorboard = true;
  std::optional<Duration> max_time;  // from the start of the process
};

// ---- ensemble ------------------------------------------------------------------------------------------------------
// A key whose values differ between members, and these values as YAML, by member.
struct Varied {
  std::string path;  // dotted; items of lists by index
  std::vector<std::string> values;
  Place place;  // of the key
};

struct Spec;

// Independent members along one axis of the mesh, trained as one program.
struct Ensemble {
  std::string axis;
  std::vector<Varied> vary;
  std::vector<Spec> alone;  // by member: see member_spec()
  Place place;              // of the name of the axis
};

// ---- parallelism ---------------------------------------------------------------------------------------------------
// Fully sharded data parallelism: devices along `axes` each own a shard of what all devices would have.
struct Fsdp {
  declare::AxisNames axis;  // as written
  int stage = 1;            // 1: optimizer state is sharded; 2: and gradients; 3: and parameters
  AxisSet axes;             // of MeshSpec::mesh; bind() sets it
  Place place;              // of `axis`
};

// Devices along an axis divide layers; all of them see the same rows of a batch. Its axis is MeshSpec::roles.tensor.
struct Tensor {
  std::string axis;
  Place place;  // of `axis`
};

struct Parallelism {
  std::optional<Fsdp> fsdp = {};
  std::optional<Tensor> tensor = {};
};

struct Spec {
  std::string name;
  std::uint64_t seed = 0;
  PrecisionPolicy precision = PrecisionPolicy::float32;
  MeshSpec mesh;
  DataSpec data;
  ModelSpec model;
  std::optional<model::Lora> lora;
  Loss loss;
  Place loss_place;
  std::vector<Metric> metrics;
  Place metrics_place;
  optimizers::Options optimizer;
  TrainSpec train;
  std::optional<Parallelism> parallelism;
  std::optional<Ensemble> ensemble;

  // The keys of parallelism, if they are there.
  const Fsdp* fsdp() const { return parallelism && parallelism->fsdp ? &*parallelism->fsdp : nullptr; }
  const Tensor* tensor() const { return parallelism && parallelism->tensor ? &*parallelism->tensor : nullptr; }

  // Defined in its source: their code is long, and each source that copies or destroys one would compile it again.
  Spec();
  Spec(const Spec&);
  Spec(Spec&&) noexcept;
  Spec& operator=(const Spec&);
  Spec& operator=(Spec&&) noexcept;
  ~Spec();
};

// The number of members: 1 without an ensemble.
std::int64_t members(const Spec& spec);
// What a run of this member alone would have: its own values, the member's mesh, no ensemble, and, where `seed` varies
// but data.seed does not, the data.seed that all members share. Without an ensemble `spec` itself, as member 0.
const Spec& member_spec(const Spec& spec, std::int64_t member);
// The axes along which a batch is divided, as a mesh of their own: each of its devices has other rows.
Mesh data_mesh(const MeshSpec& mesh);
// The mesh without the axis of the ensemble: what the program of every member is written for. One device where that is
// the only axis.
Mesh member_mesh(const Spec& spec);

}  // namespace pmaptrain::spec
