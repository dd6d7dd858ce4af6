// Launches of every kernel as the library really makes them, without a driver: cuda::make_launch()
// with a stand-in that writes down the boxes it is asked to encode. For the tests of kernel_abi.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/math.h"
#include "core/problem.h"
#include "cuda/launch_params.h"
#include "kernel_abi/kernel_table.h"
#include "plan/candidates.h"
#include "plan/device_presets.h"

namespace oct::kernel_launches {

// One kernel of the table with one split that it has.
struct Variant {
  const char* kernel;
  abi::TileConfig tile;
  int split;
  std::string name() const { return std::string(kernel) + " split " + std::to_string(split); }
};

// Those of dense problems, or those of grouped ones. A sequential kernel takes any split; some
// stand for all.
inline std::vector<Variant> variants(bool grouped = false) {
  std::vector<Variant> out;
  for (const abi::KernelRow& row : abi::kKernels) {
    const abi::TileConfig tile = abi::parse_kernel(row.name);
    if (tile.grouped != grouped) continue;
    if (tile.sequential) {
      for (const int split : {1, 2, 5, 64}) out.push_back({row.name, tile, split});
      continue;
    }
    const int most = tile.splits_over_cluster() ? plan::kLargestCluster : 1;
    for (int over = 1; over <= most; ++over) out.push_back({row.name, tile, over * tile.k_groups});
  }
  return out;
}

inline const octet_device_spec& h200() {
  static const octet_device_spec device = [] {
    octet_device_spec d;
    if (Status s = plan::device_preset("h200", d); !s.ok()) throw std::runtime_error(s.message());
    return d;
  }();
  return device;
}

inline std::vector<Variant> all_variants() {
  std::vector<Variant> out = variants();
  for (const Variant& v : variants(true)) out.push_back(v);
  return out;
}

inline octet_gemm_problem problem(int64_t m, int64_t n, int64_t k, int64_t batches = 1) {
  octet_gemm_problem p = core::default_problem();
  p.m = m;
  p.n = n;
  p.k = k;
  p.groups = batches;
  if (batches != 1) p.grouping = OCTET_BATCHED;
  return p;
}

// What a grouped kernel's scheduler gets.
inline abi::GroupOrder group_order(const Variant& v, const octet_gemm_problem& p,
                                   const octet_gemm_args& args) {
  return cuda::make_group_order(v.tile, p, args, plan::make_geometry(v.tile, p, v.split, 132).band);
}

// The stand-in's tensor map: element type, then the box.
inline cuda::Result write_down(abi::TensorMap* map, cuda::TensorType type, uint32_t, void*,
                               const uint64_t*, const uint64_t*, const uint32_t* box,
                               const uint32_t*, int, cuda::Swizzle swizzle, cuda::Promotion, int) {
  map->words[0] = static_cast<uint64_t>(type);
  for (int i = 0; i < 3; ++i) map->words[1 + i] = box[i];
  map->words[4] = static_cast<uint64_t>(swizzle);
  return 0;
}
inline int64_t box_bytes(const abi::TensorMap& map) {
  const auto type = static_cast<cuda::TensorType>(map.words[0]);
  const int64_t element = type == cuda::TensorType::kUint8     ? 1
                          : type == cuda::TensorType::kFloat32 ? 4
                                                               : 2;
  return element * static_cast<int64_t>(map.words[1] * map.words[2] * map.words[3]);
}

// `p` as the kernel takes it: grouped kernels as one group that starts at a multiple of 128, so
// that scales of A come in boxes; with scales on both sides, of the same layout, where it has them.
inline octet_gemm_problem as_served(const Variant& v, octet_gemm_problem p) {
  if (v.tile.grouped) p.grouping = OCTET_ALIGNED;
  if (v.tile.paired) {
    p.granularity = OCTET_1D1D;
    p.sfb_layout = p.sfa_layout;
  }
  if (v.tile.k_grouped) {
    p.grouping = OCTET_K_GROUPED;
    p.packed = v.tile.packed;
  }
  return p;
}

// The launch on an H200 by a plan that allows `ctas` CTAs (0: what the planner would give it).
// Throws when the kernel does not serve the problem.
inline cuda::Launch launch(const Variant& v, const octet_gemm_problem& p, int64_t ctas = 0) {
  if (Status s = plan::serves(v.tile, p, h200(), v.split); !s.ok()) {
    throw std::runtime_error(v.name() + ", " + core::to_string(p) + ": " + s.message());
  }
  cuda::Driver driver{};
  driver.encode_tiled = write_down;
  octet_gemm_plan plan{};
  plan.problem = p;
  plan.split = v.split;
  std::snprintf(plan.kernel, sizeof plan.kernel, "%s", v.kernel);
  if (ctas == 0) ctas = plan::most_ctas(v.tile, p, h200(), v.split);
  plan.sms = static_cast<int32_t>(ctas);
  // Addresses that nobody reads.
  const auto address = [](uint64_t i) { return reinterpret_cast<void*>(i << 56); };
  const int64_t pitch = core::round_up(p.k, 16), blocks = core::ceil_div(p.k, 128);
  const auto group = [pitch](int64_t rows) { return std::min(rows * pitch, int64_t{1} << 36); };
  octet_gemm_args args{};
  args.a = {address(1), p.m, p.k, pitch, group(p.m)};
  args.b = {address(2), p.n, p.k, pitch, group(p.n)};
  args.d = {address(3), p.m, p.n, core::round_up(p.n, 8), p.m * core::round_up(p.n, 8)};
  args.c = args.d;
  const int64_t column = core::round_up(p.m, 4);
  const bool rows = p.sfa_layout == OCTET_ROW_MAJOR;
  args.sfa = {static_cast<const float*>(address(4)), rows ? blocks : 1, rows ? 1 : column,
              column * blocks};
  args.sfb = {static_cast<const float*>(address(5)), blocks, 1, core::ceil_div(p.n, 128) * blocks};
  if (p.granularity == OCTET_1D1D) {
    const int64_t wide = core::round_up(p.n, 4);
    const bool by_rows = p.sfb_layout == OCTET_ROW_MAJOR;
    args.sfb.row_stride = by_rows ? blocks : 1;
    args.sfb.k_stride = by_rows ? 1 : wide;
    args.sfb.group_stride = wide * blocks;
  }
  cuda::Launch out;
  if (Status s = cuda::make_launch(driver, plan, args, out); !s.ok()) {
    throw std::runtime_error(v.name() + ": " + s.message());
  }
  return out;
}

}  // namespace oct::kernel_launches
