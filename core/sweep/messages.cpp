#include "core/sweep/messages.h"

#include <cassert>
#include <concepts>
#include <cstring>
#include <type_traits>

namespace pmaptrain::sweep {
namespace {

// A message is its fields one after another, each a number of 8 bytes, or the size of a text or a list and its
// elements. Writer and Reader go through the same fields in the same order (`visit`).
class Writer {
 public:
  std::string text;

  template <class... T>
  void operator()(const T&... fields) {
    (put(fields), ...);
  }

 private:
  template <std::integral T>
  void put(T value) {
    const auto wide = static_cast<std::int64_t>(value);
    text.append(reinterpret_cast<const char*>(&wide), sizeof wide);
  }
  void put(double value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::string& value) {
    put(value.size());
    text += value;
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) put(value);
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& value) { visit(*this, value); }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  template <class... T>
  void operator()(T&... fields) {
    (get(fields), ...);
  }

 private:
  std::string_view take(std::size_t size) {
    assert(size <= left_.size());
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  template <std::integral T>
  void get(T& value) {
    std::int64_t wide = 0;
    std::memcpy(&wide, take(sizeof wide).data(), sizeof wide);
    value = static_cast<T>(wide);
  }
  void get(double& value) { std::memcpy(&value, take(sizeof value).data(), sizeof value); }
  void get(std::string& value) {
    std::size_t size = 0;
    get(size);
    value = take(size);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool has_value = false;
    get(has_value);
    if (has_value) get(value.emplace());
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::size_t size = 0;
    get(size);
    for (; size > 0; --size) get(values.emplace_back());
  }
  template <class T>
  requires std::is_class_v<T>
  void get(T& value) { visit(*this, value); }

  std::string_view left_;
};

template <class V, class T>
void visit(V& visitor, T& value) {
  using Type = std::remove_const_t<T>;
  if constexpr (std::same_as<Type, Request::Start>) visitor(value.job, value.arguments);
  if constexpr (std::same_as<Type, Exit>) visitor(value.job, value.status, value.signal, value.out, value.err);
  if constexpr (std::same_as<Type, Request>) {
    visitor(value.paths, value.timeout, value.starts, value.stop, value.over);
  }
  if constexpr (std::same_as<Type, Answer>) visitor(value.missing, value.ended, value.signal, value.problem);
}

template <class T>
std::string message_text(const T& message) {
  Writer writer;
  writer(message);
  return writer.text;
}

template <class T>
T message_from(std::string_view text) {
  T message;
  Reader reader(text);
  reader(message);
  return message;
}

}  // namespace

std::string text_of(const Request& request) { return message_text(request); }
std::string text_of(const Answer& answer) { return message_text(answer); }
Request request_from(std::string_view text) { return message_from<Request>(text); }
Answer answer_from(std::string_view text) { return message_from<Answer>(text); }

}  // namespace pmaptrain::sweep
