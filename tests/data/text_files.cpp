// The files of a text: folders, gzip, JSON lines, end tokens; and what is said about those that are wrong.
#include "core/data/texts/text_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "core/data/texts/json_lines.h"
#include "core/data/texts/text_source.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/texts.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using Files = data::TextFiles::Files;
using TokenList = std::vector<std::int32_t>;

std::optional<declare::ColumnName> name_of(std::optional<std::int64_t> token) {
  return token ? std::optional(declare::ColumnName{std::to_string(*token)}) : std::nullopt;
}
data::TextFiles bytes_of(const Files& files, std::optional<std::int64_t> end = {},
                         std::optional<std::string> field = {}) {
  return {files, {}, {}, data::Tokens::bytes, 1, name_of(end), std::move(field)};
}
data::TextFiles pairs_of(const Files& files, std::optional<std::int64_t> end = {}) {
  return {files, {}, {}, data::Tokens::uint16, 1, name_of(end), {}};
}

// The text of these files, whose tokens are bytes.
std::string joined(const data::TextFiles& text) {
  std::string bytes;
  for (const std::int32_t token : tokens_of(text)) bytes += static_cast<char>(token);
  return bytes;
}

std::string uint16(const std::vector<std::uint16_t>& tokens) {
  std::string bytes;
  for (const std::uint16_t token : tokens) bytes += little(token, 2);
  return bytes;
}

std::string refused(const data::TextFiles& text) {
  return error_of([&] { text_of(text); });
}

}  // namespace

TEST_CASE("a folder stands for the files below it by their paths, without hidden ones, links, empty ones and runs",
          "[data]") {
  const TemporaryFolder folder;
  namespace fs = std::filesystem;
  fs::create_directories(folder / "texts/a/deep");
  fs::create_directories(folder / "texts/.git");
  fs::create_directories(folder / "texts/none");
  folder.write("texts/b.txt", "5");
  folder.write("texts/a/z.txt", "4");
  folder.write("texts/a/deep/x", "3");
  folder.write("texts/a.txt", "2");  // "a.txt" comes before "a/z.txt"
  folder.write("texts/B.txt.gz", gzip("1"));
  folder.write("texts/.hidden", "x");
  folder.write("texts/.git/config", "x");
  fs::create_directories(folder / "texts/runs/t");
  folder.write("texts/runs/t/.pmaptrain", "pmaptrain run folder\n");
  folder.write("texts/runs/t/metrics.jsonl", "x");
  folder.write("texts/empty", "");
  folder.write("first", "0");
  fs::create_symlink(folder / "first", folder / "texts/link");
  fs::create_directory_symlink(folder / "texts/a", folder / "texts/linked");
  REQUIRE(::mkfifo((folder / "texts/pipe").c_str(), 0600) == 0);
  CHECK(joined(bytes_of({folder / "texts"})) == "12345");
  CHECK(joined(bytes_of({folder / "first", folder / "texts", folder / "texts/a"})) == "01234534");
  CHECK(joined(bytes_of({folder / "texts/linked", folder / "texts/link"})) == "340");  // the config names these links
  CHECK(refused(bytes_of({folder / "texts/none"})) ==
        "the folder '" + folder / "texts/none" +
            "' has no files with text | empty files, links, run folders, and names that begin with a dot are left out");
}

TEST_CASE("a folder or a file of a text that cannot be read is an error", "[data]") {
  const TemporaryFolder folder;
  CHECK(refused(bytes_of({folder / "none"})) ==
        "cannot open '" + folder / "none" +
            "': No such file or directory | a relative path in a config is relative to the folder of the config");
  CHECK(refused(bytes_of({folder.write("empty", "")})) == "'" + folder / "empty" + "' is empty | ");
  CHECK(refused(bytes_of({folder.write("empty.gz", gzip(""))})) ==
        "'" + folder / "empty.gz" + "' has no text in it | ");
  CHECK(refused(bytes_of({folder.write("blank.jsonl", "\n")})) ==
        "'" + folder / "blank.jsonl" + "' has no text in it | ");
}

TEST_CASE("a folder below that of a text which the user may not read is an error", "[data][user]") {
  if (::geteuid() == 0) {
    WARN("skipped: root may read every folder");
    return;
  }
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "texts/closed");
  folder.write("texts/a", "ab");
  REQUIRE(::chmod((folder / "texts/closed").c_str(), 0) == 0);
  CHECK(refused(bytes_of({folder / "texts"})) == "cannot open '" + folder / "texts/closed" + "': Permission denied | ");
  REQUIRE(::chmod((folder / "texts/closed").c_str(), 0700) == 0);
  REQUIRE(::chmod((folder / "texts/a").c_str(), 0) == 0);
  CHECK(refused(bytes_of({folder / "texts"})) == "cannot open '" + folder / "texts/a" + "': Permission denied | ");
}

TEST_CASE("gzip files are decompressed, whatever they are called", "[data]") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>('a' + i % 251 % 26);
  const std::string zipped = gzip(text.substr(0, 1000)) + gzip(text.substr(1000));  // of two members
  CHECK(joined(bytes_of({folder.write("a.txt.gz", zipped)})) == text);
  CHECK(joined(bytes_of({folder.write("A.GZ", zipped), folder.write("b", "end")})) == text + "end");
  CHECK(joined(bytes_of({folder.write("plain", zipped)})) == text);
  CHECK(tokens_of(pairs_of({folder.write("t.gz", gzip(uint16({1, 258, 65535})))})) == TokenList{1, 258, 65535});
  CHECK(refused(bytes_of({folder.write("not.gz", "abc")})) ==
        "'" + folder / "not.gz" + "' is no gzip file, as its name says | rename it without .gz to read it as it is");
  CHECK(refused(bytes_of({folder.write("cut.gz", zipped.substr(0, zipped.size() - 100))})) ==
        "'" + folder / "cut.gz" + "' is truncated: its compressed data is incomplete | copy or download it again");
  CHECK(refused(pairs_of({folder.write("odd.gz", gzip("abc"))})) ==
        "'" + folder / "odd.gz" +
            "' has 3 bytes, which are not whole tokens of 2 bytes | tokens: uint16 takes a flat array of 16-bit "
            "integers; tokens: bytes takes any file");
}

TEST_CASE("of JSON lines a field is the text, in UTF-8", "[data]") {
  const TemporaryFolder folder;
  const std::string lines =
      "{\"text\": \"a\\n\", \"id\": 1}\n\n{\"id\": 2, \"text\": \"\\u00e9\\ud83d\\ude00\\\"\"}\r\n \t\n{\"text\": "
      "\"\"}\n"
      "{\"more\": {\"text\": 3}, \"text\": \"z\", \"title\": \"t\"}";
  CHECK(joined(bytes_of({folder.write("a.jsonl", lines)})) == "a\n\xc3\xa9\xf0\x9f\x98\x80\"z");
  CHECK(joined(bytes_of({folder.write("a.NDJSON", lines + "\n")})) == joined(bytes_of({folder / "a.jsonl"})));
  CHECK(joined(bytes_of({folder.write("a.jsonl.gz", gzip(lines))})) == joined(bytes_of({folder / "a.jsonl"})));
  CHECK(joined(bytes_of({folder.write("b.jsonl", "\xef\xbb\xbf{\"body\": \"xy\"}\n{\"body\": \"z\"}\n")}, {},
                        "body")) == "xyz");
  // Other files stay what they are, also beside a field.
  CHECK(joined(bytes_of({folder.write("c.txt", "{}"), folder / "b.jsonl"}, {}, "body")) == "{}xyz");
  // Lines longer than what is read at once.
  std::string large, expected;
  for (int i = 0; i < 5; ++i) {
    const std::string text(static_cast<std::size_t>(50'000 * i), static_cast<char>('a' + i));
    large += "{\"text\": \"" + text + "\"}\n";
    expected += text;
  }
  CHECK(joined(bytes_of({folder.write("d.jsonl.gz", gzip(large))})) == expected);
}

TEST_CASE("every mistake in JSON lines says the line, and what to change", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.jsonl", good = "{\"text\": \"ab\"}\n";
  const auto words = [&](const std::string& line, const std::string& field = "text") {
    folder.write("a.jsonl", good + "\n" + line + "\n" + good);
    return refused(bytes_of({path}, {}, field));
  };
  const std::string form =
      " | each line is one object, such as {\"text\": \"...\"}; only files that are called .jsonl or .ndjson are read "
      "so";
  const std::string at = "'" + path + "', line 3: ";
  CHECK(words("{\"text\": ab}") == at + "it is not JSON; the mistake is at byte 10" + form);
  CHECK(words("{\"text\": \"ab\"") == at + "it is not JSON; the mistake is at byte 14" + form);
  CHECK(words("{\"text\": \"\xe9\"}") == at + "it is not JSON; the mistake is at byte 12" + form);
  CHECK(words("{\"text\": \"\\ud800\"}") == at + "it is not JSON; the mistake is at byte 17" + form);
  CHECK(words("{\"text\": \"ab\"} {}") == at + "it is not JSON; the mistake is at byte 16" + form);
  CHECK(words("{\"id\": 1e999, \"text\": \"ab\"}") ==
        at + "it has a number that is too large | numbers are at most 1.8e308 in size");
  CHECK(words("[\"ab\"]") == at + "it is a list, expected an object" + form);
  CHECK(words("\"ab\"") == at + "it is a text, expected an object" + form);
  CHECK(words("{\"id\": 1}") ==
        at + "its object has no field 'text' | field: NAME says which field of the objects is the text");
  CHECK(words("{\"id\": 1, \"body\": \"ab\", \"title\": \"t\"}") ==
        at + "its object has no field 'text' | field: NAME says which one is the text; fields with texts: 'body', "
             "'title'");
  CHECK(words("{\"text\": 3, \"body\": \"ab\"}") ==
        at + "its field 'text' is a number, expected a text | field: NAME says which one is the text; fields with "
             "texts: 'body'");
  CHECK(words("{\"text\": null}") == at + "its field 'text' is null, expected a text | field: NAME says which field of "
                                          "the objects is the text");
  CHECK(contains(words("{\"text\": [1]}"), "its field 'text' is a list, expected a text"));
  CHECK(contains(words("{\"text\": {}}"), "its field 'text' is an object, expected a text"));
  CHECK(contains(words("{\"text\": false}"), "its field 'text' is true or false, expected a text"));
  CHECK(contains(words("{\"text\": \"ab\"}", "body"), "', line 1: its object has no field 'body'"));
}

TEST_CASE("a line that is too long for memory is refused before it is held", "[data]") {
  std::size_t pulled = 0;
  data::JsonLines lines(
      [&](std::span<std::byte> out) {
        std::memset(out.data(), ' ', out.size());
        pulled += out.size();
        return out.size();
      },
      "a.jsonl", "text", std::size_t{1} << 20);
  CHECK(
      error_of([&] { lines.next(); }) ==
      "'a.jsonl', line 1: it has more than 1.0 MiB | each line is one object, such as {\"text\": \"...\"}; only files "
      "that are called .jsonl or .ndjson are read so");
  CHECK(pulled <= (std::size_t{1} << 20) + (std::size_t{64} << 10));
}

TEST_CASE("what the files of a text cannot be is refused", "[data]") {
  const TemporaryFolder folder;
  const std::string lines = folder.write("a.jsonl", "{\"text\": \"ab\"}\n"), text = folder.write("b.txt", "ab");
  CHECK(refused(pairs_of({lines})) ==
        "'" + lines +
            "' has texts, by its name, and tokens: uint16 takes files of tokens | tokens: bytes trains on the bytes of "
            "the texts; or write their tokens to files");
  CHECK(refused(bytes_of({text}, {}, "body")) ==
        "field is 'body', and '" + text +
            "' is no file of JSON lines | their names end in .jsonl or .ndjson, or in one of these and .gz: rename the "
            "file, or remove field");
  CHECK(contains(refused(bytes_of({text, text}, {}, "body")),
                 "field is 'body', and '" + text + "' and 1 more has no file of JSON lines"));
  CHECK(
      refused(pairs_of({folder.write("t.npy", npy("<u2", "(2,)", uint16({1, 2})))})) ==
      "'" + folder / "t.npy" +
          "' is an array in NPY format, expected 16-bit tokens alone | in NumPy: tokens.astype(\"<u2\").tofile(path)");
}

TEST_CASE("the end token follows each file and each line, but no file of tokens that ends with it", "[data]") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a", "ab"), b = folder.write("b", "c\n");
  const std::string lines = folder.write("c.jsonl", "{\"text\": \"x\"}\n\n{\"text\": \"\"}\n{\"text\": \"yz\"}\n");
  CHECK(joined(bytes_of({a, b, lines})) == "abc\nxyz");
  CHECK(joined(bytes_of({a, b, lines}, '|')) == "ab|c\n|x||yz|");
  CHECK(joined(bytes_of({a, b}, '\n')) == "ab\nc\n\n");
  CHECK(joined(bytes_of({a}, 0)) == std::string("ab\0", 3));
  CHECK(joined(bytes_of({folder.write("d.gz", gzip("de")), a}, '|')) == "de|ab|");
  CHECK(text_of(bytes_of({a}, 255))->label_range() == std::pair<std::int64_t, std::int64_t>{'a', 255});
  const std::string open = folder.write("open", uint16({1, 2})), ended = folder.write("ended", uint16({3, 300}));
  CHECK(tokens_of(pairs_of({open, ended, open}, 300)) == TokenList{1, 2, 300, 3, 300, 1, 2, 300});
  CHECK(tokens_of(pairs_of({folder.write("e.gz", gzip(uint16({3, 300}))), open}, 300)) == TokenList{3, 300, 1, 2, 300});
  CHECK(tokens_of(pairs_of({open, ended})) == TokenList{1, 2, 3, 300});
}

TEST_CASE("tokens of files that are mapped and of memory are one sequence", "[data]") {
  const TemporaryFolder folder;
  for (const data::Tokens tokens : {data::Tokens::bytes, data::Tokens::uint16}) {
    data::TokenStore store(tokens, "a");
    const std::size_t width = data::bytes_of(tokens);
    std::string all;
    const auto add = [&](std::size_t count, bool maps) {
      std::string bytes;
      for (std::size_t i = 0; i < count * width; ++i) bytes += static_cast<char>((all.size() + i) * 31 % 251);
      all += bytes;
      if (maps) {
        store.map(data::map_file(folder.write(std::to_string(all.size()), bytes)));
      } else {
        store.append(std::as_bytes(std::span(bytes)));
      }
    };
    add(10, true);
    add(100'000, false);  // more than a block
    add(1, false);
    add(70'000, true);
    add(3, true);
    add(5, false);
    const auto expected = static_cast<std::int64_t>(all.size() / width);
    REQUIRE(store.size() == expected);
    TokenList whole(static_cast<std::size_t>(expected)), decoded(whole.size());
    store.read(0, expected, reinterpret_cast<std::byte*>(whole.data()));
    data::decode_tokens(std::as_bytes(std::span(all)), tokens, reinterpret_cast<std::byte*>(decoded.data()));
    CHECK(whole == decoded);
    for (std::int64_t first = 0; first + 13 <= expected; first += 13) {
      TokenList some(13);
      store.read(first, 13, reinterpret_cast<std::byte*>(some.data()));
      if (!std::equal(some.begin(), some.end(), decoded.begin() + first)) FAIL_CHECK("at token " << first);
    }
    CHECK_NOTHROW(store.check_intact());
    CHECK_NOTHROW(store.check_unchanged());
    std::filesystem::resize_file(folder / std::to_string(10 * width), 1);
    CHECK_THROWS_AS(store.check_intact(), Error);
  }
}

TEST_CASE("what is no text is named, and refused with what to do", "[data]") {
  const TemporaryFolder folder;
  const auto told = [&](const std::string& name, const std::string& content, bool are_tokens = false) {
    const std::string path = folder.write(name, content);
    std::string text = refused(are_tokens ? pairs_of({path}) : bytes_of({path}));
    const std::string begin = "'" + path + "' is ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  };
  using namespace std::string_literals;
  CHECK(told("a.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n") ==
        "a Git LFS pointer, which stands for the file itself | git lfs pull fetches the file");
  CHECK(told("a.zst", "\x28\xb5\x2f\xfd...") == "compressed by Zstandard, expected text | zstd -d unpacks it");
  CHECK(told("a.xz", "\xfd\x37zXZ\0"s) == "compressed by xz, expected text | xz -d unpacks it");
  CHECK(told("a.bz2", "BZh91AY&SY...") == "compressed by bzip2, expected text | bzip2 -d unpacks it");
  CHECK(told("a.pdf", "%PDF-1.7\n") == "a PDF document, expected text | pdftotext writes its text");
  CHECK(told("a.h5", "\x89HDF\r\n\x1a\n...") == "an HDF5 file, expected text | h5py reads it");
  CHECK(told("a.parquet", "PAR1\x15\4").starts_with("a Parquet file, expected text"));
  CHECK(told("a.tgz", gzip(std::string(257, 'a') + "ustar")) == "a tar archive, expected text | tar -xf unpacks it");
  CHECK(told("utf16.txt", "\xff\xfeh\0i\0"s) ==
        "text in UTF-16, expected UTF-8 | iconv -f UTF-16 -t UTF-8 OLD > NEW converts it");
  CHECK(told("no_mark.txt", "\0h\0i\0 \0t\0h\0e\0r\0e"s).starts_with("text in UTF-16, expected UTF-8"));
  CHECK(told("cyrillic.txt", "\x1f\4@\x04\x38\x04\x32\x04\x35\x04\x42\x04 \0\x3c\x04\x38\x04\x40\x04\n\0"s)
            .starts_with("text in UTF-16, expected UTF-8"));
  CHECK(told("utf32.txt", "\xff\xfe\0\0h\0\0\0"s).starts_with("text in UTF-32, expected UTF-8"));
  CHECK(told("a.json", "[\n {\"text\": \"a\"}\n]\n") ==
        "a JSON document, whose syntax would be learned as text | write JSON lines, one object with the field text in "
        "each line: jq -c '.[]' OLD.json > NEW.jsonl; a file of another name is read as it is");
  CHECK(told("b.JSON", "{\n\"text\": \"a\"\n}\n").starts_with("a JSON document"));

  std::string wide32, wide64, low32;
  for (int i = 0; i < 40; ++i) {
    const int token = i * 7919 % 50000;
    wide32 += uint16({static_cast<std::uint16_t>(token), static_cast<std::uint16_t>(i % 5 == 0 ? 1 : 0)});
    wide64 += uint16({static_cast<std::uint16_t>(token), 0, 0, 0});
    low32 += uint16({static_cast<std::uint16_t>(i % 100), 0});
  }
  CHECK(told("32.bin", wide32, true) ==
        "a file of 32-bit tokens, it seems, of which tokens: uint16 would read every second one as 0 | tokens: "
        "uint32");
  CHECK(told("low.bin", low32, true).starts_with("a file of 32-bit tokens, it seems"));
  CHECK(told("64.bin", wide64, true)
            .starts_with("a file of 64-bit tokens, it seems, of which tokens: uint16 would "
                         "read three of four as 0"));
  std::string header(1024, '\0');
  const std::uint32_t magic = 20240520;
  std::memcpy(header.data(), &magic, sizeof(magic));
  CHECK(told("llm.bin", header + wide32, true) ==
        "a file of llm.c, which has a header of 1,024 bytes before its 16-bit tokens | tail -c +1025 OLD > NEW writes "
        "the tokens alone");
  CHECK(told("text.bin", "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind", true) ==
        "text, it seems, expected 16-bit tokens | tokens: bytes reads text");
  std::string verse;
  for (int i = 0; i < 2000; ++i) verse += "\xc3\xa4 \xe2\x80\x9cx\xe2\x80\x9d\n";
  CHECK(told("utf8.bin", verse, true) == "text, it seems, expected 16-bit tokens | tokens: bytes reads text");
  // A control character is none of a text, nor are bytes that no character has.
  CHECK(told("tokens.bin", verse.substr(0, 110) + "\1\1" + verse, true) == "accepted");
  CHECK(told("high.bin", verse.substr(0, 110) + "\xff\xff" + verse, true) == "accepted");
}

TEST_CASE("gzip files and JSON lines are told by their content", "[data]") {
  const TemporaryFolder folder;
  CHECK(joined(bytes_of({folder.write("a.txt", gzip("abc"))})) == "abc");
  CHECK(joined(bytes_of({folder.write("a.json", "{\"text\": \"ab\"}\n{\"text\": \"cd\"}\n")}, '|')) == "ab|cd|");
  CHECK(joined(bytes_of({folder.write("b.json.gz", gzip("{\"text\": \"ab\"}\n"))})) == "ab");
  CHECK(joined(bytes_of({folder.write("a.JSONL", "{\"text\": \"ab\"}\n")})) == "ab");
  CHECK(joined(bytes_of({folder.write("c.txt", gzip("{\"text\": 1}"))})) == "{\"text\": 1}");
  CHECK(tokens_of(pairs_of({folder.write("t.bin", gzip(uint16({3, 300})))})) == TokenList{3, 300});
  // Zero bytes between texts do not make them UTF-16, and binary data is no matter of the reader.
  CHECK(joined(bytes_of({folder.write("zeros", std::string("hello\0world", 11))})).size() == 11);
  CHECK(joined(bytes_of({folder.write("empty.zst", "abc")})) == "abc");
  std::filesystem::create_directory(folder / "code");
  folder.write("code/package.json", "{\n\"name\": \"a\"}\n");
  std::vector<std::string> notes;
  const data::TextFiles code = bytes_of({folder / "code"});
  CHECK(data::make_text(code, code.train, notes)->size() == 14);
  CHECK(notes == std::vector<std::string>{"1 file in folders is JSON, '" + folder / "code/package.json" +
                                          "', and is taken as text with its syntax"});
}

TEST_CASE("a file that is in train and in validation is told, by whatever path, and so is its copy", "[data]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "sub");
  folder.write("sub/a.txt", "abcdef");
  folder.write("sub/b.txt", "ghi");
  folder.write("c.txt", "jkl");
  spec::DataSpec spec;
  spec.batch_size = std::int64_t{1};
  data::TextFiles text = bytes_of({folder / "sub"});
  text.validation = {folder / "c.txt"};
  spec.source = text;
  const auto told = [&] {
    std::vector<std::string> texts;
    for (const Diagnostic& warning : input::open(spec, 0, 1).warnings) texts.push_back(warning.message);
    return texts;
  };
  CHECK(told().empty());
  text.validation = {folder / "c.txt", folder / "sub/../sub/b.txt"};
  spec.source = text;
  CHECK(told() == std::vector<std::string>{"1 of 2 files of validation is in train as well, by path or by content: '" +
                                           folder / "sub/../sub/b.txt" + "'"});
  text.validation.reset();
  text.test = {folder / "sub"};
  spec.source = text;
  CHECK(told() == std::vector<std::string>{"2 of 2 files of test are in train as well, by path or by content: '" +
                                           folder / "sub/a.txt" + "' and 1 more"});
  // Shards of one size, of which one is a copy of another, and one differs from another in its middle alone.
  std::string shard(100'000, 'a'), other = shard;
  other[30'000] = 'b';
  text.train = {folder.write("1.txt", shard), folder.write("2.txt", other),
                folder.write("3.txt", "x" + shard.substr(1))};
  other[30'000] = 'c';
  text.test = {folder.write("4.txt", other), folder.write("5.txt", shard),
               folder.write("6.txt", shard.substr(1) + "x")};
  spec.source = text;
  CHECK(told() == std::vector<std::string>{"1 of 3 files of test is in train as well, by path or by content: '" +
                                           folder / "5.txt" + "'"});
  text.train = {folder / "sub"};
  text.test = {folder.write("copy.txt", "abcdef"), folder.write("other.txt", "abcdeg")};
  spec.source = text;
  CHECK(told() == std::vector<std::string>{"1 of 2 files of test is in train as well, by path or by content: '" +
                                           folder / "copy.txt" + "'"});
}
