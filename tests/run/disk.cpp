#include "tests/run/disk.h"

#include <algorithm>

#include "tests/files.h"

namespace pmaptrain::testing {

namespace fs = std::filesystem;

// ---- trees ---------------------------------------------------------------------------------------------------------

Tree tree_of(const fs::path& directory) {
  Tree tree;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().lexically_relative(directory).string();
    if (entry.is_symlink()) {
      tree[path] = {Node::Kind::link, fs::read_symlink(entry.path()).string()};
    } else if (entry.is_directory()) {
      tree[path] = {};
    } else {
      tree[path] = {Node::Kind::file, test::read_text(entry.path())};
    }
  }
  return tree;
}

TreeOnDisk::TreeOnDisk(fs::path directory) : directory_(std::move(directory)) {
  fs::remove_all(directory_);
  fs::create_directories(directory_);
}

void TreeOnDisk::become(const Tree& tree) {
  const auto stays = [&](const std::string& path, const Node& node) {
    const auto found = tree.find(path);
    return found != tree.end() && found->second.kind == node.kind &&
           (node.kind != Node::Kind::link || found->second.text == node.text);
  };
  // What is in a directory comes after it.
  for (auto node = now_.rbegin(); node != now_.rend(); ++node) {
    if (!stays(node->first, node->second)) fs::remove(directory_ / node->first);
  }
  for (const auto& [path, node] : tree) {
    const auto found = now_.find(path);
    if (found != now_.end() && found->second == node) continue;
    const fs::path place = directory_ / path;
    if (node.kind == Node::Kind::directory) fs::create_directory(place);
    if (node.kind == Node::Kind::link) fs::create_symlink(node.text, place);
    if (node.kind == Node::Kind::file) test::write_text(place, node.text);
  }
  now_ = tree;
}

void write_tree(const Tree& tree, const fs::path& directory) { TreeOnDisk(directory).become(tree); }

void add_torn(std::vector<Change>& changes, Change change) {
  if (const std::size_t half = change.bytes.size() / 2; half > 0) {
    Change first = change;
    first.bytes.resize(half);
    change.bytes.erase(0, half);
    change.at += half;
    changes.push_back(std::move(first));
  }
  changes.push_back(std::move(change));
}

// ---- files and directories that remember what is durable -----------------------------------------------------------

namespace {

bool chance(Disk::Random& random, unsigned percent) { return random() % 100 < percent; }

void change_file(std::string& file, const Change& change) {
  if (change.kind == Change::Kind::truncate) return file.resize(change.at);
  if (file.size() < change.at + change.bytes.size()) file.resize(change.at + change.bytes.size());
  file.replace(change.at, change.bytes.size(), change.bytes);
}

template <class FolderChange>
void change_entries(Disk::Entries& entries, const FolderChange& change) {
  for (const auto& [name, values] : change) {
    // What goes is only what the call took away.
    if (values.second != 0) entries[name] = values.second;
    if (values.second == 0 && entries.contains(name) && entries[name] == values.first) entries.erase(name);
  }
}

}  // namespace

void Disk::File::apply(const Change& change) {
  change_file(now, change);
  pending.push_back(change);
}

void Disk::File::flush() {
  durable = now;
  pending.clear();
}

std::string Disk::File::after_loss(Random& random) const {
  if (pending.empty() || chance(random, 25)) return durable;
  if (chance(random, 25)) return now;
  std::string left = durable;
  for (Change change : pending) {
    if (chance(random, 30)) continue;
    if (chance(random, 30)) {  // from somewhere on only the size arrived
      const std::size_t torn = random() % (change.bytes.size() + 1);
      std::fill(change.bytes.begin() + static_cast<std::ptrdiff_t>(torn), change.bytes.end(), '\0');
    }
    if (chance(random, 20)) change.bytes.resize(random() % (change.bytes.size() + 1));
    change_file(left, change);
  }
  return left;
}

void Disk::Folder::apply(FolderChange change) {
  change_entries(now, change);
  pending.push_back(std::move(change));
}

void Disk::Folder::flush() {
  durable = now;
  pending.clear();
}

Disk::Entries Disk::Folder::after_loss(Random& random) const {
  if (pending.empty() || chance(random, 25)) return durable;
  if (chance(random, 25)) return now;
  Entries left = durable;
  for (const FolderChange& change : pending) {
    if (chance(random, 50)) change_entries(left, change);
  }
  return left;
}

// ---- the disk ------------------------------------------------------------------------------------------------------

void Disk::apply(const Change& change) {
  if (change.kind == Change::Kind::flush) {
    if (const auto file = files_.find(change.of); file != files_.end()) file->second.flush();
    if (const auto folder = folders_.find(change.of); folder != folders_.end()) folder->second.flush();
  } else if (change.kind == Change::Kind::write || change.kind == Change::Kind::truncate) {
    files_.at(change.of).apply(change);
  } else {
    change_folder(folders_.at(change.of), change);
  }
}

void Disk::change_folder(Folder& folder, const Change& change) {
  const auto number_of = [&](const std::string& name) {
    const auto found = folder.now.find(name);
    return found != folder.now.end() ? found->second : 0;
  };
  const Number first = number_of(change.name), second = number_of(change.other);
  switch (change.kind) {
    case Change::Kind::create: files_[change.made]; break;
    case Change::Kind::make_directory: folders_[change.made]; break;
    case Change::Kind::link: links_[change.made] = change.other; break;
    case Change::Kind::rename: return folder.apply({{change.name, {first, 0}}, {change.other, {second, first}}});
    case Change::Kind::exchange: return folder.apply({{change.name, {first, second}}, {change.other, {second, first}}});
    case Change::Kind::remove: return folder.apply({{change.name, {first, 0}}});
    default: return;
  }
  folder.apply({{change.name, {first, change.made}}});
}

std::string Disk::path_of(Number number) const {
  for (const auto& [folder, entries] : folders_) {
    for (const auto& [name, at] : entries.now) {
      if (at != number) continue;
      return folder == RecordingFileSystem::top ? name : path_of(folder) + "/" + name;
    }
  }
  return "";
}

std::string Disk::path_of(const Change& change) const {
  const std::string of = path_of(change.of);
  return change.name.empty() ? of : of.empty() ? change.name : of + "/" + change.name;
}

void Disk::add_to(Tree& tree, Number folder, const std::string& path, Random* random) const {
  const Folder& from = folders_.at(folder);
  for (const auto& [name, number] : random != nullptr ? from.after_loss(*random) : from.now) {
    const std::string place = path + name;
    if (const auto file = files_.find(number); file != files_.end()) {
      tree[place] = {Node::Kind::file, random != nullptr ? file->second.after_loss(*random) : file->second.now};
    } else if (const auto link = links_.find(number); link != links_.end()) {
      tree[place] = {Node::Kind::link, link->second};
    } else {
      tree[place] = {};
      add_to(tree, number, place + "/", random);
    }
  }
}

Tree Disk::tree() const {
  Tree tree;
  add_to(tree, RecordingFileSystem::top, "", nullptr);
  return tree;
}

Tree Disk::after_loss(Random& random) const {
  Tree tree;
  add_to(tree, RecordingFileSystem::top, "", &random);
  return tree;
}

Disk::Entries Disk::durable(const std::vector<std::string>& path) const {
  Number at = RecordingFileSystem::top;
  for (const std::string& name : path) {
    const Folder& folder = folders_.at(at);
    if (!folder.durable.contains(name) || !folder.now.contains(name)) return {};
    if (folder.durable.at(name) != folder.now.at(name)) return {};
    at = folder.now.at(name);
  }
  return folders_.at(at).durable;
}

}  // namespace pmaptrain::testing
