// See views.h. Every value read from grouping metadata is clamped here before it becomes an
// address.
#include "core/views.h"

#include "core/float_types.h"
#include "core/groups.h"
#include "core/math.h"
#include "core/types.h"

namespace oct::core {
namespace {

const void* at(const void* data, octet_type type, int64_t elements) {
  return static_cast<const char*>(data) + elements * size_of(type);
}
void* at(void* data, octet_type type, int64_t elements) {
  return static_cast<char*>(data) + elements * size_of(type);
}
ScaleView at(const octet_scale_matrix& scales, int64_t row, int64_t block, int64_t group) {
  if (scales.data == nullptr) return {};
  return {scales.data + row * scales.row_stride + block * scales.k_stride +
              group * scales.group_stride,
          scales.row_stride, scales.k_stride};
}

class Expander {
 public:
  Expander(const octet_gemm_plan& plan, const octet_gemm_args& args)
      : p_(plan.problem), args_(args) {
    base_.n = p_.n;
    base_.k = p_.k;
    base_.in_type = p_.in_type;
    base_.d_type = p_.d_type;
    base_.bias_type = p_.bias_type;
    base_.sfb_rows = p_.granularity == OCTET_1D2D ? 128 : 1;
    base_.a_ld = args.a.ld;
    base_.b_ld = args.b.ld;
    base_.c_ld = args.c.ld;
    base_.d_ld = args.d.ld;
    base_.split = plan.split;
  }

  Work run() {
    switch (p_.grouping) {
      case OCTET_DENSE:
      case OCTET_BATCHED:
        for (int64_t g = 0; g < p_.groups; ++g) add_rows(g, 0, p_.m, true);
        break;
      case OCTET_MASKED:
        for (int64_t g = 0; g < p_.groups; ++g) add_rows(g, 0, masked_rows(p_, args_, g), true);
        break;
      case OCTET_OFFSETS:
      case OCTET_ALIGNED:
        for (int64_t g = 0, before = 0; g < p_.groups; ++g) {
          const Range rows = group_rows(p_, args_, g, before);
          before = rows.last;
          add_rows(g, rows.first, rows.last, false);
        }
        break;
      case OCTET_CONTIGUOUS: contiguous(); break;
      case OCTET_K_GROUPED: k_grouped(); break;
      default: break;
    }
    return std::move(work_);
  }

 private:
  // Rows [first, last) belong to group g. `own` says that each group has its own A and D.
  void add_rows(int64_t g, int64_t first, int64_t last, bool own) {
    if (last <= first || p_.n == 0) return;
    DenseView v = base_;
    const int64_t ga = own ? g : 0;
    v.m = last - first;
    if (p_.k > 0) {  // otherwise they may be null and their strides anything
      v.a = at(args_.a.data, p_.in_type, ga * args_.a.group_stride + first * args_.a.ld);
      v.b = at(args_.b.data, p_.in_type, g * args_.b.group_stride);
      v.sfa = at(args_.sfa, first, 0, ga);
      v.sfb = at(args_.sfb, 0, 0, g);
    }
    v.d = at(args_.d.data, p_.d_type, ga * args_.d.group_stride + first * args_.d.ld);
    if (p_.accumulate) {
      v.c = at(args_.c.data, p_.d_type, ga * args_.c.group_stride + first * args_.c.ld);
    }
    if (p_.bias_type != OCTET_NONE) {
      v.bias = at(args_.bias, p_.bias_type, g * args_.bias_group_stride);
    }
    work_.gemms.push_back(v);
  }

  void add_zeros(int64_t first, int64_t last) {
    if (last <= first || p_.n == 0 || !p_.zero_padding) return;
    work_.zeros.push_back({at(args_.d.data, p_.d_type, first * args_.d.ld), last - first, p_.n,
                           args_.d.ld, p_.d_type});
  }

  void contiguous() {
    const int64_t rows = args_.a.rows;
    int64_t first = 0;  // rows [first, row) share an owner
    int64_t owner = -1;
    const auto flush = [&](int64_t row) {
      if (owner >= 0) {
        add_rows(owner, first, row, false);
      } else {
        add_zeros(first, row);
      }
      first = row;
    };
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t now = contiguous_owner(p_, args_, row);
      if (now != owner) {
        flush(row);
        owner = now;
      }
    }
    flush(rows);
  }

  void k_grouped() {
    if (p_.m == 0 || p_.n == 0) return;
    int64_t packed_start = 0;
    for (int64_t g = 0; g < p_.groups; ++g) {
      const Range range = group_k(p_, args_, g, packed_start);
      const int64_t start = range.first;
      DenseView v = base_;
      v.m = p_.m;
      v.k = range.last - range.first;
      if (p_.packed) {
        v.a_ld = v.b_ld = v.k;
        v.a = at(args_.a.data, p_.in_type, p_.m * start);
        v.b = at(args_.b.data, p_.in_type, p_.n * start);
        packed_start = range.last;
      } else {
        v.a = at(args_.a.data, p_.in_type, start);
        v.b = at(args_.b.data, p_.in_type, start);
      }
      v.sfa = at(args_.sfa, 0, start / kBlockK, 0);
      v.sfb = at(args_.sfb, 0, start / kBlockK, 0);
      v.d = at(args_.d.data, p_.d_type, g * args_.d.group_stride);
      if (p_.accumulate) v.c = at(args_.c.data, p_.d_type, g * args_.c.group_stride);
      work_.gemms.push_back(v);
    }
  }

  const octet_gemm_problem& p_;
  const octet_gemm_args& args_;
  DenseView base_;
  Work work_;
};

}  // namespace

Work expand(const octet_gemm_plan& plan, const octet_gemm_args& args) {
  return Expander(plan, args).run();
}

}  // namespace oct::core
