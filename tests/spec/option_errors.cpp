// What an option may not say: the words of every error, as golden text.
#include <string>
#include <vector>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

TEST_CASE("an error in --set points into the argument", "[spec]") {
  CHECK(errors_of(base, {"data.batch_sise=64"}) ==
        R"(--set:1:6: error: unknown key 'batch_sise' in data
    1 | data.batch_sise=64
      |      ^~~~~~~~~~
  help: did you mean 'batch_size'?
)");
}

TEST_CASE("a value of --set is checked like the file", "[spec]") {
  CHECK(
      errors_of(base, {"optimizer.learning_rate=fast"}) ==
      R"(--set:1:25: error: learning_rate takes a number of at least 0, or one of linear, polynomial, cosine_decay, exponential_decay, warmup_cosine_decay, piecewise_constant, cosine_onecycle, join, not 'fast'
    1 | optimizer.learning_rate=fast
      |                         ^~~~
  help: for example learning_rate: 0.001
)");
}

TEST_CASE("--set without a value or an equals sign is refused", "[spec]") {
  CHECK(errors_of(base, {"data.batch_size", "data.batch_size=", "=3"}) ==
        R"(--set:1:1: error: there is no '=' in this argument
    1 | data.batch_size
      | ^~~~~~~~~~~~~~~
  help: write --set key=value, such as --set data.batch_size=64
--set:1:16: error: there is no value after '='
    1 | data.batch_size=
      |                ^
  help: write a value; '=null' restores the default
--set:1:1: error: a part of the key is empty
    1 | =3
      | ^
  help: write --set key=value, such as --set data.batch_size=64
)");
}

TEST_CASE("--set data.x=[ is a syntax error in the argument", "[spec]") {
  CHECK(errors_of(base, {"metrics=[accuracy"}) ==
        R"(--set:1:9: error: this '[' is not closed
    1 | metrics=[accuracy
      |         ^~~~~~~~~
  help: add ']' at its end
)");
}

TEST_CASE("--set of an unknown key to null is refused", "[spec]") {
  CHECK(errors_of(base, {"optimzer.adam=null"}) ==
        R"(--set:1:1: error: unknown key 'optimzer'
    1 | optimzer.adam=null
      | ^~~~~~~~
  help: did you mean 'optimizer'?
)");
}

TEST_CASE("--set of a list item that is not there is refused", "[spec]") {
  CHECK(errors_of(base, {"model.layers.5.dense=3", "model.layers.haed.dense.features=3"}) ==
        R"(--set:1:14: error: there is no item 5; the list has 2, counted from 0
    1 | model.layers.5.dense=3
      |              ^
  help: the last is 1
--set:1:14: error: there is no layer 'haed'
    1 | model.layers.haed.dense.features=3
      |              ^~~~
  help: valid layers: flatten_0, dense_0
)");
}

TEST_CASE("what Hydra writes on its command line is told as --set writes it", "[spec]") {
  CHECK(errors_of(base, {"~metrics", "+seed=1", "++data.seed=1", "model.layers[1].dense.features=8"}) ==
        R"(--set:1:1: error: '~metrics' is not how --set writes a key
    1 | ~metrics
      | ^~~~~~~~
  help: '=null' restores the default of a key: write metrics=null
--set:1:1: error: '+seed' is not how --set writes a key
    1 | +seed=1
      | ^~~~~
  help: --set adds keys as it replaces them: write seed=1
--set:1:1: error: '++data.seed' is not how --set writes a key
    1 | ++data.seed=1
      | ^~~~~~~~~~~
  help: --set adds keys as it replaces them: write data.seed=1
--set:1:1: error: 'model.layers[1].dense.features' is not how --set writes a key
    1 | model.layers[1].dense.features=8
      | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
  help: an item of a list is written after a dot: model.layers.1.dense.features=8
)");
}

TEST_CASE("a value of --set that replaces a whole map says which keys are gone", "[spec]") {
  CHECK(errors_of(base, {"optimizer=sgd"}) == R"(c.yaml:4:1: error: learning_rate is missing in optimizer
    4 | optimizer: {adam: {}, learning_rate: 0.001}
      | ^~~~~~~~~
  help: add it, for example:
        learning_rate: 0.001
  note: --set optimizer replaces all of optimizer, so learning_rate is gone; --set optimizer.sgd={} changes the kind alone
)");
  CHECK(errors_of(base, {"optimizer.sgd={}"}).empty());
  const auto notes = [](const std::string& set) {
    spec::Overrides overrides;
    overrides.set = {set};
    return spec::load_text(base, "c.yaml", "/base", overrides).notes;
  };
  CHECK(notes("train={duration: 2 steps}").empty());
  CHECK(notes("data={source: fashion_mnist, batch_size: 64}").empty());
  CHECK(notes("data={source: fashion_mnist, batch_size_per_device: 64}") ==
        std::vector<std::string>{"--set data replaces all of data, so batch_size is gone"});
  CHECK(notes("data.source={synthetic_images: {}}").empty());  // another alternative
}

TEST_CASE("axes without spaces after their colons are shown with them", "[spec]") {
  CHECK(errors_of(base, {"mesh.axes={data:2,model:4}"}) ==
        R"(--set:1:11: error: there is no space after the ':' of 'data:2'
    1 | mesh.axes={data:2,model:4}
      |           ^~~~~~~~~~~~~~~~
  help: write [{data: 2}, {model: 4}], outermost first
)");
  CHECK(errors_of(base, {"mesh.axes={data:2}"}).ends_with("help: write {data: 2}\n"));
  CHECK(errors_of(base, {"mesh.axes={data: 2, model: 4}"})
            .ends_with("help: write [{data: 2}, {model: 4}], outermost first\n"));
}

TEST_CASE("--devices with several axes says which keys to set", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: [{a: 2}, {b: 4}]}
)" + std::string(base),
                  {}, 4) ==
        R"(--devices:1:11: error: --devices sets the size of a single axis; this mesh has 2: a, b
    1 | --devices 4
      |           ^
  help: set them one by one: --set mesh.axes.a=N --set mesh.axes.b=N
)");
}

TEST_CASE("--devices over an invalid mesh adds no error", "[spec]") {
  for (const char* mesh : {"mesh=[a]", "mesh=3", "mesh.axes=3", "mesh.axes=[4]", "mesh.axes=[]"}) {
    CAPTURE(mesh);
    CHECK(errors_of(base, {mesh}, 3) == errors_of(base, {mesh}));
  }
}

TEST_CASE("--devices -1 is refused", "[spec]") {
  CHECK(errors_of(base, {}, -1) ==
        R"(--devices:1:11: error: devices takes an integer from 1 to 65,536, not '-1'
    1 | --devices -1
      |           ^~
)");
}

TEST_CASE("a key below a plain value is refused", "[spec]") {
  CHECK(errors_of(base, {"seed.x=1"}) ==
        R"(--set:1:6: error: 'seed' has no keys below it
    1 | seed.x=1
      |      ^
  help: it takes an integer from 0 to 18446744073709551615
)");
}

TEST_CASE("'${' in --set is reserved, and reported once", "[spec]") {
  CHECK(errors_of(base, {"data.batch_size=${x}"}) ==
        R"(--set:1:17: error: '${' is reserved; there is no substitution in a config
    1 | data.batch_size=${x}
      |                 ^~~~
  help: write the value itself; for a literal '${' write "\x24{" in double quotes
)");
  CHECK(errors_of(base, {"mesh={axes: {devices: ${x}}}"}) ==
        R"(--set:1:23: error: '${' is reserved; there is no substitution in a config
    1 | mesh={axes: {devices: ${x}}}
      |                       ^~
  help: write the value itself; for a literal '${' write "\x24{" in double quotes
)");
}

TEST_CASE("no spelling is suggested for a name of one letter", "[spec]") {
  CHECK(errors_of("mesh: {axes: [{a: 2}, {b: 4}]}\n" + std::string(base), {"mesh.axes.c=2"}) ==
        R"(--set:1:11: error: the mesh has no axis 'c'
    1 | mesh.axes.c=2
      |           ^
  help: valid axes: a, b
)");
}

TEST_CASE("a quote that is not closed and bytes that are no text are refused in an option", "[spec]") {
  CHECK(errors_of(base, {"data.batch_size=\xff"}) ==
        R"(--set:1: error: this argument is not valid UTF-8
    1 | data.batch_size=?
)");
  CHECK(errors_of(base, {R"("data.batch_size=3)"}) ==
        R"(--set:1:1: error: unclosed quote in the key
    1 | "data.batch_size=3
      | ^~~~~~~~~~~~~~~~~~
  help: write --set key=value, such as --set data.batch_size=64
)");
}

TEST_CASE("items of a list are set by their index", "[spec]") {
  CHECK(errors_of(base_with(R"(data: {source: fashion_mnist, batch_size: 128, axes: [devices]})"),
                  {"data.axes.devices=x"}) ==
        R"(--set:1:11: error: items of a list are addressed by their index, not 'devices'
    1 | data.axes.devices=x
      |           ^~~~~~~
  help: count from 0
)");
}

TEST_CASE("=null where there is no default is refused", "[spec]") {
  CHECK(errors_of(base, {"model.layers.0=null"}) ==
        R"(--set:1:14: error: an item of a list has no default
    1 | model.layers.0=null
      |              ^
  help: set the whole list instead
)");
  CHECK(errors_of(R"(mesh: {axes: {devices: 4}}
)" + base,
                  {"mesh.axes.devices=null"}) ==
        R"(--set:1:11: error: the size of an axis has no default
    1 | mesh.axes.devices=null
      |           ^~~~~~~
  help: set a size; mesh.axes=null restores the default mesh
)");
  CHECK(errors_of(base, {"data.batch_sise=null", "sede=null"}) ==
        R"(--set:1:6: error: unknown key 'batch_sise' in data
    1 | data.batch_sise=null
      |      ^~~~~~~~~~
  help: did you mean 'batch_size'?
--set:1:1: error: unknown key 'sede'
    1 | sede=null
      | ^~~~
  help: did you mean 'seed'?
)");
}

TEST_CASE("an option over an invalid value of the file adds no error", "[spec]") {
  CHECK(errors_of(R"(mesh: {axes: 8}
)" + base,
                  {}, 4) ==
        R"(c.yaml:1:14: error: axes takes a map of one axis to its size, or a list of such maps, not '8'
    1 | mesh: {axes: 8}
      |              ^
  help: for example axes: {devices: 8}
)");
  CHECK(errors_of(R"(mesh: 8
)" + base,
                  {}, 4) ==
        R"(c.yaml:1:7: error: mesh takes a map of options, not '8'
    1 | mesh: 8
      |       ^
  help: for example:
        mesh:
          axes: {devices: 8}
)");
  CHECK(errors_of(R"(- a
)",
                  {"seed=4"}) ==
        R"(c.yaml:1:1: error: the config is a map of keys, not a list
    1 | - a
      | ^
  help: write 'key: value' lines; pmaptrain init writes an example config
)");
}
