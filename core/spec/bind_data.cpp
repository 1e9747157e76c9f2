// The checked `data` to a DataSpec.
#include "core/spec/bind.h"
#include "core/spec/scalar.h"
#include "core/spec/values.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

class DataBinder {
 public:
  DataBinder(Node& config, const Reporter& reporter) : config_(config), reporter_(reporter) {}

  void bind(DataSpec& out, const Mesh& mesh) {
    Node* data = config_.is(Kind::map) ? config_.find("data") : nullptr;
    if (data == nullptr || !data->is(Kind::map)) return;
    source(get(data, "source"), out.source);
    out.source_place = error_place(data, "source");
    batch_size(*data, out);
    data_axes(*data, out, mesh);
    if (const Node* remainder = get(data, "remainder")) {
      out.remainder = remainder->text == "mask"    ? Remainder::mask
                      : remainder->text == "error" ? Remainder::error
                                                   : Remainder::drop;
    }
    store(get(data, "shuffle"), out.shuffle);
    store(get(data, "microbatches"), out.microbatches);
    out.remainder_place = error_place(data, "remainder");
    out.microbatches_place = error_place(data, "microbatches");
    if (const Node* seed = get(data, "seed")) out.seed = parse_seed(seed->text).value;
    if (const Node* normalize = get(data, "normalize")) {
      Normalize value;
      store(get(normalize, "mean"), value.mean);
      store(get(normalize, "std"), value.std);
      if (value.mean.size() > 1 && value.std.size() > 1 && value.mean.size() != value.std.size()) {
        reporter_.report(*get(normalize, "std"),
                         "normalize has " + std::to_string(value.mean.size()) + " means but " +
                             std::to_string(value.std.size()) + " standard deviations",
                         "give one for each channel, or one for all");
      }
      out.normalize = std::move(value);
      out.normalize_place = error_place(*normalize);
    }
  }

 private:
  void source(const Node* node, Source& out) {
    const Chosen choice = chosen(node, "data.source");
    if (choice.name == nullptr) return;
    const std::string& name = choice.name->text;
    const Node* options = choice.options;
    if (name == "fashion_mnist") {
      store(get(options, "dir"), out.emplace<FashionMnist>().dir);
    } else if (name == "idx") {
      Idx& idx = out.emplace<Idx>();
      pair(get(options, "train"), idx.train);
      if (const Node* test = get(options, "test")) pair(test, idx.test.emplace());
    } else if (name == "npz") {
      npz(*choice.name, options, out.emplace<Npz>());
    } else if (name == "synthetic_linear") {
      auto& linear = out.emplace<SyntheticLinear>();
      store(get(options, "features"), linear.features);
      store(get(options, "examples_per_device"), linear.examples_per_device);
      store(get(options, "noise"), linear.noise);
    } else if (name == "synthetic_images") {
      auto& images = out.emplace<SyntheticImages>();
      store(get(options, "height"), images.height);
      store(get(options, "width"), images.width);
      store(get(options, "channels"), images.channels);
      store(get(options, "classes"), images.classes);
      store(get(options, "train"), images.train);
      store(get(options, "test"), images.test);
      store(get(options, "noise"), images.noise);
    } else {
      auto& values = out.emplace<Values>();
      store(get(options, "inputs"), values.inputs);
      store(get(options, "targets"), values.targets);
      if (!values.inputs.empty() && !values.targets.empty() && values.inputs.size() != values.targets.size()) {
        reporter_.report(*get(options, "targets"),
                         "there are " + std::to_string(values.inputs.size()) + " inputs but " +
                             std::to_string(values.targets.size()) + " targets",
                         "give every example its inputs and its targets, in the same order");
      }
    }
  }

  static void pair(const Node* node, FilePair& out) {
    if (node == nullptr) return;
    out = FilePair{node->items[0].text, node->items[1].text};
  }

  void npz(const Node& name, const Node* options, Npz& out) {
    const Node* file = get(options, "file");
    const Node* inputs = get(options, "inputs");
    const Node* targets = get(options, "targets");
    if (file == nullptr && options->find("file") != nullptr) return;  // it is wrong itself
    const auto split = [&](const Node* node, Npz::Split& to) {
      if (node == nullptr) return;
      if (file != nullptr) {
        if (!node->is(Kind::sequence)) {
          reporter_.report(*node, "beside file, a split is two names of arrays, not one path",
                           "for example train: [x_train, y_train]");
          return;
        }
        to = Npz::Split{file->text, node->items[0].text, node->items[1].text};
      } else if (!node->is(Kind::scalar)) {
        reporter_.report(*node, "without file, a split is the path of its archive, not two names",
                         "add file: archive.npz, or write train: train.npz, inputs: x, targets: y");
      } else {
        to = Npz::Split{node->text, inputs != nullptr ? inputs->text : "", targets != nullptr ? targets->text : ""};
      }
    };
    split(get(options, "train"), out.train);
    if (const Node* test = get(options, "test")) split(test, out.test.emplace());
    for (const char* key : {"inputs", "targets"}) {
      const Node* given = options->find(key);
      if (file != nullptr && given != nullptr) {
        reporter_.report(*given, std::string(key) + " stands beside file, which names the arrays of each split itself",
                         std::string("remove ") + key + ", or file");
      } else if (file == nullptr && given == nullptr) {
        reporter_.report(name, std::string(key) + " is missing in npz",
                         "name the arrays: npz: {train: train.npz, inputs: x, targets: y}");
      }
    }
  }

  void batch_size(const Node& data, DataSpec& out) {
    const Node* whole = data.find("batch_size");
    const Node* per_device = data.find("batch_size_per_device");
    if (whole != nullptr && per_device != nullptr) {
      reporter_.report(*per_device, "data has both batch_size and batch_size_per_device; it takes exactly one",
                       "remove one of them");
    } else if (whole == nullptr && per_device == nullptr) {
      reporter_.report(data, "batch_size is missing in data", "add it, for example:\nbatch_size: 128");
    }
    out.batch_size_place = error_place(&data, whole != nullptr ? "batch_size" : "batch_size_per_device");
    if (whole != nullptr && whole->valid()) {
      if (whole->text == "all") {
        out.batch_size = BatchAll{};
      } else {
        out.batch_size = parse_integer(whole->text).value;
      }
    } else if (per_device != nullptr && per_device->valid()) {
      out.batch_size = BatchPerDevice{parse_integer(per_device->text).value};
    }
  }

  void data_axes(Node& data, DataSpec& out, const Mesh& mesh) {
    out.axes = mesh.all();
    const Node* mesh_node = get(&config_, "mesh");
    const bool mesh_known = get(mesh_node, "axes") != nullptr;
    Node* axes = data.find("axes");
    if (axes == nullptr) {
      Node label = scalar_at(data, "axes");
      Node list = empty_at(data, Kind::sequence);
      for (const std::string& name : mesh.names()) list.items.push_back(scalar_at(data, name));
      // Before `remainder`, where the table has it, so that the resolved config reads back as itself.
      std::size_t at = 0;
      while (at < data.keys.size() && data.keys[at].text != "remainder") ++at;
      data.keys.insert(data.keys.begin() + static_cast<std::ptrdiff_t>(at), std::move(label));
      data.items.insert(data.items.begin() + static_cast<std::ptrdiff_t>(at), std::move(list));
      return;
    }
    if (!axes->valid() || !mesh_known) return;
    AxisSet named;
    bool unknown = false;
    for (const Node& item : axes->items) {
      const auto found = mesh.find(item.text);
      if (!found) {
        reporter_.report(item, "the mesh has no axis '" + item.text + "'", suggest(item.text, mesh.names(), "axes"));
        unknown = true;
      } else if (named.contains(*found)) {
        reporter_.report(item, "axes has '" + item.text + "' twice", "keep one of them");
      } else {
        named = named | AxisSet::of(*found);
      }
    }
    if (unknown) return;
    const AxisSet missing = mesh.all() - named;
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
      if (!missing.contains(axis)) continue;
      reporter_.report(*axes, "nothing uses the mesh axis '" + mesh.name(axis) + "': data.axes leaves it out",
                       "add it to data.axes, or remove it from mesh.axes");
    }
  }

  Node& config_;
  const Reporter& reporter_;
};

}  // namespace

void bind_data(Node& config, const Mesh& mesh, const Reporter& reporter, DataSpec& out) {
  DataBinder(config, reporter).bind(out, mesh);
}

}  // namespace pmaptrain::spec
