// Files of bf16, which NumPy has no name for.
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/data/arrays/array.h"
#include "core/run/files/npy.h"
#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::Finished;
using pmaptrain::tests::TemporaryFolder;

TEST_CASE("exec reads and writes bf16 as NumPy does with ml_dtypes", "[app]") {
  const TemporaryFolder folder;
  const std::string program = folder.write("narrow.pmt",
                                           "batch %x:bf16[4]{}\n%y = add %x, %x\n%z = cast[dtype=f32] %y\n"
                                           "return y = %y\nreturn z = %z\n");
  const std::vector<std::uint16_t> bits{0x3F80, 0x3DCD, 0x0001, 0x7F80};  // 1, about 0.1, the least, infinity
  run::Tensor tensor{DType::bf16, {4}, std::vector<std::byte>(8)};
  std::memcpy(tensor.bytes.data(), bits.data(), 8);
  run::write_npy(folder / "x.npy", tensor);
  CHECK(contains(tests::read_text(folder / "x.npy"), "{'descr': '<V2', 'fortran_order': False, 'shape': (4,), }"));
  const std::string x = "x=" + (folder / "x.npy"), archive = folder / "out.npz";
  const Finished result = call({"exec", program, "--input", x, "--output", archive});
  INFO(result.err);
  CHECK(contains(result.out, "y: bf16[4]{}\n  device 0  [2.0, 0.20019531, 1.83671e-40, inf]\n"));
  const data::Array y = data::read_npz(archive, "y");
  CHECK(data::name_of(y.element) == "bf16");
  const std::vector<std::uint16_t> doubled{0x4000, 0x3E4D, 0x0002, 0x7F80};
  CHECK(std::memcmp(y.bytes.data(), doubled.data(), 8) == 0);
  const json document = json::parse(call({"exec", program, "--input", x, "--json"}).out);
  CHECK(document["results"][0]["values"][0]["finite"] == false);
  CHECK(document["results"][0]["values"][0]["value"][0] == 2.0);
  CHECK(document["results"][0]["values"][0]["value"][3] == nullptr);

  run::write_npy(folder / "wide.npy", {DType::f32, {4}, std::vector<std::byte>(16)});
  const Finished refused = call({"exec", program, "--input", "x=" + (folder / "wide.npy")});
  CHECK(contains(refused.err, "holds f32; input 'x' is bf16[4]{}: an array of shape (4,), bfloat16"));
  CHECK(contains(refused.err, ", x.astype(ml_dtypes.bfloat16))"));
  CHECK(contains(call({"exec", program}).err, "np.save('x.npy', np.zeros((4,), ml_dtypes.bfloat16))"));
}
