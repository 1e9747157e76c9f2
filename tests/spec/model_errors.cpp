// What a config may not say of layers, initial values, losses and metrics: the words of every error, as golden text.
#include <string>

#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

TEST_CASE("an unknown layer is refused with the nearest spelling", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - cnv: {features: 3}
    - relo
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:7: error: unknown layer 'cnv'
    3 |     - cnv: {features: 3}
      |       ^~~
  help: did you mean 'conv'?
c.yaml:3:7: error: kernel_size is missing in cnv
    3 |     - cnv: {features: 3}
      |       ^~~
  help: add it, for example:
        kernel_size: [3, 3]
c.yaml:4:7: error: unknown layer 'relo'
    4 |     - relo
      |       ^~~~
  help: did you mean 'relu'?
)");
}

TEST_CASE("errors in nested lists have the place of the wrong item", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - layers: [rellu, {name: a.b, flatten: {}}]
    - {name: empty, layers: []}
    - layers: {dense: 10}
    - layers
    - layers: [{name: x, relu: {}}, {name: x, tanh: {}}]
    - {reshape: [-2, 0.5]}
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:16: error: unknown layer 'rellu'
    3 |     - layers: [rellu, {name: a.b, flatten: {}}]
      |                ^~~~~
  help: did you mean 'relu'?
c.yaml:3:30: error: the layer name 'a.b' contains a dot
    3 |     - layers: [rellu, {name: a.b, flatten: {}}]
      |                              ^~~
  help: dots separate the parts of parameter names such as head.kernel
c.yaml:4:21: error: layers is empty; a model has at least one layer
    4 |     - {name: empty, layers: []}
      |                     ^~~~~~
  help: for example:
        - name: block
          layers:
            - conv: {features: 32, kernel_size: [3, 3]}
            - relu
c.yaml:5:15: error: layers takes a list of layers, not a map
    5 |     - layers: {dense: 10}
      |               ^~~~~~~~~~~
  help: for example:
        - name: block
          layers:
            - conv: {features: 32, kernel_size: [3, 3]}
            - relu
c.yaml:6:7: error: 'layers' has no value
    6 |     - layers
      |       ^~~~~~
  help: write one (a list of layers, as model.layers), or remove the key
c.yaml:7:44: error: two layers have the name 'x'
    7 |     - layers: [{name: x, relu: {}}, {name: x, tanh: {}}]
      |                                            ^
  help: the default name is the kind and its index; give one of them another name
c.yaml:8:18: error: shape takes a list of integers of at least -1, not '-2'
    8 |     - {reshape: [-2, 0.5]}
      |                  ^~
  help: for example shape: [7, 7, -1]
c.yaml:8:22: error: shape takes a list of integers of at least -1, not '0.5'
    8 |     - {reshape: [-2, 0.5]}
      |                      ^~~
  help: for example shape: [7, 7, -1]
)");
}

TEST_CASE("losses and metrics list their options in errors", "[spec]") {
  CHECK(errors_of(R"(model: {layers: [flatten, {dense: 10}]}
data: {source: fashion_mnist, batch_size: 128}
loss: {softmax_cross_entropy: {label_smoothing: 1, class_weights: [-1]}}
metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:49: error: label_smoothing takes a number of at least 0 and less than 1, not '1'
    3 | loss: {softmax_cross_entropy: {label_smoothing: 1, class_weights: [-1]}}
      |                                                 ^
  help: for example label_smoothing: 0.1
c.yaml:3:68: error: class_weights takes a list of numbers of at least 0 or 'balanced', not '-1'
    3 | loss: {softmax_cross_entropy: {label_smoothing: 1, class_weights: [-1]}}
      |                                                                    ^~
  help: for example class_weights: [1.0, 5.0]
c.yaml:4:11: error: unknown metric 'acuracy'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |           ^~~~~~~
  help: did you mean 'accuracy'?
c.yaml:4:37: error: k takes an integer of at least 1, not '0'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                     ^
  help: for example k: 3
c.yaml:4:56: error: average takes one of macro, none, not 'mean'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                        ^~~~
  help: for example average: none
c.yaml:4:72: error: metrics has recall twice
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                                        ^~~~~~
  help: keep one of them
c.yaml:4:81: error: unknown metric 'huber'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                                                 ^~~~~
  help: valid choices: accuracy, top_k_accuracy, precision, recall, f1, roc_auc, confusion_matrix, perplexity, mean_absolute_error, mean_squared_error, root_mean_squared_error, r2
c.yaml:4:92: error: unknown metric '7'
    4 | metrics: [acuracy, {top_k_accuracy: 0}, {f1: {average: mean}}, recall, recall, {huber: 1}, 7]
      |                                                                                            ^
  help: valid choices: accuracy, top_k_accuracy, precision, recall, f1, roc_auc, confusion_matrix, perplexity, mean_absolute_error, mean_squared_error, root_mean_squared_error, r2
)");
  CHECK(errors_of(R"(model: {layers: [flatten, {dense: 10}]}
data: {source: fashion_mnist, batch_size: 128}
loss: {huber: 0}
metrics: accuracy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:15: error: delta takes a number greater than 0, not '0'
    3 | loss: {huber: 0}
      |               ^
  help: for example delta: 1.0
c.yaml:4:10: error: metrics takes a list of metrics, not 'accuracy'
    4 | metrics: accuracy
      |          ^~~~~~~~
  help: write [accuracy]
)");
}

TEST_CASE("layers list their options in errors", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - conv: {features: 0, kernel_size: [3]}
    - conv: {features: 8, kernel_size: [3, 0], padding: same}
    - max_pool: {window_shape: [2, 2]}
    - dropout: 1.0
    - relu: {slope: 2}
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:24: error: features takes an integer of at least 1, not '0'
    3 |     - conv: {features: 0, kernel_size: [3]}
      |                        ^
  help: for example features: 32
c.yaml:3:40: error: kernel_size takes a list of 2 integers from 1 to 65,536, not a list of 1
    3 |     - conv: {features: 0, kernel_size: [3]}
      |                                        ^~~
  help: for example kernel_size: [3, 3]
c.yaml:4:44: error: kernel_size takes a list of 2 integers from 1 to 65,536, not '0'
    4 |     - conv: {features: 8, kernel_size: [3, 0], padding: same}
      |                                            ^
  help: for example kernel_size: [3, 3]
c.yaml:4:57: error: padding takes SAME, VALID or a list of two pairs of integers from 0 to 65,536, not 'same'
    4 |     - conv: {features: 8, kernel_size: [3, 0], padding: same}
      |                                                         ^~~~
  help: did you mean 'SAME'?
c.yaml:5:7: error: strides is missing in max_pool
    5 |     - max_pool: {window_shape: [2, 2]}
      |       ^~~~~~~~
  help: add it, for example:
        strides: [2, 2]
c.yaml:6:16: error: rate takes a number of at least 0 and less than 1, not '1.0'
    6 |     - dropout: 1.0
      |                ^~~
  help: for example rate: 0.5
c.yaml:7:14: error: unknown key 'slope' in relu
    7 |     - relu: {slope: 2}
      |              ^~~~~
  help: relu takes no options
)");
}

TEST_CASE("names of layers have no dots and are unique", "[spec]") {
  CHECK(errors_of(R"(model:
  layers:
    - {name: a.b, dense: 3}
    - {name: relu_0, dense: 3}
    - relu
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:14: error: the layer name 'a.b' contains a dot
    3 |     - {name: a.b, dense: 3}
      |              ^~~
  help: dots separate the parts of parameter names such as head.kernel
c.yaml:5:7: error: two layers have the name 'relu_0'
    5 |     - relu
      |       ^~~~
  help: the default name is the kind and its index; give one of them another name
)");
}

TEST_CASE("initial values are rectangular", "[spec]") {
  CHECK(errors_of(R"(model:
  layers: [{dense: 2}]
  init: {values: {dense_0: {kernel: [[1, 2], [3]]}}}
data: {source: fashion_mnist, batch_size: 128}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:3:46: error: the shape of this row differs from that of the first row
    3 |   init: {values: {dense_0: {kernel: [[1, 2], [3]]}}}
      |                                              ^~~
  help: all lists of the same nesting level must have the same length
)");
}

TEST_CASE("an item of the layers that is no layer is refused", "[spec]") {
  CHECK(
      errors_of(base_with(R"(model: {layers: [~, {name: x}, [relu], {flatten: 3}, {name: "1a", dense: 10}]})")) ==
      R"(c.yaml:1:18: error: layer takes one of dense, conv, max_pool, avg_pool, global_avg_pool, reshape, layers, flatten, dropout, relu, tanh, gelu, sigmoid, silu, softmax, leaky_relu, elu, softplus, not null
    1 | model: {layers: [~, {name: x}, [relu], {flatten: 3}, {name: "1a", dense: 10}]}
      |                  ^
  help: for example:
        layers:
          - conv: {features: 32, kernel_size: [3, 3]}
          - relu
          - flatten
          - {name: head, dense: 10}
c.yaml:1:21: error: layer has no kind
    1 | model: {layers: [~, {name: x}, [relu], {flatten: 3}, {name: "1a", dense: 10}]}
      |                     ^~~~~~~~~
  help: add one of dense, conv, max_pool, avg_pool, global_avg_pool, reshape, layers, flatten, dropout, relu, tanh, gelu, sigmoid, silu, softmax, leaky_relu, elu, softplus
c.yaml:1:32: error: layer takes one of dense, conv, max_pool, avg_pool, global_avg_pool, reshape, layers, flatten, dropout, relu, tanh, gelu, sigmoid, silu, softmax, leaky_relu, elu, softplus, not a list
    1 | model: {layers: [~, {name: x}, [relu], {flatten: 3}, {name: "1a", dense: 10}]}
      |                                ^~~~~~
  help: for example:
        layers:
          - conv: {features: 32, kernel_size: [3, 3]}
          - relu
          - flatten
          - {name: head, dense: 10}
c.yaml:1:50: error: flatten takes no options, not '3'
    1 | model: {layers: [~, {name: x}, [relu], {flatten: 3}, {name: "1a", dense: 10}]}
      |                                                  ^
  help: write its bare name, flatten
c.yaml:1:61: error: name takes a name of letters, digits and '_', no digit first, not the text "1a"
    1 | model: {layers: [~, {name: x}, [relu], {flatten: 3}, {name: "1a", dense: 10}]}
      |                                                             ^~~~
  help: for example {name: head, dense: 10}
)");
  CHECK(errors_of(base_with("model: {layers: [flatten, , relu]}")) ==
        R"(c.yaml:1:27: error: this list item has no value
    1 | model: {layers: [flatten, , relu]}
      |                           ^
  help: write its value, or remove the item
)");
}

TEST_CASE("padding is a word or two pairs", "[spec]") {
  CHECK(errors_of(base_with("model: {layers: [{conv: {features: 1, kernel_size: [3, 3], padding: full}}, {conv: "
                            "{features: 1, kernel_size: [3, 3], padding: [[1, 1], [1]]}}]}")) ==
        R"(c.yaml:1:69: error: padding takes SAME, VALID or a list of two pairs of integers from 0 to 65,536, not 'full'
    1 | model: {layers: [{conv: {features: 1, kernel_size: [3, 3], padding: full}}, {conv: {features: 1, kernel_size: [3, 3], padding: [[1, 1], [1]]}}]}
      |                                                                     ^~~~
  help: for example padding: [[1, 1], [1, 1]]
c.yaml:1:137: error: padding takes SAME, VALID or a list of two pairs of integers from 0 to 65,536, not a list of 1
    1 | model: {layers: [{conv: {features: 1, kernel_size: [3, 3], padding: full}}, {conv: {features: 1, kernel_size: [3, 3], padding: [[1, 1], [1]]}}]}
      |                                                                                                                                         ^~~
  help: for example padding: [[1, 1], [1, 1]]
)");
}

TEST_CASE("initial values are numbers, with each name once", "[spec]") {
  CHECK(errors_of(base_with("model: {layers: [{dense: 1}], init: {values: {a: {b: [1]}, a.b: [2]}}}")) ==
        R"(c.yaml:1:60: error: duplicate parameter 'a.b'
    1 | model: {layers: [{dense: 1}], init: {values: {a: {b: [1]}, a.b: [2]}}}
      |                                                            ^~~
  help: keep one of the two
)");
  CHECK(errors_of(base_with("model: {layers: [{dense: 1}], init: {values: {a: , b: [], c: x}}}")) ==
        R"(c.yaml:1:47: error: 'a' has no value
    1 | model: {layers: [{dense: 1}], init: {values: {a: , b: [], c: x}}}
      |                                               ^
  help: write its numbers, such as [0.0, 1.0]
c.yaml:1:55: error: this tensor is empty
    1 | model: {layers: [{dense: 1}], init: {values: {a: , b: [], c: x}}}
      |                                                       ^~
  help: write at least one
c.yaml:1:62: error: values takes a map of parameters to nested lists of numbers, not 'x'
    1 | model: {layers: [{dense: 1}], init: {values: {a: , b: [], c: x}}}
      |                                                              ^
  help: for example init: {values: {dense_0: {kernel: [[1.0]], bias: [0.0]}}}
)");
  CHECK(errors_of(base_with("model: {layers: [{dense: 1}], init: {values: [1]}}")) ==
        R"(c.yaml:1:46: error: values takes a map of parameters to nested lists of numbers, not a list
    1 | model: {layers: [{dense: 1}], init: {values: [1]}}
      |                                              ^~~
  help: for example init: {values: {dense_0: {kernel: [[1.0]], bias: [0.0]}}}
)");
}
