// Runs that predict in tests.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/files.h"

namespace pmaptrain::tests {

// A run in a folder: `source` and what follows complete the config.
struct TrainedRun {
  TemporaryFolder folder;
  std::string dir = folder / "run";

  void train(const std::string& data, const std::string& layers, const std::string& rest = "",
             const std::vector<std::string>& set = {}) {
    folder.write("c.yaml", "mesh: {axes: {devices: 2}}\ndata:\n  batch_size: 8\n" + data + "model: {layers: [" +
                               layers + "]}\n" + (rest.empty() ? "loss: softmax_cross_entropy\n" : rest) +
                               "optimizer: {adam: {}, learning_rate: 0.05}\ntrain: {duration: 10 epochs}\n");
    std::vector<std::string> arguments{"run", folder / "c.yaml", "--run-dir", dir, "-q", "--progress", "none"};
    for (const std::string& setting : set) arguments.insert(arguments.end(), {"--set", setting});
    const Finished run = call(arguments);
    INFO(run.err);
    REQUIRE(run.status == 0);
  }
  Finished predict(const std::string& input, const std::string& output, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"predict", dir, "--input", folder / input, "--output", folder / output});
    return call(options);
  }
  // The text of the CSV file that predict writes.
  std::string csv(const std::string& input, std::vector<std::string> options = {}) const {
    options.emplace_back("--overwrite");
    const Finished done = predict(input, "out.csv", options);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return read_text(folder / "out.csv");
  }
  // "message | help" of a refusal with this status.
  std::string refusal(int status, const std::string& input, std::vector<std::string> options = {},
                      const std::string& output = "none.csv") const {
    const Finished done = predict(input, output, std::move(options));
    CHECK(done.status == status);
    CHECK_FALSE(std::filesystem::exists(folder / "none.csv"));
    std::string text = done.err;
    for (std::size_t at = 0; (at = text.find((folder.path().string() + "/"), at)) != std::string::npos;) {
      text.erase(at, folder.path().string().size() + 1);
    }
    const std::size_t from = text.find("error: ") + 7, help = text.find("help: ");
    return text.substr(from, text.find('\n', from) - from) +
           (help == std::string::npos ? "" : " | " + text.substr(help + 6, text.find('\n', help) - help - 6));
  }
};

// Shops: the city decides.
inline std::string shop_table(int rows, bool with_target) {
  std::string text = with_target ? "age,city,bought\n" : "city,id,age\n";
  for (int i = 0; i < rows; ++i) {
    const std::string age = std::to_string(20 + i % 7), city = i % 3 == 0 ? "Rome" : "Oslo";
    text += with_target ? age + "," + city + "," + (i % 3 == 0 ? "\"yes, twice\"" : "no") + "\n"
                        : city + ",x" + std::to_string(i) + "," + age + "\n";
  }
  return text;
}

struct ShopRun : TrainedRun {
  ShopRun() {
    folder.write("shop.csv", shop_table(48, true));
    folder.write("new.csv", shop_table(5, false));
    train("  source: {csv: {train: shop.csv, target: bought, categorical: [city]}}\n  normalize: auto\n", "dense: 2");
    std::filesystem::remove(folder / "shop.csv");
  }
};

}  // namespace pmaptrain::tests
