// See launch_params.h.
#include "cuda/launch_params.h"

#include <algorithm>

#include "core/float_types.h"
#include "core/math.h"
#include "core/refusals.h"
#include "kernel_abi/smem_layout.h"
#include "plan/candidates.h"

namespace oct::cuda {
namespace {

using core::ceil_div;

constexpr int64_t kMostUnits = (int64_t{1} << 31) - 1;
constexpr int64_t kLargestMapStride = int64_t{1} << 40;  // bytes; the copy engine's limit

// Bytes of weights up to which the next kernel may start beside this one. Its CTAs take what places
// are free, so that some SMs hold one of each and others none of the new ones; a kernel that lasts
// long loses more by that than the two microseconds it could gain (18432x7168, M = 16: 48.2 us
// against 34.3, 2026-11-30).
constexpr int64_t kMostEarlyWeights = int64_t{96} << 20;

struct Tensor {
  TensorType type;
  int64_t element_bytes;
  const void* data;
  int64_t dims[3];     // elements, innermost first
  int64_t strides[2];  // elements
  uint32_t box[2];
  Swizzle swizzle;
  Promotion promotion;
};

// A dimension of one element may have any stride; the copy engine still wants a multiple of 16
// bytes.
bool encodable(const Tensor& t) {
  if (reinterpret_cast<uintptr_t>(t.data) % 16 != 0) return false;
  for (int i = 0; i < 2; ++i) {
    const int64_t bytes = t.strides[i] * t.element_bytes;
    if (t.dims[i + 1] > 1 && (bytes % 16 != 0 || bytes <= 0 || bytes >= kLargestMapStride))
      return false;
  }
  return true;
}

Status encode(const Driver& driver, const char* what, const Tensor& t, abi::TensorMap& map) {
  const uint64_t dims[3] = {static_cast<uint64_t>(t.dims[0]), static_cast<uint64_t>(t.dims[1]),
                            static_cast<uint64_t>(t.dims[2])};
  uint64_t strides[2];
  for (int i = 0; i < 2; ++i) {
    strides[i] = t.dims[i + 1] > 1 ? static_cast<uint64_t>(t.strides[i] * t.element_bytes) : 16;
  }
  const uint32_t box[3] = {t.box[0], t.box[1], 1}, ones[3] = {1, 1, 1};
  const Result r = driver.encode_tiled(&map, t.type, 3, const_cast<void*>(t.data), dims, strides,
                                       box, ones, 0, t.swizzle, t.promotion, 0);
  return r == 0 ? Status{} : driver.fail(what, r);
}

abi::ElementType element_type(octet_type type) {
  switch (type) {
    case OCTET_BF16: return abi::ElementType::kBf16;
    case OCTET_F16: return abi::ElementType::kF16;
    case OCTET_F32: return abi::ElementType::kF32;
    default: return abi::ElementType::kNone;
  }
}

// A and B: [k, rows, batch]. A batch stride of 0 (one matrix for all) has no dimension of its own.
// What L2 fetches from DRAM at a time: pairs of lines, where rows are whole lines. Else the second
// one is mostly another row's: with single lines problems with such pitches take 0 to 7 % less.
Tensor operand(const octet_matrix& x, int64_t batches, int tile_rows) {
  const bool batched = batches > 1 && x.group_stride != 0;
  return {TensorType::kUint8,
          1,
          x.data,
          {x.cols, x.rows, batched ? batches : 1},
          {x.ld, x.group_stride},
          {abi::kBlockK, static_cast<uint32_t>(tile_rows)},
          Swizzle::k128,
          x.ld % 128 != 0 ? Promotion::k128 : Promotion::k256};
}

// Of packed groups: how wide a group's matrix is, and where it begins, only the device knows, and
// fills in (device/packed_map.cuh).
Tensor packed_operand(const void* data, int64_t rows, int tile_rows) {
  octet_matrix x{};
  x.data = const_cast<void*>(data);
  x.rows = rows;
  x.cols = x.ld = core::kBlockK;
  return operand(x, 1, tile_rows);
}

bool aligned(const octet_matrix& d, int64_t batches, int64_t bytes, int64_t element) {
  return reinterpret_cast<uintptr_t>(d.data) % static_cast<uintptr_t>(bytes) == 0 &&
         (d.rows <= 1 || d.ld * element % bytes == 0) &&
         (batches <= 1 || d.group_stride * element % bytes == 0);
}

abi::StorePath store_path(const abi::TileConfig& tile, const octet_gemm_problem& p,
                          const octet_gemm_args& args, int64_t batches, bool exchanges,
                          const Tensor& box) {
  const octet_matrix& d = args.d;
  const int64_t element = core::size_of(p.d_type);
  if (p.bias_type != OCTET_NONE) return abi::StorePath::kElements;
  if (tile.paired) {
    const auto by = [&](int64_t count) {
      return p.n % count == 0 && aligned(d, batches, count * element, element) &&
             (!p.accumulate || aligned(args.c, batches, count * element, element));
    };
    return by(4) && !exchanges ? abi::StorePath::kQuads
           : by(2)             ? abi::StorePath::kPairs
                               : abi::StorePath::kElements;
  }
  if (p.accumulate) return abi::StorePath::kElements;
  const bool half = element == 2;
  // NOTE: the copy engine cuts rows of a box at 16 bytes, not at the last element: with an N that
  // is no multiple of 8 it would write up to 7 elements into the padding of D.
  // And kernels of two pieces store boxes under their WGMMA, which K = 0 has none of.
  const bool whole = p.n % 8 == 0 && p.k > 0;
  if (half && whole && tile.normal() && !exchanges && encodable(box))
    return abi::StorePath::kCopyEngine;
  if (half && p.n % 8 == 0 && exchanges == tile.normal() && aligned(d, batches, 16, element))
    return abi::StorePath::kRows;
  const bool pairs = p.n % 2 == 0 && aligned(d, batches, 2 * element, element);
  return pairs && (half || tile.normal()) ? abi::StorePath::kPairs : abi::StorePath::kElements;
}

}  // namespace

abi::GroupOrder make_group_order(const abi::TileConfig& tile, const octet_gemm_problem& p,
                                 const octet_gemm_args& args, int64_t band) {
  abi::GroupOrder o;
  o.groups = static_cast<int32_t>(p.groups);
  o.entities = o.groups;
  o.rows = static_cast<int32_t>(args.a.rows);
  switch (p.grouping) {
    case OCTET_OFFSETS:
      o.kind = p.index_type == OCTET_I64 ? abi::GroupKind::kOffsets64 : abi::GroupKind::kOffsets32;
      o.metadata = args.group_offsets;
      break;
    case OCTET_ALIGNED:
      o.kind = abi::GroupKind::kEnds;
      o.metadata = args.group_ends;
      break;
    case OCTET_MASKED:
      o.kind = abi::GroupKind::kCounts;
      o.metadata = args.group_counts;
      break;
    default:
      o.kind = abi::GroupKind::kIndex;
      o.metadata = args.group_index;
      o.entities = static_cast<int32_t>(ceil_div(args.a.rows, p.alignment));
      o.zeros = p.zero_padding;
      break;
  }
  const int64_t across = ceil_div(p.n, int64_t{tile.tile_n} * tile.cluster_n);
  o.alignment = abi::make_divisor(static_cast<uint32_t>(p.alignment));
  o.band = static_cast<int32_t>(band);
  o.across = abi::make_divisor(static_cast<uint32_t>(across));
  o.band_units = abi::make_divisor(static_cast<uint32_t>(std::min(across * band, kMostUnits)));
  return o;
}

abi::KGroups make_k_groups(const octet_gemm_problem& p, const octet_gemm_args& args) {
  abi::KGroups k;
  k.starts = p.packed ? nullptr : args.group_offsets;
  k.counts = args.group_counts;
  k.groups = static_cast<int32_t>(p.groups);
  k.total = static_cast<int32_t>(args.a.cols);
  k.wide = p.index_type == OCTET_I64;
  k.a = static_cast<const uint8_t*>(args.a.data);
  k.b = static_cast<const uint8_t*>(args.b.data);
  return k;
}

Status make_launch(const Driver& driver, const octet_gemm_plan& plan, const octet_gemm_args& args,
                   Launch& out) {
  const octet_gemm_problem& p = plan.problem;
  const abi::TileConfig tile = abi::parse_kernel(plan.kernel);
  const plan::Geometry geometry = plan::make_geometry(tile, p, plan.split, plan.sms);
  out = Launch{};
  // Rows of A and D, and how many of each operand there are: grouped problems share one A and D but
  // for the masked ones.
  const int64_t rows = tile.grouped ? args.a.rows : p.m;
  const bool shared_rows = tile.grouped && p.grouping != OCTET_MASKED;
  const int64_t batches = shared_rows ? 1 : p.groups;
  // A K-grouped problem has one A and one B, and a D for every group.
  const int64_t a_batches = tile.k_grouped ? 1 : batches, b_batches = tile.k_grouped ? 1 : p.groups;
  int64_t units = geometry.units;
  if (tile.grouped) {
    if (Status s = plan::takes_rows(tile, p, rows); !s.ok()) return s;
    units = plan::most_grouped_tiles(tile, p, rows);
  }
  if (units == 0) return {};

  // Without groups all rows of a contiguous problem are padding.
  const int64_t blocks =
      p.groups == 0 ? 0 : ceil_div(tile.k_grouped ? args.a.cols : p.k, core::kBlockK);
  const abi::SmemLayout smem = abi::make_smem_layout(tile, geometry.cluster_split);
  const bool exchanges = geometry.cluster_split > 1 || tile.k_groups > 1;
  abi::KernelParams& k = out.params;

  k.m = static_cast<int32_t>(rows);
  k.n = static_cast<int32_t>(p.n);
  k.k_blocks = static_cast<int32_t>(blocks);
  k.split = plan.split;
  k.cut = abi::make_range_cut(static_cast<uint32_t>(blocks), static_cast<uint32_t>(plan.split));
  k.cluster_split = geometry.cluster_split;
  k.share = abi::unit_share(tile, geometry.cluster_split);
  k.stages = smem.stages / tile.k_groups;
  k.exchange = smem.exchange;
  k.scales = smem.scales;
  k.barriers = smem.barriers;
  if (tile.k_grouped) k.k_groups = make_k_groups(p, args);
  if (tile.grouped) {
    k.groups = make_group_order(tile, p, args, geometry.band);
  } else {
    k.order = abi::make_tile_order(static_cast<uint32_t>(geometry.units_m),
                                   static_cast<uint32_t>(geometry.units_n),
                                   static_cast<uint32_t>(batches),
                                   static_cast<uint32_t>(geometry.band), geometry.bands_along_n);
  }

  if (blocks > 0) {
    const Tensor a = tile.packed ? packed_operand(args.a.data, p.m, tile.tile_m)
                                 : operand(args.a, a_batches, abi::a_box_rows(tile));
    const Tensor b = tile.packed ? packed_operand(args.b.data, p.n, tile.tile_n)
                                 : operand(args.b, b_batches, tile.tile_n / tile.cluster_m);
    k.a_batch = a.dims[2] > 1;
    k.b_batch = b.dims[2] > 1;
    if (!encodable(a) || !encodable(b)) {
      return core::refuse(core::Rule::kCopyEngineStride, {});
    }
    if (Status s = encode(driver, "tensor map of A", a, k.a); !s.ok()) return s;
    if (Status s = encode(driver, "tensor map of B", b, k.b); !s.ok()) return s;

    const octet_scale_matrix& sfa = args.sfa;
    const bool sfa_batched = a_batches > 1 && sfa.group_stride != 0;
    const Tensor scales{TensorType::kFloat32,
                        4,
                        sfa.data,
                        {rows, blocks, sfa_batched ? a_batches : 1},
                        {sfa.k_stride, sfa.group_stride},
                        {static_cast<uint32_t>(tile.tile_m), static_cast<uint32_t>(tile.blocks)},
                        Swizzle::kNone,
                        Promotion::kNone};
    k.sfa_batch = sfa_batched;
    // NOTE: a box whose first column is no multiple of 16 bytes is an illegal instruction, and the
    // groups of such a problem begin at any row.
    const bool any_start =
        p.grouping == OCTET_OFFSETS || (p.grouping == OCTET_ALIGNED && p.alignment % 4 != 0);
    if ((rows > 1 && sfa.row_stride != 1) || any_start || !encodable(scales)) {
      k.flags |= abi::kPlainSfa;
      k.sfa_plain = {sfa.data, sfa.row_stride, sfa.k_stride, a_batches > 1 ? sfa.group_stride : 0};
    } else if (Status s = encode(driver, "tensor map of SFA", scales, k.sfa); !s.ok()) {
      return s;
    }
    const octet_scale_matrix& sfb = args.sfb;
    k.sfb = {sfb.data, sfb.row_stride, sfb.k_stride, b_batches > 1 ? sfb.group_stride : 0};
    if (tile.paired) {
      const bool sfb_batched = b_batches > 1 && sfb.group_stride != 0;
      const Tensor box{TensorType::kFloat32,
                       4,
                       sfb.data,
                       {p.n, blocks, sfb_batched ? b_batches : 1},
                       {sfb.k_stride, sfb.group_stride},
                       {static_cast<uint32_t>(tile.tile_n), 1},
                       Swizzle::kNone,
                       Promotion::kNone};
      k.sfb_batch = sfb_batched;
      if ((p.n > 1 && sfb.row_stride != 1) || !encodable(box)) {
        k.flags |= abi::kPlainSfb;
      } else if (Status s = encode(driver, "tensor map of SFB", box, k.sfb_box); !s.ok()) {
        return s;
      }
    }
  }

  const bool half = core::size_of(p.d_type) == 2;
  const auto box_columns = static_cast<uint32_t>(abi::d_box_columns(tile));
  const Tensor d{p.d_type == OCTET_F16 ? TensorType::kFloat16 : TensorType::kBfloat16,
                 2,
                 args.d.data,
                 {p.n, rows, batches},
                 {args.d.ld, args.d.group_stride},
                 {box_columns, 16},
                 !abi::swizzles_d(tile) ? Swizzle::kNone
                 : box_columns == 64    ? Swizzle::k128
                                        : Swizzle::k64,
                 Promotion::kNone};
  k.b_rows = {static_cast<const uint8_t*>(args.b.data), args.b.ld};
  k.d_type = element_type(p.d_type);
  k.bias_type = element_type(p.bias_type);
  k.store = store_path(tile, p, args, batches, exchanges, d);
  if (tile.paired && k.store == abi::StorePath::kQuads && p.accumulate && p.d_type == OCTET_F32 &&
      abi::c_stages(tile) > 0) {
    const Tensor c{TensorType::kFloat32,
                   4,
                   args.c.data,
                   {p.n, rows, batches},
                   {args.c.ld, args.c.group_stride},
                   {static_cast<uint32_t>(abi::c_columns(tile)), 64},
                   Swizzle::kNone,
                   Promotion::kNone};
    if (encodable(c)) {
      if (Status s = encode(driver, "tensor map of C", c, k.d); !s.ok()) return s;
      k.flags |= abi::kRingC;
      k.c_batch = batches > 1;
    }
  }
  if (half && k.store == abi::StorePath::kCopyEngine) {
    if (Status s = encode(driver, "tensor map of D", d, k.d); !s.ok()) return s;
  }
  k.out = {args.d.data, args.d.ld, batches > 1 ? args.d.group_stride : 0};
  if (p.accumulate) k.add = {args.c.data, args.c.ld, batches > 1 ? args.c.group_stride : 0};
  k.bias = args.bias;
  k.bias_batch_stride = p.groups > 1 ? args.bias_group_stride : 0;
  if (p.dependent_launch) k.flags |= abi::kDependent;
  if (p.dependent_launch && p.n * p.k * p.groups <= kMostEarlyWeights) k.flags |= abi::kEarly;
  if (p.dependent_launch && p.weights_ready) k.flags |= abi::kWeightsReady;

  // The number of a grouped problem's tiles only the device knows.
  out.grid = static_cast<uint32_t>(
      tile.grouped ? geometry.cluster * std::clamp<int64_t>(plan.sms / geometry.cluster, 1, units)
                   : geometry.grid);
  out.threads = static_cast<uint32_t>(tile.threads());
  out.cluster = static_cast<uint32_t>(geometry.cluster);
  out.shared_bytes = static_cast<uint32_t>(smem.total);
  out.dependent = p.dependent_launch != 0;
  return {};
}

}  // namespace oct::cuda
