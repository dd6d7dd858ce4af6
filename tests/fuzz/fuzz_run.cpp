// Grouping metadata is never trusted: small problems with any numbers in it, in heap buffers that
// end exactly where octet.h says operands end. Both backends give the same bytes, touch nothing
// outside, and leave the gaps between rows alone.
#include <vector>

#include "fuzz_input.h"

namespace {

using namespace octet_fuzz;

int64_t bytes_of(octet_type type) {
  return type == OCTET_E4M3                       ? 1
         : type == OCTET_F32 || type == OCTET_I32 ? 4
         : type == OCTET_I64                      ? 8
                                                  : 2;
}
int64_t round_up(int64_t x, int64_t y) { return (x + y - 1) / y * y; }
bool empty(const octet_matrix& x, int64_t groups) {
  return x.rows == 0 || x.cols == 0 || groups == 0;
}

// One call: the problem, the arguments, and the memory they lead to.
class Call {
 public:
  explicit Call(Input& input) : input_(input), problem_(take_problem(input)) {
    take_sizes();
    take_operands();
    take_metadata();
  }

  octet_gemm_args& args() { return args_; }
  const octet_gemm_problem& problem() const { return problem_; }
  int64_t d_groups() const { return d_groups_; }
  // D before the call.
  const Buffer& result() const { return *d_; }

 private:
  // Small ones mostly, whose runs are quick (the normative arithmetic takes nearly all of a run);
  // each also goes beyond what one tile, K-block or group block holds, now and then.
  void take_sizes() {
    problem_.m = input_.between(0, 9);
    problem_.n = input_.one_in(64) ? input_.between(120, 140) : input_.between(0, 9);
    problem_.k = input_.one_in(32) ? input_.between(250, 390) : input_.between(0, 140);
    if (input_.one_in(8)) problem_.k = 0;
    if (problem_.grouping != OCTET_DENSE) problem_.groups = input_.between(0, 4);
    if (problem_.grouping == OCTET_MASKED) {
      problem_.max_m = input_.between(0, 9);
      if (problem_.max_m == 0) problem_.m = 0;
    }
    rows_ = problem_.m;
    k_ = problem_.k;
    switch (problem_.grouping) {
      case OCTET_MASKED: rows_ = problem_.max_m; break;
      case OCTET_CONTIGUOUS: rows_ = input_.between(0, input_.one_in(16) ? 140 : 20); break;
      case OCTET_OFFSETS:
      case OCTET_ALIGNED: rows_ = input_.between(0, 20); break;
      case OCTET_K_GROUPED:
        k_ = input_.between(0, 400);
        if (problem_.packed) k_ = k_ / 128 * 128;
        break;
      default: break;
    }
    // One long side at a time.
    constexpr int64_t kMostProducts = 6144;
    if (rows_ * problem_.n * k_ > kMostProducts && problem_.n < 100) problem_.n %= 4;
    if (rows_ * problem_.n * k_ > kMostProducts && problem_.grouping != OCTET_K_GROUPED) {
      k_ = problem_.k = k_ % (kMostProducts / (rows_ * problem_.n) + 1);
    }
    const bool own = problem_.grouping == OCTET_BATCHED || problem_.grouping == OCTET_MASKED;
    a_groups_ = own ? problem_.groups : 1;
    b_groups_ = problem_.grouping == OCTET_K_GROUPED ? 1 : problem_.groups;
    d_groups_ = problem_.grouping == OCTET_K_GROUPED ? problem_.groups : a_groups_;
  }

  Buffer& buffer(int64_t size) {
    buffers_.push_back(std::make_unique<Buffer>(size));
    return *buffers_.back();
  }

  // What is never followed may be anything.
  octet_matrix matrix(octet_type type, int64_t rows, int64_t cols, int64_t groups, int64_t unit,
                      Buffer** memory) {
    octet_matrix x{};
    x.rows = rows;
    x.cols = cols;
    x.ld = round_up(cols, unit) + unit * input_.between(0, 2);
    x.group_stride = round_up(rows * x.ld + input_.between(0, 20), unit);
    if (empty(x, groups)) {
      if (input_.one_in(2)) return {nullptr, rows, cols, input_.wild(), input_.wild()};
      *memory = &buffer(0);
    } else {
      *memory =
          &buffer(((groups - 1) * x.group_stride + (rows - 1) * x.ld + cols) * bytes_of(type));
    }
    x.data = (*memory)->data();
    (*memory)->scatter(input_);
    if (rows == 1 && groups == 1 && input_.one_in(4)) x.ld = int64_t{1} << 31;
    if (groups == 1 && input_.one_in(4)) x.group_stride = input_.wild();
    return x;
  }

  octet_scale_matrix scales(octet_scale_layout layout, int64_t rows, int64_t groups) {
    const int64_t blocks = (k_ + 127) / 128;
    octet_scale_matrix x{};
    if (rows == 0 || blocks == 0 || groups == 0) {
      return {nullptr, input_.wild(), input_.wild(), input_.wild()};
    }
    const int64_t gap = input_.between(0, 3);
    x.row_stride = layout == OCTET_ROW_MAJOR ? blocks + gap : 1;
    x.k_stride = layout == OCTET_ROW_MAJOR      ? 1
                 : layout == OCTET_COLUMN_MAJOR ? round_up(rows, 4) + 4 * gap
                                                : rows + gap;
    x.group_stride = round_up(rows * blocks + 8 * rows + 8 * blocks, 4) * 2;
    const int64_t last =
        (rows - 1) * x.row_stride + (blocks - 1) * x.k_stride + (groups - 1) * x.group_stride;
    Buffer& memory = buffer((last + 1) * 4);
    auto* const values = reinterpret_cast<float*>(memory.data());
    if (input_.one_in(3)) {
      memory.scatter(input_);
    } else {
      for (int64_t i = 0; i <= last; ++i) values[i] = 0.25f * static_cast<float>(1 + i % 7);
    }
    x.data = values;
    return x;
  }

  void take_operands() {
    octet_gemm_args_init(&args_);
    Buffer* memory = nullptr;
    const octet_type in = problem_.in_type;
    if (problem_.packed) {
      args_.a = {buffer(rows_ * k_ * bytes_of(in)).data(), rows_, k_, input_.wild(), input_.wild()};
      buffers_.back()->scatter(input_);
      args_.b = {buffer(problem_.n * k_ * bytes_of(in)).data(), problem_.n, k_, input_.wild(), 0};
      buffers_.back()->scatter(input_);
    } else {
      const int64_t unit = 16 / bytes_of(in);
      args_.a = matrix(in, rows_, k_, a_groups_, unit, &memory);
      args_.b = matrix(in, problem_.n, k_, b_groups_, unit, &memory);
    }
    args_.c = matrix(problem_.d_type, rows_, problem_.n, d_groups_, 1, &memory);
    d_ = nullptr;
    args_.d = matrix(problem_.d_type, rows_, problem_.n, d_groups_, 1, &d_);
    if (d_ == nullptr) d_ = &buffer(0);
    if (problem_.granularity != OCTET_SCALE_NONE) {
      const int64_t lines =
          problem_.granularity == OCTET_1D2D ? (problem_.n + 127) / 128 : problem_.n;
      args_.sfa = scales(problem_.sfa_layout, rows_, a_groups_);
      args_.sfb = scales(problem_.sfb_layout, lines, b_groups_);
    } else {
      args_.sfa = {nullptr, input_.wild(), input_.wild(), input_.wild()};
    }
    take_bias();
  }

  void take_bias() {
    args_.bias_group_stride = input_.one_in(2) ? 0 : problem_.n + input_.between(0, 9);
    if (problem_.bias_type == OCTET_NONE || problem_.n == 0 || problem_.groups == 0) {
      args_.bias_group_stride = input_.wild();
      return;
    }
    const int64_t last = (problem_.groups - 1) * args_.bias_group_stride + problem_.n;
    Buffer& memory = buffer(last * bytes_of(problem_.bias_type));
    memory.scatter(input_);
    args_.bias = memory.data();
  }

  // Mostly numbers that could be meant, else any.
  const void* numbers(octet_type type, int64_t count, int64_t limit) {
    Buffer& memory = buffer(count * bytes_of(type));
    for (int64_t i = 0; i < count; ++i) {
      int64_t value = 0;
      switch (input_.between(0, 4)) {
        case 0: value = input_.wild(); break;
        case 1: value = limit * i / count; break;
        case 2: value = limit + input_.between(0, 2) - 1; break;
        case 3: value = input_.between(0, 3) * 128; break;
        default: value = input_.between(0, limit < 200 ? limit : 200) - 1; break;
      }
      if (type == OCTET_I64) {
        std::memcpy(memory.data() + 8 * i, &value, 8);
      } else {
        const auto narrow = static_cast<int32_t>(static_cast<uint64_t>(value) & 0xffffffffu);
        std::memcpy(memory.data() + 4 * i, &narrow, 4);
      }
    }
    return memory.data();
  }

  // Rows of one index: blocks of `alignment`, with breaks here and there.
  const void* indices() {
    Buffer& memory = buffer(rows_ * 4);
    int32_t index = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      if (row % 64 == 0 || input_.one_in(24)) {
        index = input_.one_in(8) ? input_.take<int32_t>()
                                 : static_cast<int32_t>(input_.between(-1, problem_.groups));
      }
      std::memcpy(memory.data() + 4 * row, &index, 4);
    }
    return memory.data();
  }

  void take_metadata() {
    const int64_t groups = problem_.groups;
    switch (problem_.grouping) {
      case OCTET_CONTIGUOUS: args_.group_index = indices(); break;
      case OCTET_OFFSETS:
        args_.group_offsets = numbers(problem_.index_type, groups + 1, rows_);
        break;
      case OCTET_ALIGNED: args_.group_ends = numbers(OCTET_I32, groups, rows_); break;
      case OCTET_MASKED: args_.group_counts = numbers(OCTET_I32, groups, rows_); break;
      case OCTET_K_GROUPED:
        args_.group_counts = numbers(problem_.index_type, groups, k_);
        if (!problem_.packed) args_.group_offsets = numbers(problem_.index_type, groups, k_);
        break;
      default: break;
    }
  }

  Input& input_;
  octet_gemm_problem problem_;
  octet_gemm_args args_{};
  int64_t rows_ = 0, k_ = 0, a_groups_ = 1, b_groups_ = 1, d_groups_ = 1;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  Buffer* d_ = nullptr;
};

// Bytes of D that belong to no element are as they were.
void promise_gaps(const Call& call, const octet_matrix& d, const Buffer& after) {
  if (empty(d, call.d_groups())) {
    return promise(after == call.result(), "an empty result is not written");
  }
  const int64_t element = bytes_of(call.problem().d_type);
  std::vector<bool> owned(after.size());
  for (int64_t g = 0; g < call.d_groups(); ++g) {
    for (int64_t row = 0; row < d.rows; ++row) {
      const int64_t group = call.d_groups() > 1 ? g * d.group_stride : 0;
      const int64_t first = (group + (row > 0 ? row * d.ld : 0)) * element;
      for (int64_t i = 0; i < d.cols * element; ++i) owned[static_cast<size_t>(first + i)] = true;
    }
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    promise(owned[i] || after.data()[i] == call.result().data()[i], "gaps in D are left alone");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Input input(data, size);
  octet_cpu_options options;
  octet_cpu_options_init(&options);
  // Starting threads takes longer than all else.
  options.threads = static_cast<int32_t>(input.one_in(16) ? input.between(2, 4) : 1);
  options.isa = static_cast<octet_isa>(input.between(0, 3));
  if (!octet_isa_available(options.isa)) options.isa = OCTET_ISA_AUTO;
  const bool in_place = input.one_in(3);

  Call call(input);
  bool made = false;
  const octet_gemm_plan plan = take_plan(call.problem(), made);
  promise(made, "the processor computes every problem that keeps the rules");
  octet_gemm_args args = call.args();
  if (in_place) args.c = args.d;

  Buffer by_ref(call.result()), by_cpu(call.result());
  const bool written = args.d.data != nullptr;
  if (written) args.d.data = by_ref.data();
  if (written && in_place) args.c.data = args.d.data;
  // Whatever validation says: it may not read outside either.
  if (octet_validate(&plan, &args) != OCTET_OK) promise_sentence();
  const octet_code code = octet_ref_run(&plan, &args);
  if (written) args.d.data = by_cpu.data();
  if (written && in_place) args.c.data = args.d.data;
  octet_cpu_report report{};
  promise(octet_cpu_run(&plan, &args, &options, &report) == code, "both run, or neither");
  promise(code == OCTET_OK, "the call keeps every rule");
  promise(by_ref == by_cpu, "both backends give the same bytes");
  promise_gaps(call, args.d, by_ref);
  return 0;
}
