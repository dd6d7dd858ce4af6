// What grouping metadata means: core::expand() against the plainest reading of it
// (support/ownership), for every grouping; bad metadata, which must never lead outside the declared
// extents; and validate(), which must name it. Buffers are of exact size, so the address sanitizer
// sees every byte too far.
#include "core/check.h"

#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/extents.h"
#include "core/float_types.h"
#include "core/math.h"
#include "core/problem.h"
#include "core/types.h"
#include "core/views.h"
#include "ref/gemm.h"
#include "support/compare.h"
#include "support/host_case.h"
#include "support/ownership.h"
#include "support/problems.h"

namespace {

using namespace oct::testing_support;
using oct::core::DenseView;
using oct::core::size_of;
using oct::core::Work;

// Elements between `base` and `pointer`, which must be whole.
int64_t elements(const void* pointer, const void* base, octet_type type) {
  const int64_t bytes = static_cast<const char*>(pointer) - static_cast<const char*>(base);
  EXPECT_EQ(bytes % size_of(type), 0);
  return bytes / size_of(type);
}

struct Span {
  const char* what;
  const void* base;
  int64_t size;       // bytes of the declared extent
  const void* first;  // what a piece of work reads or writes
  int64_t bytes;
};

void expect_inside(const Span& s, const std::string& where) {
  if (s.bytes == 0) return;
  const auto* base = static_cast<const char*>(s.base);
  const auto* first = static_cast<const char*>(s.first);
  EXPECT_GE(first, base) << where << " " << s.what;
  EXPECT_LE(first + s.bytes, base + s.size) << where << " " << s.what;
}

int64_t span(int64_t rows, int64_t cols, int64_t ld, octet_type type) {
  return rows == 0 || cols == 0 ? 0 : ((rows - 1) * ld + cols) * size_of(type);
}
int64_t scale_span(const oct::core::ScaleView& x, int64_t rows, int64_t blocks) {
  return rows == 0 || blocks == 0 ? 0
                                  : 4 * ((rows - 1) * x.row_stride + (blocks - 1) * x.k_stride + 1);
}

// Every byte of every piece lies in the extents that the arguments declare.
void expect_inside_extents(const HostCase& c, const Work& work) {
  const octet_gemm_args args = c.args();
  const octet_gemm_problem& p = c.problem;
  const int64_t d_bytes = c.d.size() - 2 * c.d_guard;
  for (const DenseView& v : work.gemms) {
    const int64_t blocks = oct::core::ceil_div(v.k, 128);
    const int64_t b_lines = oct::core::ceil_div(v.n, v.sfb_rows);
    const bool scaled = p.granularity != OCTET_SCALE_NONE;
    const Span spans[] = {{"A", args.a.data, c.a.size(), v.a, span(v.m, v.k, v.a_ld, p.in_type)},
                          {"B", args.b.data, c.b.size(), v.b, span(v.n, v.k, v.b_ld, p.in_type)},
                          {"D", args.d.data, d_bytes, v.d, span(v.m, v.n, v.d_ld, p.d_type)},
                          {"C", args.c.data, c.options.c_is_d ? d_bytes : c.c.size(), v.c,
                           v.c == nullptr ? 0 : span(v.m, v.n, v.c_ld, p.d_type)},
                          {"SFA", args.sfa.data, c.sfa.size(), v.sfa.data,
                           scaled ? scale_span(v.sfa, v.m, blocks) : 0},
                          {"SFB", args.sfb.data, c.sfb.size(), v.sfb.data,
                           scaled ? scale_span(v.sfb, b_lines, blocks) : 0},
                          {"bias", args.bias, c.bias.size(), v.bias,
                           v.bias == nullptr ? 0 : v.n * size_of(p.bias_type)}};
    for (const Span& s : spans) expect_inside(s, c.name());
    EXPECT_GT(v.m, 0);
    EXPECT_GT(v.n, 0);
    EXPECT_GE(v.k, 0);
  }
  for (const auto& z : work.zeros) {
    expect_inside({"zeros", args.d.data, d_bytes, z.d, span(z.rows, z.n, z.d_ld, z.d_type)},
                  c.name());
  }
}

// Owner of every row as the pieces have it: their B says which group it is. -2: zeros; -1: nobody.
std::vector<int64_t> expanded_owners(const HostCase& c, const Work& work) {
  const octet_gemm_args args = c.args();
  const octet_gemm_problem& p = c.problem;
  const int64_t rows = args.d.rows;
  std::vector<int64_t> owners(static_cast<std::size_t>(d_buffers(p) * rows), -1);
  const auto mark = [&](const void* d, int64_t count, int64_t owner, bool once) {
    const int64_t at = elements(d, args.d.data, p.d_type);
    const int64_t buffer = args.d.group_stride > 0 ? at / args.d.group_stride : 0;
    const int64_t row = (at - buffer * args.d.group_stride) / args.d.ld;
    for (int64_t r = row; r < row + count; ++r) {
      auto& slot = owners[static_cast<std::size_t>(buffer * rows + r)];
      if (once) {
        EXPECT_EQ(slot, -1) << c.name() << " row " << r << " has two owners";
      }
      slot = owner;
    }
    return std::pair{buffer, row};
  };
  for (const DenseView& v : work.gemms) {
    int64_t owner = 0;
    if (p.grouping != OCTET_K_GROUPED && p.groups > 1) {
      owner = elements(v.b, args.b.data, p.in_type) / args.b.group_stride;
      EXPECT_EQ(owner * args.b.group_stride, elements(v.b, args.b.data, p.in_type));
    }
    const auto [buffer, row] = mark(v.d, v.m, owner, true);
    if (p.grouping == OCTET_K_GROUPED) continue;
    // The other operands stand at the same row.
    const int64_t a_buffer = a_buffers(p) > 1 ? buffer : 0;
    EXPECT_EQ(elements(v.a, args.a.data, p.in_type),
              a_buffer * args.a.group_stride + row * args.a.ld);
    if (p.granularity != OCTET_SCALE_NONE) {
      EXPECT_EQ(v.sfa.data - args.sfa.data,
                a_buffer * args.sfa.group_stride + row * args.sfa.row_stride);
      EXPECT_EQ(v.sfb.data - args.sfb.data, owner * args.sfb.group_stride);
    }
    if (p.accumulate) {
      EXPECT_EQ(elements(v.c, args.c.data, p.d_type),
                buffer * args.c.group_stride + row * args.c.ld);
    }
    if (p.bias_type != OCTET_NONE) {
      EXPECT_EQ(elements(v.bias, args.bias, p.bias_type), owner * args.bias_group_stride);
    }
  }
  for (const auto& z : work.zeros) mark(z.d, z.rows, -2, true);
  return owners;
}

HostCase draw_case(Random& random, int i, int64_t work) {
  const octet_gemm_problem p = draw_problem(random, static_cast<Regime>(i % kRegimes), work);
  CaseOptions options;
  options.sizes = static_cast<SizeMode>(random.between(0, 3));
  options.data = DataClass::kSparse;
  options.c_is_d = random.chance(0.3);
  return HostCase(p, options);
}

// Pieces with nothing to compute (no K) hold no addresses worth comparing.
bool comparable(const HostCase& c) { return c.problem.n > 0 && c.shape.a.cols > 0; }

TEST(Expand, EveryRowHasItsOwner) {
  Random random(11);
  int seen[OCTET_K_GROUPED + 1] = {};
  for (int i = 0; i < 6000; ++i) {
    const HostCase c = draw_case(random, i, 20000);
    const octet_gemm_plan plan = cpu_plan(c.problem);
    const octet_gemm_args args = c.args();
    const auto checked = oct::core::check_args(plan, args);
    ASSERT_EQ(checked.message(), "") << c.name();
    ASSERT_EQ(oct::core::validate(plan, args).message(), "") << c.name();
    const Work work = oct::core::expand(plan, args);
    expect_inside_extents(c, work);
    if (!comparable(c) || c.problem.grouping == OCTET_K_GROUPED) continue;
    ++seen[c.problem.grouping];
    std::vector<int64_t> want = row_owners(c.problem, args);
    const bool zeros = c.problem.grouping == OCTET_CONTIGUOUS && c.problem.zero_padding;
    for (int64_t& owner : want) {
      if (owner == -1 && zeros) owner = -2;
    }
    ASSERT_EQ(expanded_owners(c, work), want) << c.name();
  }
  for (int kind = OCTET_DENSE; kind < OCTET_K_GROUPED; ++kind) EXPECT_GT(seen[kind], 300) << kind;
}

TEST(Expand, EveryPieceOfKIsThere) {
  Random random(12);
  int seen = 0;
  for (int i = 0; i < 6000; ++i) {
    const HostCase c = draw_case(random, i, 20000);
    const octet_gemm_problem& p = c.problem;
    if (p.grouping != OCTET_K_GROUPED || p.n == 0 || p.m == 0) continue;
    ++seen;
    const octet_gemm_args args = c.args();
    const Work work = oct::core::expand(cpu_plan(p), args);
    const std::vector<Piece> pieces = k_pieces(p, args);
    ASSERT_EQ(work.gemms.size(), pieces.size());
    for (std::size_t g = 0; g < pieces.size(); ++g) {
      const DenseView& v = work.gemms[g];
      ASSERT_EQ(v.k, pieces[g].length);
      EXPECT_EQ(v.m, p.m);
      EXPECT_EQ(elements(v.d, args.d.data, p.d_type),
                static_cast<int64_t>(g) * args.d.group_stride);
      if (v.k == 0) continue;
      const int64_t start = pieces[g].start;
      EXPECT_EQ(elements(v.a, args.a.data, p.in_type), p.packed ? p.m * start : start);
      EXPECT_EQ(elements(v.b, args.b.data, p.in_type), p.packed ? p.n * start : start);
      EXPECT_EQ(v.a_ld, p.packed ? v.k : args.a.ld);
      EXPECT_EQ(v.b_ld, p.packed ? v.k : args.b.ld);
      if (p.granularity == OCTET_SCALE_NONE) continue;
      EXPECT_EQ(v.sfa.data - args.sfa.data, start / 128 * args.sfa.k_stride);
      EXPECT_EQ(v.sfb.data - args.sfb.data, start / 128 * args.sfb.k_stride);
    }
  }
  EXPECT_GT(seen, 400);
}

int64_t bad_value(Random& random, octet_type type, int64_t groups, int64_t rows) {
  const int64_t low = type == OCTET_I64 ? INT64_MIN : INT_MIN;
  const int64_t high = type == OCTET_I64 ? INT64_MAX : INT_MAX;
  switch (random.between(0, 6)) {
    case 0: return random.pick({low, low + 1, high, high - 1});
    case 1: return random.between(-3, 3);
    case 2: return random.between(groups - 2, groups + 2);
    case 3: return random.between(rows - 130, rows + 130);
    case 4: return random.pick<int64_t>({int64_t{1} << 30, -(int64_t{1} << 30), 0x7fffff80});
    default: return random.between(0, rows + 1);
  }
}

// Overwrites `changes` values of one of the arrays that the problem reads.
void spoil(HostCase& c, Random& random, int64_t changes) {
  const bool k_grouped = c.problem.grouping == OCTET_K_GROUPED;
  struct Array {
    Buffer& buffer;
    octet_type type;
  } arrays[] = {{c.group_index, OCTET_I32},
                {c.group_offsets, c.problem.index_type},
                {c.group_ends, OCTET_I32},
                {c.group_counts, k_grouped ? c.problem.index_type : OCTET_I32}};
  for (Array& array : arrays) {
    const int64_t count = array.buffer.size() / size_of(array.type);
    for (int64_t j = 0; j < changes && count > 0; ++j) {
      const int64_t i = random.between(0, count - 1);
      const int64_t extent = k_grouped ? c.shape.a.cols : c.shape.a.rows;
      const int64_t value = bad_value(random, array.type, c.problem.groups, extent);
      if (array.type == OCTET_I64) {
        array.buffer.as<int64_t>()[i] = value;
      } else {
        array.buffer.as<int32_t>()[i] = static_cast<int32_t>(value);
      }
    }
  }
}

// Bad metadata: clamped, inside the extents, guards untouched, and what remains owned by the plain
// reading is what is computed.
TEST(BadMetadata, NeverLeadsOutside) {
  Random random(13);
  int spoiled = 0, named = 0;
  for (int i = 0; i < 6000; ++i) {
    HostCase c = draw_case(random, i, 4000);
    spoil(c, random, random.between(1, 4));
    const octet_gemm_plan plan = cpu_plan(c.problem);
    const octet_gemm_args args = c.args();
    ASSERT_EQ(oct::core::check_args(plan, args).message(), "") << c.name();
    const Work work = oct::core::expand(plan, args);
    expect_inside_extents(c, work);
    if (!oct::core::validate(plan, args).ok()) ++named;
    if (comparable(c) && c.problem.grouping != OCTET_K_GROUPED) {
      std::vector<int64_t> want = row_owners(c.problem, args);
      const bool zeros = c.problem.grouping == OCTET_CONTIGUOUS && c.problem.zero_padding;
      for (int64_t& owner : want) {
        if (owner == -1 && zeros) owner = -2;
      }
      ASSERT_EQ(expanded_owners(c, work), want) << c.name();  // and no row has two
    }
    const HostCase before = c;
    oct::ref::run(work);
    ASSERT_EQ(check_untouched(before, c), "");
    ++spoiled;
  }
  EXPECT_GT(named, spoiled / 4);
}

// validate() is silent exactly when the plain reading finds nothing to clamp.
TEST(BadMetadata, ValidateNamesEveryValueThatIsClamped) {
  Random random(14);
  int bad = 0, good = 0;
  for (int i = 0; i < 8000; ++i) {
    HostCase c = draw_case(random, i, 4000);
    spoil(c, random, 1);
    const octet_gemm_problem& p = c.problem;
    const octet_gemm_args args = c.args();
    bool clamped = false;
    const auto i32 = [](const Buffer& b, int64_t at) { return int64_t{b.as<int32_t>()[at]}; };
    const auto idx = [&](const Buffer& b, int64_t at) {
      return p.index_type == OCTET_I64 ? b.as<int64_t>()[at] : i32(b, at);
    };
    int64_t before = 0;
    for (int64_t g = 0; g < p.groups && p.grouping == OCTET_MASKED; ++g) {
      clamped |= i32(c.group_counts, g) < 0 || i32(c.group_counts, g) > p.max_m;
    }
    for (int64_t g = 0; g <= p.groups && p.groups > 0 && p.grouping == OCTET_OFFSETS; ++g) {
      const int64_t now = idx(c.group_offsets, g);
      clamped |= now < before || now > args.a.rows;
      before = now;
    }
    for (int64_t g = 0; g < p.groups && p.grouping == OCTET_ALIGNED && !clamped; ++g) {
      const int64_t end = i32(c.group_ends, g);
      clamped |= end < before || end > args.a.rows;
      // A group starts nowhere beyond the rows there are.
      if (!clamped) {
        before = std::min((end + p.alignment - 1) / p.alignment * p.alignment, args.a.rows);
      }
    }
    for (int64_t g = 0; g < p.groups && p.grouping == OCTET_K_GROUPED && !clamped; ++g) {
      const int64_t start = p.packed ? before : idx(c.group_offsets, g);
      const int64_t count = idx(c.group_counts, g);
      clamped |= start < before || start % 128 != 0 || start > args.a.cols || count < 0 ||
                 count > args.a.cols - start || (p.packed && count % 128 != 0);
      if (!clamped) before = start + count;
    }
    if (p.grouping == OCTET_CONTIGUOUS) {
      for (int64_t r = 0; r < args.a.rows; ++r) {
        const int64_t own = i32(c.group_index, r), first = i32(c.group_index, r - r % p.alignment);
        const bool after_padding = r % p.alignment > 0 && i32(c.group_index, r - 1) == -1;
        clamped |= own < -1 || own >= p.groups || (own != -1 && (own != first || after_padding));
      }
    }
    // A value moved into bounds may give rows to a group that hold NaN scales: those are named too.
    const oct::Status status = oct::core::validate(cpu_plan(p), args);
    const bool scales = status.message().find("must be finite") != std::string::npos;
    if (!scales) {
      EXPECT_EQ(status.ok(), !clamped) << c.name() << ": " << status.message();
    } else {
      EXPECT_FALSE(clamped) << c.name() << ": " << status.message();
    }
    (clamped ? bad : good) += 1;
  }
  EXPECT_GT(bad, 1000);
  EXPECT_GT(good, 1000);
}

// Rows need not be padded behind the last group: an empty one after it starts where they end.
TEST(BadMetadata, AnEmptyLastGroupOfUnpaddedRowsIsRight) {
  octet_gemm_problem p;
  ASSERT_TRUE(oct::core::parse_problem("aligned_g2m5n64k128_f32", p).ok());
  HostCase c(p);
  octet_gemm_args args = c.args();
  args.a.rows = args.d.rows = 5;
  const auto validated = [&](int32_t first, int32_t second) {
    const int32_t ends[] = {first, second};
    args.group_ends = ends;
    return oct::core::validate(cpu_plan(p), args).message();
  };
  EXPECT_EQ(validated(5, 5), "");
  EXPECT_NE(validated(5, 4), "");
  EXPECT_NE(validated(5, 6), "");
}

// An empty operand may be null and its strides anything: nothing of it is followed.
TEST(Expand, EmptyOperandsMayBeNull) {
  for (const char* text : {"offsets_g4m8n16k0_f32", "batched_g4m8n16k0_f32_1d1d",
                           "contiguous_g4m8n16k0_f32", "masked_g4m8n16k0_f32"}) {
    octet_gemm_problem p;
    ASSERT_TRUE(oct::core::parse_problem(text, p).ok());
    HostCase c(p);
    octet_gemm_args args = c.args();
    EXPECT_EQ(args.a.data, nullptr);
    for (octet_matrix* x : {&args.a, &args.b}) x->ld = x->group_stride = INT64_MAX / 2;
    for (octet_scale_matrix* x : {&args.sfa, &args.sfb}) {
      x->row_stride = x->k_stride = x->group_stride = INT64_MAX / 2;
    }
    const octet_gemm_plan plan = cpu_plan(p);
    ASSERT_EQ(oct::core::check_args(plan, args).message(), "");
    const HostCase before = c;
    oct::ref::run(oct::core::expand(plan, args));
    EXPECT_EQ(check_untouched(before, c), "");
    const std::vector<int64_t> owners = row_owners(p, args);
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] < 0) continue;
      const auto g = static_cast<int64_t>(i) / args.d.rows,
                 r = static_cast<int64_t>(i) % args.d.rows;
      const float* row = static_cast<float*>(args.d.data) + g * args.d.group_stride + r * args.d.ld;
      for (int64_t n = 0; n < p.n; ++n) EXPECT_EQ(row[n], 0.0f) << text;
    }
  }
}

// Sizes and strides at the ends of their ranges: refused or accepted, never overflowed.
TEST(Check, HugeStridesNeverOverflow) {
  const int64_t sizes[] = {1, 16, INT_MAX - 15, INT_MAX};
  const int64_t strides[] = {0, 16, INT_MAX, int64_t{1} << 31, int64_t{1} << 40, INT64_MAX};
  int accepted = 0;
  for (const int64_t m : sizes) {
    for (const int64_t groups : sizes) {
      for (const int64_t stride : strides) {
        octet_gemm_problem p = oct::core::default_problem();
        p.grouping = OCTET_BATCHED;
        p.groups = groups;
        p.m = p.n = p.k = m;
        p.bias_type = OCTET_F32;
        p.d_type = OCTET_F32;
        const octet_gemm_plan plan = cpu_plan(p);
        octet_gemm_args args{};
        args.struct_size = sizeof args;
        const auto fake = [](uintptr_t at) { return reinterpret_cast<void*>(at << 40); };
        args.a = {fake(1), m, m, (m + 15) / 16 * 16, stride};
        args.b = {fake(2), m, m, (m + 15) / 16 * 16, stride};
        args.d = {fake(3), m, m, m, stride};
        args.sfa = {static_cast<const float*>(fake(4)), 1, (m + 3) / 4 * 4, stride};
        args.sfb = {static_cast<const float*>(fake(5)), (m + 127) / 128, 1, stride};
        args.bias = fake(6);
        args.bias_group_stride = INT_MAX;
        if (oct::core::check_args(plan, args).ok()) ++accepted;
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
