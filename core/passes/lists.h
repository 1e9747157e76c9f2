// Many short lists of numbers.
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

namespace pmaptrain {

// Linked lists of numbers whose links share one array. With one vector for each list, the passes that use them would
// spend most of their time in allocations.
class Lists {
 public:
  explicit Lists(std::size_t count) : lists_(count) {}

  // Appends `number` to a list.
  void add(std::size_t list, std::size_t number) {
    Ends& ends = lists_[list];
    (ends.last == none ? ends.first : links_[ends.last].next) = links_.size();
    ends.last = links_.size();
    links_.push_back({number, none});
  }

  class Iterator;
  struct List;
  List operator[](std::size_t list) const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Ends {
    std::size_t first = none, last = none;
  };
  struct Link {
    std::size_t number, next;
  };

  std::vector<Ends> lists_;
  std::vector<Link> links_;
};

class Lists::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using pointer = const std::size_t*;
  using reference = const std::size_t&;

  Iterator() = default;
  Iterator(const Link* links, std::size_t at) : links_(links), at_(at) {}
  reference operator*() const { return links_[at_].number; }
  Iterator& operator++() {
    at_ = links_[at_].next;
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

 private:
  const Link* links_ = nullptr;
  std::size_t at_ = none;
};

// Valid until a number is added to any list.
struct Lists::List {
  Iterator first, last;
  Iterator begin() const { return first; }
  Iterator end() const { return last; }
  bool empty() const { return first == last; }
};

inline Lists::List Lists::operator[](std::size_t list) const {
  return {{links_.data(), lists_[list].first}, {links_.data(), none}};
}

}  // namespace pmaptrain
