// exec at the command line: programs with inputs and outputs of their own.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/run/files/npy.h"
#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::TemporaryFolder;

namespace {

const std::string weighted = R"(mesh devices=4
batch %x:f32[3]{devices}
params %w:f32[3]{}
%wide = pvary[axes={devices}] %w
%products = mul %x, %wide
%partial = reduce_sum[dims=[0]] %products
%total = psum[axes={devices}] %partial
%all = broadcast[shape=[3], dims=[]] %total
%next = add %w, %all
update %w = %next
return partial = %partial
return total = %total
)";

void write_floats(const std::string& path, Shape shape, const std::vector<float>& values) {
  run::Tensor tensor{DType::f32, std::move(shape), std::vector<std::byte>(values.size() * sizeof(float))};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  run::write_npy(path, tensor);
}

}  // namespace

TEST_CASE("exec prints one row per distinct value with the devices that hold it", "[app]") {
  const std::string sum = call({"exec", "configs/programs/scaled_sum.pmt", "--mesh", "devices=2"}).out;
  CHECK(contains(sum, "mesh: devices=2 (2 logical devices)\n"));
  CHECK(contains(sum, "\nsum: f32[]{}\n  all 2 devices  2.0\n"));
  CHECK(contains(call({"exec", "configs/programs/scaled_sum.pmt"}).out, "\nsum: f32[]{}\n  all 4 devices  12.0\n"));
  const std::string nested = call({"exec", "configs/programs/nested_axes.pmt"}).out;
  CHECK(contains(nested,
                 "\nover_data_shards: i32[]{model_replicas}\n"
                 "  devices 0-3 (model_replicas 0)  6\n"
                 "  devices 4-7 (model_replicas 1)  46\n"));
  CHECK(contains(nested, "  devices 1, 5 (data_shards 1)  12\n"));
}

TEST_CASE("exec reads inputs and writes results with a leading dimension for each varied axis", "[app]") {
  const TemporaryFolder folder;
  const std::string program = folder.write("weighted.pmt", weighted);
  write_floats(folder / "x.npy", {4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  write_floats(folder / "w.npy", {3}, {1, 1, 1});
  const std::string x = "x=" + (folder / "x.npy"), w = "w=" + (folder / "w.npy"), archive = folder / "out.npz";
  const Finished result = call({"exec", program, "--input", x, "--input", w, "--output", archive});
  INFO(result.err);
  CHECK(result.status == 0);
  CHECK(contains(result.out, "\npartial: f32[]{devices}\n  device 0  3.0\n  device 1  12.0\n"));
  CHECK(contains(result.out, "\nupdated w: f32[3]{}\n  all 4 devices  [67.0, 67.0, 67.0]\n"));
  CHECK(std::filesystem::file_size(archive) > 0);
  const json document = json::parse(call({"exec", program, "--input", x, "--input", w, "--json"}).out);
  CHECK(document["mesh"] == json{{"devices", 4}});
  CHECK(document["results"][1]["values"] == json{{{"devices", {0, 1, 2, 3}}, {"value", 66.0}}});
  CHECK(document["results"][2]["update"] == true);
}

TEST_CASE("exec marks a value that is not finite, which JSON has no number for", "[app]") {
  const TemporaryFolder folder;
  const std::string program =
      folder.write("infinite.pmt",
                   "mesh a=2\n%one:f32[2]{} = constant[dtype=f32, shape=[2], value=1.0]\n"
                   "%zero:f32[]{} = constant[dtype=f32, shape=[], value=0.0]\n"
                   "%index:i32[]{a} = axis_index[axes={a}]\n%at:f64[]{a} = cast[dtype=f64] %index\n"
                   "%ratio:f32[2]{} = div %one, %zero\n%log:f64[]{a} = log %at\n"
                   "return ratio = %ratio\nreturn log = %log\nreturn one = %one\n");
  const json results = json::parse(call({"exec", program, "--json"}).out)["results"];
  CHECK(results[0]["values"] == json{{{"devices", {0, 1}}, {"value", {nullptr, nullptr}}, {"finite", false}}});
  CHECK(results[1]["values"] ==
        json{{{"devices", {0}}, {"value", nullptr}, {"finite", false}}, {{"devices", {1}}, {"value", 0.0}}});
  CHECK(results[2]["values"] == json{{{"devices", {0, 1}}, {"value", {1.0, 1.0}}}});
}

TEST_CASE("exec writes no archive in which an output and an update would have one name", "[app]") {
  const TemporaryFolder folder;
  const std::string text = "params %x:f32[]{}\n%y = add %x, %x\nupdate %x = %y\nreturn x.next = %x\n";
  const std::string program = folder.write("names.pmt", text);
  write_floats(folder / "x.npy", {}, {1});
  const std::string x = "x=" + (folder / "x.npy"), archive = folder / "out.npz";
  const Finished refused = call({"exec", program, "--input", x, "--output", archive});
  CHECK(refused.status == 2);
  CHECK(refused.err == program +
                           ":3:9: error: --output cannot hold both the update of 'x', which an archive calls "
                           "'x.next', and the output 'x.next'\n    3 | update %x = %y\n      |         ^\n"
                           "  help: return 'x.next' under another name\n");
  CHECK_FALSE(std::filesystem::exists(archive));
  CHECK(call({"exec", program, "--input", x}).status == 0);
}

TEST_CASE("exec names every input without a value, its type and the shape that it takes", "[app]") {
  const TemporaryFolder folder;
  const std::string program = folder.write("weighted.pmt", weighted);
  const Finished missing = call({"exec", program});
  CHECK(missing.status == 2);
  CHECK(contains(missing.err, "batch input 'x' has no value: it is f32[3]{devices}, an array of shape (4, 3)"));
  CHECK(contains(missing.err, "np.save('x.npy', np.zeros((4, 3), np.float32))"));
  CHECK(contains(missing.err, "params input 'w' has no value: it is f32[3]{}, an array of shape (3,)"));

  write_floats(folder / "w.npy", {3}, {1, 1, 1});
  const std::string file = folder / "w.npy";
  const Finished shape = call({"exec", program, "--input", "x=" + file, "--input", "w=" + file});
  CHECK(shape.status == 3);
  CHECK(contains(shape.err, "has shape (3,); input 'x' is f32[3]{devices}: an array of shape (4, 3), float32"));
  CHECK(call({"exec", program, "--input", "x=nothing.npy"}).status == 3);
  CHECK(contains(call({"exec", program, "--input", "y=" + file}).err, "the program has no input 'y'"));
  const Finished twice = call({"exec", program, "--input", "w=" + file, "--input", "w=" + file});
  CHECK(twice.status == 2);
  CHECK(contains(twice.err, "error: the input 'w' has a value already: '" + file + "'\n"));
  CHECK(contains(twice.err, "  help: keep one of the two\n"));
  CHECK(contains(call({"exec", program, "--mesh", "devices"}).err, "--mesh takes AXIS=N, not 'devices'"));
  CHECK(contains(call({"exec", program, "--mesh", "devices=0"}).err, "axis 'devices' needs an integer size"));
}

TEST_CASE("a forgotten reduction in a program is refused with parameter and axis", "[app]") {
  const TemporaryFolder folder;
  const std::string program =
      folder.write("forgotten.pmt",
                   "mesh devices=4\nparams %w:f32[]{}\nbatch %g:f32[]{devices}\n"
                   "%wide = pvary[axes={devices}] %w\n%next = sub %wide, %g\nupdate %w = %next\n");
  const Finished result = call({"exec", program});
  CHECK(result.status == 2);
  CHECK(contains(result.err, "w"));
  CHECK(contains(result.err, "devices"));
}
