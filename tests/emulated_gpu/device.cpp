#include "tests/emulated_gpu/device.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "tests/emulated_gpu/library.h"

namespace pmaptrain::emulation {
namespace {

constexpr const char* stream_names[] = {"compute", "communicate", "copy"};
const char* name_of(Stream stream) { return stream_names[static_cast<std::size_t>(stream)]; }
constexpr const char* reduction_names[] = {"sum", "max", "min"};

std::string bytes_text(std::size_t bytes) { return counted(static_cast<std::int64_t>(bytes), "byte"); }

// The entry of a list of a device's, which calls refer to by number.
template <class List>
auto& entry_of(List& list, int number, int device, const std::string& lacks) {
  if (number < 0 || number >= std::ssize(list)) {
    fail_running("device " + std::to_string(device) + " has " + lacks + " " + std::to_string(number));
  }
  return list[static_cast<std::size_t>(number)];
}

// What a rank brings to a collective.
struct Part {
  Clock* clock;
  std::byte* to;
  const std::byte* from;
};

}  // namespace

EmulatedDevice::EmulatedDevice(std::shared_ptr<Machine> machine, Opened opened)
    : machine_(std::move(machine)),
      opened_(opened),
      number_(opened.number),
      module_(machine_->of(opened.module)),
      thread_(std::this_thread::get_id()),
      random_(machine_->options.seed * 1024 + static_cast<unsigned>(number_)),
      calls_(machine_->calls) {}

// As on CUDA, it waits for its own streams first.
EmulatedDevice::~EmulatedDevice() {
  // What is left of a test that has failed, or of one of failures, is not looked at.
  const bool is_aborted = module_.rendezvous.abort_of(number_).is_set();
  const std::lock_guard lock(machine_->mutex);
  for (const Clock& clock : clocks_) machine_->host.join(clock);
  std::string begun = is_aborted ? "" : module_.host_order.under_way(machine_->host);
  if (begun.empty()) begun = machine_->under_way_elsewhere(opened_.module);
  if (!begun.empty()) begun = "device " + std::to_string(number_) + " ends while " + begun + " may run";
  for (const std::string& wrong : {begun, machine_->memory.free_all_of(opened_.id, machine_->host)}) {
    if (!wrong.empty()) machine_->misuse = wrong;
  }
  module_.host_order.ends(number_);
  module_.open.erase(number_);
  calls_.closed.add(number_);
}

// A graph continues the stream compute and has lanes of its own for the others.
std::size_t EmulatedDevice::lane_of(Stream stream, bool in_graph) {
  const auto number = static_cast<std::size_t>(stream);
  return in_graph && stream != Stream::compute ? gpu::stream_count + number - 1 : number;
}

void EmulatedDevice::enter() const {
  if (std::this_thread::get_id() != thread_) {
    fail_running("device " + std::to_string(number_) + " is used on another thread than the one that opened it");
  }
  module_.rendezvous.abort_of(number_).check();
}

void EmulatedDevice::enter_outside_capture(const char* call) const {
  enter();
  if (capture_)
    fail_running(std::string(call) + " on device " + std::to_string(number_) + " while a graph is captured");
}

void EmulatedDevice::enter_alone(const char* call) {
  enter_outside_capture(call);
  const std::lock_guard lock(machine_->mutex);
  const std::string what = std::string(call) + " of device " + std::to_string(number_);
  module_.host_order.may_wait_for_others(opened_, host_, what);
  if (const std::string begun = machine_->under_way_elsewhere(opened_.module); !begun.empty()) {
    fail_running(what + " may wait for " + begun);
  }
}

bool EmulatedDevice::is_forgotten(const std::string& call) {
  calls_.queued.add(call);
  return call == calls_.forgotten;
}

std::shared_ptr<const std::string> EmulatedDevice::describe(const std::string& call, Stream stream) const {
  return std::make_shared<std::string>(call + " on stream " + name_of(stream) + " of device " +
                                       std::to_string(number_));
}

std::byte* EmulatedDevice::allocate(std::size_t bytes) {
  ++calls_.memory;
  enter_alone("allocate()");
  const std::lock_guard lock(machine_->mutex);
  return machine_->memory.allocate({opened_.id, number_}, bytes);
}

std::byte* EmulatedDevice::pinned(std::size_t bytes) {
  ++calls_.memory;
  calls_.pinned += bytes;
  enter_alone("pinned()");
  const std::lock_guard lock(machine_->mutex);
  return machine_->memory.pinned({opened_.id, number_}, bytes);
}

gpu::PreparedKernel EmulatedDevice::prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) {
  ++calls_.kernels;
  if (request.tf32) ++calls_.tf32;
  if (calls_.kernels_that_work-- == 0) fail_running("planted: a kernel cannot be prepared");
  enter_alone("prepare()");
  const bool own = kernel.find<GpuAttention>() != nullptr && !machine_->options.library_has_attention;
  kernels_.push_back(
      std::make_unique<EmulatedKernel>(op, request, own ? kernel.without_library() : kernel, machine_->options));
  return {static_cast<int>(std::ssize(kernels_)) - 1, kernels_.back()->workspace_bytes(), own};
}

void EmulatedDevice::launch(Stream stream, gpu::PreparedKernel kernel, const gpu::LaunchArguments& arguments,
                            const Accesses& accesses) {
  enter();
  const EmulatedKernel& prepared = *entry_of(kernels_, kernel.number, number_, "no kernel");
  Work work{stream, describe("'" + prepared.name() + "'", stream), accesses, {}};
  prepared.check(*work.what, arguments, accesses);
  // Two launches that run at once must not share these, so they count as written.
  work.accesses.writes.push_back({arguments.scratch, prepared.scratch_bytes()});
  work.accesses.writes.push_back({arguments.workspace, prepared.workspace_bytes()});
  work.run = [&prepared, operands = std::vector(arguments.operands.begin(), arguments.operands.end()),
              results = std::vector(arguments.results.begin(), arguments.results.end()), scratch = arguments.scratch,
              workspace = arguments.workspace](const Call&, Clock&) {
    prepared.run({operands, results, scratch, workspace});
  };
  issue(std::move(work));
}

void EmulatedDevice::copy(Stream stream, std::byte* to, const std::byte* from, const gpu::PitchedRows& rows) {
  calls_.queued.add(std::string("copy on ") + name_of(stream));
  enter();
  const auto what = describe("copy of " + bytes_text(rows.width * rows.height), stream);
  // One row has no pitch.
  const std::size_t to_pitch = rows.height > 1 ? rows.to_pitch : rows.width;
  const std::size_t from_pitch = rows.height > 1 ? rows.from_pitch : rows.width;
  if (to_pitch < rows.width || from_pitch < rows.width) {
    fail_running(*what + ": rows of " + bytes_text(rows.width) + " lie " +
                 std::to_string(std::min(to_pitch, from_pitch)) + " apart, so they overlap");
  }
  Work work{stream, what, {ranges_of_rows(from, rows, from_pitch), ranges_of_rows(to, rows, to_pitch)}, {}};
  if (any_overlap(work.accesses.reads, work.accesses.writes)) fail_running(*what + " writes what it reads");
  bool to_host, from_host;
  {
    const std::lock_guard lock(machine_->mutex);
    to_host = machine_->memory.is_pinned(to);
    from_host = machine_->memory.is_pinned(from);
  }
  if (to_host && from_host) fail_running(*what + " is from the host to the host");
  work.run = [this, rows, to, from, to_pitch, from_pitch, to_host, from_host, accesses = work.accesses](
                 const Call& call, Clock&) {
    const std::lock_guard lock(machine_->mutex);
    if (from_host) {
      machine_->memory.read_from_host(call, accesses.reads);
      calls_.bytes_from_host += rows.width * rows.height;
    }
    std::vector<std::byte> for_host(to_host ? rows.width * rows.height : 0);
    for (std::size_t row = 0; row < rows.height && rows.width > 0; ++row) {
      std::byte* const row_to = to_host ? for_host.data() + row * rows.width : to + row * to_pitch;
      std::memcpy(row_to, from + row * from_pitch, rows.width);
    }
    if (to_host) machine_->memory.send_to_host(call, accesses.writes, std::move(for_host));
  };
  issue(std::move(work), true);
}

void EmulatedDevice::reduce(Stream stream, Reduction reduce, DType dtype, std::span<const gpu::Addends> all,
                            std::span<const TreeNode> tree) {
  enter();
  Work work{stream,
            describe(std::string("reduce to the ") + reduction_names[static_cast<std::size_t>(reduce)], stream),
            {},
            {}};
  check_groups(*work.what, all, dtype, tree);
  for (const gpu::Addends& group : all) {
    for (const std::byte* const array : arrays_of(group))
      work.accesses.reads.push_back({array, bytes_of(group, dtype)});
    work.accesses.writes.push_back({group.to, bytes_of(group, dtype)});
  }
  work.run = [=, what = work.what, groups = std::vector(all.begin(), all.end()),
              nodes = std::vector(tree.begin(), tree.end())](const Call&, Clock&) {
    for (const gpu::Addends& group : groups) {
      const auto reduced = reduce_arrays(*what, reduce, dtype, bytes_of(group, dtype), arrays_of(group), nodes);
      if (!reduced.empty()) std::memcpy(group.to, reduced.data(), reduced.size());
    }
  };
  issue(std::move(work));
}

gpu::Communicator EmulatedDevice::create_communicator(std::span<const int> ranks, const gpu::CommunicatorId* id) {
  ++calls_.communicators;
  if (calls_.before_communicator) calls_.before_communicator(number_);
  enter_alone("create_communicator()");
  std::shared_ptr<Rendezvous> between;
  if (id != nullptr) {
    const int last = *std::max_element(ranks.begin(), ranks.end());
    between = machine_->links->rendezvous_of(*id, last + 1, machine_->options.patience);
    {
      const std::lock_guard lock(between_mutex_);
      between_.push_back(between);
    }
    enter();  // it may have been aborted before it was in the list
  }
  Rendezvous& place = between != nullptr ? *between : module_.rendezvous;
  std::shared_ptr<Group> group = place.join(number_, ranks);
  communicators_.push_back({std::move(between), std::move(group)});
  return {static_cast<int>(std::ssize(communicators_)) - 1};
}

void EmulatedDevice::barrier(int devices) {
  ++calls_.barriers;
  enter_outside_capture("barrier()");
  // That at the end of a load comes after what is recorded; later ones come in pairs.
  const bool is_before = std::exchange(next_barrier_is_before_, !next_barrier_is_before_);
  if (calls_.forgotten == (is_before ? "meet before recording" : "meet after recording")) return;
  if (devices > machine_->options.devices) {
    fail_running("a barrier of " + std::to_string(devices) + " devices, of which the process has " +
                 std::to_string(machine_->options.devices));
  }
  Group& group = module_.rendezvous.neighbours(module_.first_rank, devices);
  module_.rendezvous.meet(group, number_, "meet", &host_, [&](Rendezvous::Parts parts) {
    Clock joined;
    for (void* const part : parts) joined.join(*static_cast<Clock*>(part));
    for (void* const part : parts) *static_cast<Clock*>(part) = joined;
  });
}

void EmulatedDevice::collective(Stream stream, gpu::Communicator communicator, gpu::Collective kind, DType dtype,
                                std::byte* to, const std::byte* from, std::size_t bytes) {
  enter();
  const auto& [between, group] = entry_of(communicators_, communicator.number, number_, "not joined a communicator");
  const std::size_t ranks = group->ranks.size(), place = group->place_of(number_);
  const Range read{from, bytes_read(kind, bytes, ranks)}, written{to, bytes_written(kind, bytes, ranks)};
  const std::string call = std::string(gpu::to_string(kind)) + " of " + bytes_text(bytes) + " of " +
                           std::string(pmaptrain::to_string(dtype));
  Work work{stream, describe(call + " in " + group->name(), stream), {{read}, {written}}, {}};
  const bool in_place = (kind == gpu::Collective::all_gather && from == to + place * bytes) ||
                        (kind == gpu::Collective::all_reduce_sum && from == to);
  if (!in_place && overlap(read, written)) fail_running(*work.what + " writes over part of what it reads");

  work.run = [this, between = between, group = group, kind, dtype, to, from, bytes, ranks, call, what = work.what](
                 const Call&, Clock& clock) {
    const test::Emulation& options = machine_->options;
    if (number_ == options.lost_rank && collectives_++ >= options.lost_from) module_.rendezvous.hang(number_);
    if (ranks > 1) {
      const std::lock_guard lock(machine_->mutex);
      module_.host_order.begins_collective(opened_, host_, *what);
      if (const std::string begun = machine_->under_way_elsewhere(opened_.module); !begun.empty()) {
        fail_running(*what + " is begun while " + begun + " may run: GPUs may take them in different orders");
      }
      clock.join(host_);
      calls_.bytes_between += bytes_sent(kind, bytes, ranks);
    }
    Part mine{&clock, to, from};
    Rendezvous& meeting = between != nullptr ? *between : module_.rendezvous;
    meeting.meet(*group, number_, call, &mine, [&](Rendezvous::Parts parts) {
      Clock joined;
      std::vector<const std::byte*> arrays;
      for (void* const part : parts) {
        joined.join(*static_cast<Part*>(part)->clock);
        arrays.push_back(static_cast<Part*>(part)->from);
      }
      const auto joined_at = [&](std::size_t offset) {
        std::vector<std::byte> all;
        for (const std::byte* const array : arrays) all.insert(all.end(), array + offset, array + offset + bytes);
        return all;
      };
      std::vector<std::vector<std::byte>> results(ranks);
      if (kind == gpu::Collective::exchange) {
        for (std::size_t i = 0; i < ranks; ++i) results[i] = joined_at(i * bytes);
      } else if (kind == gpu::Collective::all_gather) {
        results.assign(ranks, joined_at(0));
      } else {
        std::mt19937 random(options.seed);
        std::shuffle(arrays.begin(), arrays.end(), random);
        if (kind == gpu::Collective::all_reduce_sum) {
          results.assign(ranks, reduce_arrays(*what, Reduction::sum, dtype, bytes, arrays));
        } else {
          for (std::vector<std::byte>& part : results) {
            part = reduce_arrays(*what, Reduction::sum, dtype, bytes, arrays);
            for (const std::byte*& array : arrays) array += bytes;
          }
        }
      }
      for (std::size_t i = 0; i < ranks; ++i) {
        auto& rank = *static_cast<Part*>(parts[i]);
        *rank.clock = joined;
        if (!results[i].empty()) std::memcpy(rank.to, results[i].data(), results[i].size());
      }
    });
  };
  issue(std::move(work));
}

// Checks whose memory the call uses, and carries it out or records it.
void EmulatedDevice::issue(Work work, bool pinned_allowed) {
  {
    const std::lock_guard lock(machine_->mutex);
    machine_->memory.check_owner(*work.what, opened_.id, work.accesses, pinned_allowed);
  }
  if (!capture_) return carry_out(work, lane_of(work.stream, false));
  const auto stream = static_cast<std::size_t>(work.stream);
  if (!capture_->forked[stream]) {
    fail_running(*work.what + " is captured before order() has begun the stream from compute");
  }
  capture_->seen[stream].tick(stream);
  capture_->calls.emplace_back(std::move(work));
}

// What the host knows is done before whatever it calls for now.
void EmulatedDevice::carry_out(const Work& work, std::size_t lane) {
  Clock& clock = clocks_[lane];
  Call call;
  {
    const std::lock_guard lock(machine_->mutex);
    const std::size_t global_lane = opened_.lane(lane);
    clock.join(host_);
    clock.tick(global_lane);
    call = {global_lane, clock.at(global_lane), work.what};
    machine_->memory.access(work.accesses, call, clock);
  }
  work.run(call, clock);
}

void EmulatedDevice::order(Stream before, Stream after) {
  if (is_forgotten(std::string("order ") + name_of(before) + " before " + name_of(after))) return;
  enter();
  if (capture_) return fork_or_join({before, after});
  clocks_[lane_of(after, false)].join(clocks_[lane_of(before, false)]);
}

void EmulatedDevice::fork_or_join(Order order) {
  const auto before = static_cast<std::size_t>(order.before), after = static_cast<std::size_t>(order.after);
  if (!capture_->forked[before]) {
    fail_running(std::string("order() after stream ") + name_of(order.before) + " of device " +
                     std::to_string(number_) + ", which is not part of the capture",
                 "order() from compute makes it part of it");
  }
  capture_->forked[after] = true;
  capture_->seen[after].join(capture_->seen[before]);
  capture_->calls.emplace_back(order);
}

gpu::Graph EmulatedDevice::capture(const std::function<void()>& record) {
  ++calls_.graphs;
  if (calls_.graphs_that_work-- == 0) fail_running("planted: a graph cannot be made");
  enter_alone("capture()");
  struct End {
    std::optional<Capture>& capture;
    ~End() { capture.reset(); }
  } const end{capture_};
  capture_.emplace();
  record();
  for (const Stream stream : {Stream::communicate, Stream::copy}) {
    const auto number = static_cast<std::size_t>(stream);
    if (capture_->seen[0].at(number) == capture_->seen[number].at(number)) continue;
    fail_running(std::string("stream ") + name_of(stream) + " of device " + std::to_string(number_) +
                     " is not joined to compute at the end of a capture",
                 std::string("order(") + name_of(stream) + ", compute) after its last call");
  }
  graphs_.push_back(std::move(capture_->calls));
  const int calls = machine_->options.graphs ? 1 : static_cast<int>(std::ssize(graphs_.back()));
  return {static_cast<int>(std::ssize(graphs_)) - 1, calls};
}

void EmulatedDevice::replay_calls(gpu::Graph graph, int first, int count) {
  if (first == 0) {
    calls_.queued.add("replay");
    if (calls_.before_replay) calls_.before_replay(number_);
  }
  calls_made_ += count;
  calls_.are_in_flight(calls_made_ - calls_done_);
  enter_outside_capture("replay()");
  const Recorded& all = entry_of(graphs_, graph.number, number_, "no graph");
  const auto recorded_calls = machine_->options.graphs ? std::span(all)
                                                       : std::span(all).subspan(static_cast<std::size_t>(first),
                                                                                static_cast<std::size_t>(count));
  // The other lanes begin where they are forked, and know nothing of earlier replays.
  for (const Stream stream : {Stream::communicate, Stream::copy}) {
    if (first > 0) break;
    const std::size_t lane = lane_of(stream, true);
    const std::size_t global_lane = opened_.lane(lane);
    const std::uint64_t calls = clocks_[lane].at(global_lane);
    clocks_[lane] = {};
    clocks_[lane].set(global_lane, calls);
  }
  for (const auto& recorded : recorded_calls) {
    if (const auto* const work = std::get_if<Work>(&recorded)) {
      carry_out(*work, lane_of(work->stream, true));
    } else {
      const auto& order = std::get<Order>(recorded);
      clocks_[lane_of(order.after, true)].join(clocks_[lane_of(order.before, true)]);
    }
  }
}

gpu::Event EmulatedDevice::record_event(Stream stream) {
  enter_outside_capture("record_event()");
  events_[next_event_] = {clocks_[lane_of(stream, false)], stream == Stream::compute ? calls_made_ : 0};
  return {next_event_++};
}

bool EmulatedDevice::poll(gpu::Event event) {
  enter_outside_capture("poll()");
  // A device may take its time.
  if (events_.contains(event.number) && random_() % 2 == 0) return false;
  host_knows(event);
  return true;
}

void EmulatedDevice::check_known(gpu::Event event) const {
  if (event.number < 0 || event.number >= next_event_) {
    fail_running("device " + std::to_string(number_) + " has no event " + std::to_string(event.number));
  }
}

void EmulatedDevice::host_knows(gpu::Event event) {
  check_known(event);
  const auto found = events_.find(event.number);
  if (found == events_.end()) return;
  host_.join(found->second.clock);
  std::erase_if(events_, [&](const auto& known) {
    if (!host_.covers(known.second.clock)) return false;
    calls_done_ = std::max(calls_done_, known.second.calls);
    return true;
  });
  const std::lock_guard lock(machine_->mutex);
  machine_->host.join(host_);
  machine_->memory.host_waited(host_);
}

void EmulatedDevice::wait_event(gpu::Event event, Stream stream) {
  if (is_forgotten(std::string("follow on ") + name_of(stream))) return;
  enter_outside_capture("wait_event()");
  check_known(event);
  const auto found = events_.find(event.number);
  clocks_[lane_of(stream, false)].join(found == events_.end() ? host_ : found->second.clock);
}

void EmulatedDevice::stamp(Stream stream, int number) {
  enter();
  if (number < 0) fail_running("a stamp has the number " + std::to_string(number));
  issue({stream, describe("stamp", stream), {}, [this, number](const Call&, Clock&) {
           stamps_[number] = std::chrono::steady_clock::now();
         }});
}

double EmulatedDevice::seconds_between(int from, int to) {
  enter_outside_capture("seconds_between()");
  for (const int number : {from, to}) {
    if (!stamps_.contains(number)) fail_running("stamp " + std::to_string(number) + " was never kept");
  }
  return std::chrono::duration<double>(stamps_[to] - stamps_[from]).count();
}

void EmulatedDevice::begin_range(const std::string& name) {
  calls_.ranges.add(name);
  ++calls_.open_ranges;
  enter();
  ++ranges_;
}

void EmulatedDevice::end_range() {
  --calls_.open_ranges;
  enter();
  if (--ranges_ < 0) fail_running("a range ends on device " + std::to_string(number_) + " that did not begin");
}

void EmulatedDevice::abort(const std::string& reason) noexcept {
  module_.rendezvous.abort(number_, reason);
  const std::lock_guard lock(between_mutex_);
  for (const auto& each : between_) each->abort(number_, reason);
}

}  // namespace pmaptrain::emulation
