#include "core/base/text.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/base/utf8.h"
#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("an argument is quoted where a shell would read something else", "[base]") {
  CHECK(shell_quoted("runs/cnn-2_a.b=1,c:d@e%+") == "runs/cnn-2_a.b=1,c:d@e%+");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's $5") == "'it'\\''s $5'");
}

TEST_CASE("a name is one line of at most as many columns, with what a terminal would interpret escaped", "[base]") {
  CHECK(shown_name("a b\"'") == "a b\"'");
  CHECK(shown_name("").empty());
  CHECK(shown_name("a\nb\r\tc\x1b[1m\x7f") == "a\\nb\\r\\tc\\x1b[1m\\x7f");
  CHECK(shown_name("\xc2\x85 caf\xc3\xa9 \xff") == "\\x85 caf\xc3\xa9 \\xff");
  CHECK(shown_name(std::string(40, 'a')) == std::string(40, 'a'));
  CHECK(shown_name(std::string(300, 'a') + "\nz") == std::string(25, 'a') + "..." + std::string(9, 'a') + "\\nz");
  // Wide characters and escapes are whole or left out.
  const std::string wide = "\xe4\xb8\x96";
  std::string many;
  for (int i = 0; i < 30; ++i) many += wide;
  CHECK(display_width(shown_name(many)) == 24 + 3 + 12);
  for (int most = 8; most < 30; ++most) CHECK(display_width(shown_name("\n\n\n" + many + "\x01\x02", most)) <= most);
  CHECK(shown_list({"a", "b\n", "c"}, 2) == "a, b\\n and 1 more");
  CHECK(shown_list({"a", "b"}, 2) == "a, b");
}

TEST_CASE("a star in a pattern stands for any characters, dots included", "[base]") {
  for (const char* pattern : {"conv_0.kernel", "*", "conv_0.*", "*.kernel", "conv*kernel", "*0*", "c*v*.*l", "**"}) {
    INFO(pattern);
    CHECK(matches(pattern, "conv_0.kernel"));
  }
  for (const char* pattern :
       {"", "conv_0", "kernel", "*.bias", "conv_1.*", "conv_0.kernel*x", "*kernel*kernel", "?*"}) {
    INFO(pattern);
    CHECK_FALSE(matches(pattern, "conv_0.kernel"));
  }
  CHECK(matches("*", ""));
  CHECK(matches("a*a", "aa"));
  CHECK_FALSE(matches("a*a", "a"));
  CHECK(matches("*ab*ab", "abcab"));
}

TEST_CASE("exact numbers have a point and, where it is shorter, an exponent with its sign", "[base]") {
  CHECK(exact(1.0) == "1.0");
  CHECK(exact(-0.0) == "-0.0");
  CHECK(exact(0.1) == "0.1");
  CHECK(exact(1e-8) == "1.0e-08");
  CHECK(exact(2.5e-7) == "2.5e-07");
  CHECK(exact(1e22) == "1.0e+22");
  CHECK(exact(1e300) == "1.0e+300");
  CHECK(exact(123456789.0) == "123456789.0");
  CHECK(exact(0.1F) == "0.1");
  CHECK(exact(16777216.0F) == "16777216.0");
  CHECK(exact(std::numeric_limits<double>::denorm_min()) == "5.0e-324");
}

TEST_CASE("numbers that are not finite print as YAML writes them", "[base]") {
  CHECK(exact(std::nan("")) == ".nan");
  CHECK(exact(std::numeric_limits<double>::infinity()) == ".inf");
  CHECK(exact(-std::numeric_limits<float>::infinity()) == "-.inf");
}

TEST_CASE("exact numbers read back as the same number", "[base]") {
  std::mt19937_64 random(7);
  int checked = 0;
  while (checked < 2000) {
    const std::uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = exact(value);
    INFO(text);
    REQUIRE(std::strtod(text.c_str(), nullptr) == value);
    REQUIRE(text.find('.') != std::string::npos);
    const auto single =
        static_cast<float>(std::ldexp(static_cast<double>(bits >> 40), static_cast<int>(bits % 60) - 50));
    REQUIRE(std::strtof(exact(single).c_str(), nullptr) == single);
    ++checked;
  }
}

TEST_CASE("the nearest spelling forgives one slip in a short word and a third of a long one", "[base]") {
  const std::vector<std::string> keys{"optimizer", "model", "data", "train", "seed", "loss"};
  CHECK(nearest("optimiser", keys) == "optimizer");
  CHECK(nearest("modle", keys) == "model");  // an exchange counts once
  CHECK(nearest("dta", keys) == "data");
  CHECK(nearest("trian", keys) == "train");
  CHECK(nearest("los", keys) == "loss");
  CHECK(nearest("optimizers", keys) == "optimizer");
  CHECK(nearest("optimization", keys).empty());
  CHECK(nearest("precision", keys).empty());
  CHECK(nearest("", keys).empty());
  CHECK(nearest("seed", {}).empty());
}

TEST_CASE("the first of two equally near spellings is taken", "[base]") { CHECK(nearest("b3", {"b1", "b2"}) == "b1"); }

TEST_CASE("is_utf8 refuses overlong forms, surrogates and truncated characters", "[base]") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("é ✓ 漢字 🙂"));
  CHECK(is_utf8("\xF4\x8F\xBF\xBF"));  // U+10FFFF
  CHECK_FALSE(is_utf8("\x80"));
  CHECK_FALSE(is_utf8("\xC0\xAF"));
  CHECK_FALSE(is_utf8("\xE0\x80\xAF"));
  CHECK_FALSE(is_utf8("\xF0\x80\x80\xAF"));
  CHECK_FALSE(is_utf8("\xED\xA0\x80"));
  CHECK_FALSE(is_utf8("\xF4\x90\x80\x80"));
  CHECK_FALSE(is_utf8("\xE6\xBC"));
  CHECK_FALSE(is_utf8("caf\xE9"));
}

TEST_CASE("characters and display columns are counted separately", "[base]") {
  CHECK(count_characters("naïve") == 5);
  CHECK(display_width("naïve") == 5);
  CHECK(count_characters("漢字") == 2);
  CHECK(display_width("漢字") == 4);
  CHECK(count_characters("e\u0301") == 2);  // a combining accent
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("🙂") == 2);
  CHECK(display_width("→×") == 2);
  CHECK(display_width("│█▌") == 3);
}

TEST_CASE("numbers and sizes are formatted with separators and units", "[base]") {
  CHECK(counted(1, "step") == "1 step");
  CHECK(counted(1200, "step") == "1,200 steps");
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(1234567) == "1,234,567");
  CHECK(with_commas(-123456) == "-123,456");
  CHECK(with_commas(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
  CHECK(human_bytes(832) == "832 B");
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1024) == "1.0 KiB");
  CHECK(human_bytes(1.5 * 1024 * 1024) == "1.5 MiB");
  CHECK(human_bytes(1024.0 * 1024.0 - 1) == "1.0 MiB");
  CHECK(human_bytes(3.0 * 1024 * 1024 * 1024) == "3.0 GiB");
}

TEST_CASE("quantities have four digits and an SI prefix", "[base]") {
  CHECK(with_prefix(0.014921, "s") == "14.92 ms");
  CHECK(with_prefix(3.8534e-6, "s") == "3.853 µs");
  CHECK(with_prefix(303.8e9, "FLOP/s") == "303.8 GFLOP/s");
  CHECK(with_prefix(24120, "FLOP") == "24.12 kFLOP");
  CHECK(with_prefix(1, "s") == "1 s");
  CHECK(with_prefix(0, "FLOP") == "0 FLOP");
  CHECK(with_prefix(0.00099996, "s") == "1 ms");
  CHECK(with_prefix(999960, "B") == "1 MB");
  CHECK(with_prefix(-1500, "B") == "-1.5 kB");
  CHECK(with_prefix(2e15, "B") == "2000 TB");
  CHECK(with_prefix(2e-12, "s") == "0.002 ns");
}

TEST_CASE("joining puts the separator between parts only", "[base]") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "b", "c"}, ", ") == "a, b, c");
}
