// Adds rows by index in a time that is linear in the updates. The numbers of a device's updates are sorted by row,
// eight bits of the row at a time, lowest first. The sort is stable, so a row's updates are added in their order, and
// there are no atomics: the thread of a digit finds its updates by itself.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

inline constexpr i64 sort_digits = gpu_threads;  // one for each thread of a block

__device__ inline u32 digit_of(u32 row, i64 shift) { return row >> shift & (sort_digits - 1); }

// Updates in the order of their numbers. An index outside of the table counts as `rows`.
extern "C" __global__ void sort_begin_u32(u32* row, u32* update, const void* indices, i64 wide_indices, i64 count,
                                          i64 rows, i64 updates, i64 index_stride) {
  for_each_index(count, [&](i64 i) {
    const i64 index = index_at(indices, wide_indices, i / updates * index_stride + i % updates);
    row[i] = static_cast<u32>(index >= 0 && index < rows ? index : rows);
    update[i] = static_cast<u32>(i % updates);
  });
}

// Some neighbouring updates of a device, which a block of threads has: a tile.
struct SortTile {
  i64 device, tile, first, size;

  __device__ SortTile(i64 unit, i64 tiles, i64 updates) : device(unit / tiles), tile(unit % tiles) {
    const i64 left = updates - tile * sort_tile;
    first = device * updates + tile * sort_tile;
    size = left < sort_tile ? left : sort_tile;
  }
  // Where the number of updates with a digit is kept: all tiles of a digit are neighbours.
  __device__ i64 place(i64 tiles) const { return (device * sort_digits + threadIdx.x) * tiles + tile; }
};

extern "C" __global__ void sort_count_u32(u32* counts, const u32* row, i64 count, i64 tiles, i64 updates, i64 shift) {
  SHARED(u32, tile_rows, sort_tile);
  for_each_block(count, [&](i64 unit) {
    const SortTile tile(unit, tiles, updates);
    for (i64 i = threadIdx.x; i < tile.size; i += gpu_threads) tile_rows[i] = row[tile.first + i];
    __syncthreads();
    u32 found = 0;
    for (i64 i = 0; i < tile.size; ++i) found += digit_of(tile_rows[i], shift) == threadIdx.x ? 1U : 0U;
    counts[tile.place(tiles)] = found;
    __syncthreads();
  });
}

// Replaces the counts of each device by the number of updates before those that were counted: of lower digits, and of
// the same digit in earlier tiles. One block for each device.
extern "C" __global__ void sort_places_u32(u32* counts, i64 count, i64 tiles) {
  SHARED(u32, totals, sort_digits);
  for_each_block(count, [&](i64 device) {
    u32* const mine = counts + (device * sort_digits + threadIdx.x) * tiles;
    u32 total = 0;
    for (i64 tile = 0; tile < tiles; ++tile) total += mine[tile];
    totals[threadIdx.x] = total;
    __syncthreads();
    u32 before = 0;
    for (u32 digit = 0; digit < threadIdx.x; ++digit) before += totals[digit];
    for (i64 tile = 0; tile < tiles; ++tile) {
      const u32 here = mine[tile];
      mine[tile] = before;
      before += here;
    }
    __syncthreads();
  });
}

extern "C" __global__ void sort_move_u32(u32* row_to, u32* update_to, const u32* counts, const u32* row,
                                         const u32* update, i64 count, i64 tiles, i64 updates, i64 shift) {
  SHARED(u32, tile_rows, sort_tile);
  SHARED(u32, tile_updates, sort_tile);
  for_each_block(count, [&](i64 unit) {
    const SortTile tile(unit, tiles, updates);
    for (i64 i = threadIdx.x; i < tile.size; i += gpu_threads) {
      tile_rows[i] = row[tile.first + i];
      tile_updates[i] = update[tile.first + i];
    }
    __syncthreads();
    i64 to = tile.device * updates + counts[tile.place(tiles)];
    for (i64 i = 0; i < tile.size; ++i) {
      if (digit_of(tile_rows[i], shift) != threadIdx.x) continue;
      row_to[to] = tile_rows[i];
      update_to[to++] = tile_updates[i];
    }
    __syncthreads();
  });
}

// A block of threads for gpu_threads elements of each row that occurs; other rows of `out` stay as they are.
template <class T>
__device__ void add_sorted_updates(T* out, const T* x, const u32* row, const u32* update, i64 count, i64 rows,
                                   i64 width, i64 updates, i64 update_stride) {
  using C = Computed<T>;
  const i64 parts = (width + gpu_threads - 1) / gpu_threads;
  for_each_block(count, [&](i64 unit) {
    const i64 column = unit % parts * gpu_threads + threadIdx.x, place = unit / parts;
    const i64 device = place / updates, end = (device + 1) * updates;
    const u32 mine = row[place];
    const bool is_first = place == device * updates || row[place - 1] != mine;
    if (!is_first || mine >= rows || column >= width) return;
    C sum{};
    for (i64 i = place; i < end && row[i] == mine; ++i) {
      sum = wrapping_add(sum, static_cast<C>(x[device * update_stride + update[i] * width + column]));
    }
    out[(device * rows + mine) * width + column] = static_cast<T>(sum);
  });
}

#define PMAPTRAIN_KERNEL(name, T)                                                                                   \
  extern "C" __global__ void name##_##T(T* out, const T* x, const u32* row, const u32* update, i64 count, i64 rows, \
                                        i64 width, i64 updates, i64 update_stride) {                                \
    add_sorted_updates(out, x, row, update, count, rows, width, updates, update_stride);                            \
  }
PMAPTRAIN_NUMBERS(PMAPTRAIN_KERNEL, scatter_add_sorted)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
