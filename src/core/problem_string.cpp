// The problem string: the name of a case in tests, logs, CSVs and messages.
//
//   problem  = kind "_" [ "g" number ] "m" number "n" number "k" number { "_" option }
//   kind     = dense | batched | contiguous | offsets | aligned | masked | kgrouped
//   g        = groups (batch); left out when dense, required otherwise
//   m        = rows; average rows per group when grouped over M       k = columns; average K per
//   group
//
// Options print in the order of kOptions below and are read in any order, each at most once; what
// is left out has the default of octet_gemm_problem_init(). docs/problem-string.md tells it to
// users.
#include <charconv>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "core/problem.h"
#include "core/refusals.h"
#include "core/types.h"

namespace oct::core {
namespace {

using Problem = octet_gemm_problem;

struct Option {
  const char* name;   // as it stands in the string, without a number
  const char* group;  // options of one group exclude each other
  bool number;
  bool (*is_set)(const Problem&);
  int64_t (*get)(const Problem&);
  void (*set)(Problem&, int64_t);
};

int64_t no_number(const Problem&) { return 0; }

constexpr octet_scale_granularity default_granularity(octet_grouping grouping, octet_type in_type) {
  if (in_type == OCTET_BF16) return OCTET_SCALE_NONE;
  return grouping == OCTET_K_GROUPED ? OCTET_1D1D : OCTET_1D2D;
}

const Option kOptions[] = {
    {"1d1d", "1d1d", false,
     [](const Problem& p) { return p.granularity == OCTET_1D1D && p.grouping != OCTET_K_GROUPED; },
     no_number, [](Problem& p, int64_t) { p.granularity = OCTET_1D1D; }},
    {"bf16in", "in", false, [](const Problem& p) { return p.in_type == OCTET_BF16; }, no_number,
     [](Problem& p, int64_t) { p.in_type = OCTET_BF16; }},
    {"f32", "out", false, [](const Problem& p) { return p.d_type == OCTET_F32; }, no_number,
     [](Problem& p, int64_t) { p.d_type = OCTET_F32; }},
    {"f16", "out", false, [](const Problem& p) { return p.d_type == OCTET_F16; }, no_number,
     [](Problem& p, int64_t) { p.d_type = OCTET_F16; }},
    {"acc", "acc", false, [](const Problem& p) { return p.accumulate == 1; }, no_number,
     [](Problem& p, int64_t) { p.accumulate = 1; }},
    {"bias", "bias", false, [](const Problem& p) { return p.bias_type == OCTET_F32; }, no_number,
     [](Problem& p, int64_t) { p.bias_type = OCTET_F32; }},
    {"biasbf16", "bias", false, [](const Problem& p) { return p.bias_type == OCTET_BF16; },
     no_number, [](Problem& p, int64_t) { p.bias_type = OCTET_BF16; }},
    {"biasf16", "bias", false, [](const Problem& p) { return p.bias_type == OCTET_F16; }, no_number,
     [](Problem& p, int64_t) { p.bias_type = OCTET_F16; }},
    {"sfarow", "sfa", false, [](const Problem& p) { return p.sfa_layout == OCTET_ROW_MAJOR; },
     no_number, [](Problem& p, int64_t) { p.sfa_layout = OCTET_ROW_MAJOR; }},
    {"sfaodd", "sfa", false,
     [](const Problem& p) { return p.sfa_layout == OCTET_COLUMN_MAJOR_ODD; }, no_number,
     [](Problem& p, int64_t) { p.sfa_layout = OCTET_COLUMN_MAJOR_ODD; }},
    {"sfbrow", "sfb", false,
     [](const Problem& p) {
       return p.sfb_layout == OCTET_ROW_MAJOR && p.sfb_layout != default_sfb_layout(p.granularity);
     },
     no_number, [](Problem& p, int64_t) { p.sfb_layout = OCTET_ROW_MAJOR; }},
    {"sfbcol", "sfb", false,
     [](const Problem& p) {
       return p.sfb_layout == OCTET_COLUMN_MAJOR &&
              p.sfb_layout != default_sfb_layout(p.granularity);
     },
     no_number, [](Problem& p, int64_t) { p.sfb_layout = OCTET_COLUMN_MAJOR; }},
    {"sfbodd", "sfb", false,
     [](const Problem& p) { return p.sfb_layout == OCTET_COLUMN_MAJOR_ODD; }, no_number,
     [](Problem& p, int64_t) { p.sfb_layout = OCTET_COLUMN_MAJOR_ODD; }},
    {"align", "align", true, [](const Problem& p) { return p.alignment != 128; },
     [](const Problem& p) { return p.alignment; },
     [](Problem& p, int64_t value) { p.alignment = value; }},
    {"maxm", "maxm", true,
     [](const Problem& p) {
       return p.grouping == OCTET_MASKED ? p.max_m != default_max_m(p.m) : p.max_m != 0;
     },
     [](const Problem& p) { return p.max_m; }, [](Problem& p, int64_t value) { p.max_m = value; }},
    {"i64", "i64", false, [](const Problem& p) { return p.index_type == OCTET_I64; }, no_number,
     [](Problem& p, int64_t) { p.index_type = OCTET_I64; }},
    {"packed", "packed", false, [](const Problem& p) { return p.packed == 1; }, no_number,
     [](Problem& p, int64_t) { p.packed = 1; }},
    {"keeppad", "keeppad", false, [](const Problem& p) { return p.zero_padding == 0; }, no_number,
     [](Problem& p, int64_t) { p.zero_padding = 0; }},
    {"split", "split", true, [](const Problem& p) { return p.split != 0; },
     [](const Problem& p) { return int64_t{p.split}; },
     [](Problem& p, int64_t value) { p.split = static_cast<int32_t>(value); }},
    {"inv", "inv", false, [](const Problem& p) { return p.batch_invariant == 1; }, no_number,
     [](Problem& p, int64_t) { p.batch_invariant = 1; }},
    {"sms", "sms", true, [](const Problem& p) { return p.sm_budget != 0; },
     [](const Problem& p) { return int64_t{p.sm_budget}; },
     [](Problem& p, int64_t value) { p.sm_budget = static_cast<int32_t>(value); }},
    {"pdl", "pdl", false, [](const Problem& p) { return p.dependent_launch == 1; }, no_number,
     [](Problem& p, int64_t) { p.dependent_launch = 1; }},
    {"wready", "wready", false, [](const Problem& p) { return p.weights_ready == 1; }, no_number,
     [](Problem& p, int64_t) { p.weights_ready = 1; }},
    {"even", "even", false, [](const Problem& p) { return p.even == 1; }, no_number,
     [](Problem& p, int64_t) { p.even = 1; }},
    {"seed", "seed", true, [](const Problem& p) { return p.seed != 0; },
     [](const Problem& p) { return int64_t{p.seed}; },
     [](Problem& p, int64_t value) { p.seed = static_cast<uint32_t>(value); }},
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Status parse(Problem& problem) {
    Problem p = default_problem();
    if (Status s = parse_kind(p); !s.ok()) return s;
    if (Status s = parse_sizes(p); !s.ok()) return s;
    if (Status s = parse_options(p); !s.ok()) return s;
    problem = p;
    return {};
  }

 private:
  Status fail(std::string want) const {
    return refuse(Rule::kProblemString, {{"text", std::string(text_.substr(0, 200))},
                                         {"got", text(static_cast<int64_t>(at_))},
                                         {"want", std::move(want)}});
  }

  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // At most 10 digits and at most 4294967295, so that every field can hold it.
  Status number(const char* what, int64_t limit, int64_t& value) {
    const char* first = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    uint64_t got = 0;
    const auto [end, error] = std::from_chars(first, last, got);
    if (error != std::errc{} || end == first) {
      return fail(fmt::format("expected a number from 0 to {} for {}", limit, what));
    }
    if (got > static_cast<uint64_t>(limit)) {
      return fail(fmt::format("expected at most {} for {}", limit, what));
    }
    if (*first == '0' && end - first > 1) return fail("expected a number without leading zeros");
    at_ += static_cast<std::size_t>(end - first);
    value = static_cast<int64_t>(got);
    return {};
  }

  Status parse_kind(Problem& p) {
    for (octet_grouping kind = OCTET_DENSE; kind <= OCTET_K_GROUPED; ++kind) {
      if (take(std::string(grouping_name(kind)) + "_")) {
        p.grouping = kind;
        return {};
      }
    }
    return fail("expected dense_, batched_, contiguous_, offsets_, aligned_, masked_ or kgrouped_");
  }

  Status parse_sizes(Problem& p) {
    if (p.grouping != OCTET_DENSE) {
      if (!take("g")) return fail("expected g and the number of groups");
      if (Status s = number("g", kMaxSize, p.groups); !s.ok()) return s;
    }
    const struct {
      const char* letter;
      int64_t& field;
    } sizes[] = {{"m", p.m}, {"n", p.n}, {"k", p.k}};
    for (const auto& size : sizes) {
      if (!take(size.letter)) return fail(fmt::format("expected {} and a number", size.letter));
      if (Status s = number(size.letter, kMaxSize, size.field); !s.ok()) return s;
    }
    return {};
  }

  Status parse_options(Problem& p) {
    std::set<std::string_view> seen;
    while (at_ < text_.size()) {
      const std::size_t start = at_;
      if (!take("_")) return fail("expected _ and an option, or the end");
      const std::string_view word = text_.substr(at_, text_.find('_', at_) - at_);
      const Option* option = find(word);
      if (const Option* named = option == nullptr ? find_name(word) : nullptr) {
        at_ += std::string_view(named->name).size();
        return fail(fmt::format("expected a number after {}", named->name));
      }
      if (option == nullptr) {
        return fail(fmt::format("expected an option, one of {}", all_options()));
      }
      if (!seen.insert(option->group).second) {
        at_ = start + 1;
        return fail(fmt::format("option {} repeats or contradicts an earlier one", word));
      }
      at_ += std::string_view(option->name).size();
      int64_t value = 0;
      if (option->number) {
        const int64_t limit = std::string_view(option->name) == "seed" ? 4294967295 : kMaxSize;
        if (Status s = number(option->name, limit, value); !s.ok()) return s;
      }
      option->set(p, value);
    }
    // Defaults that depend on other fields.
    if (!seen.contains("1d1d")) p.granularity = default_granularity(p.grouping, p.in_type);
    if (!seen.contains("sfb")) p.sfb_layout = default_sfb_layout(p.granularity);
    if (!seen.contains("maxm") && p.grouping == OCTET_MASKED) p.max_m = default_max_m(p.m);
    return {};
  }

  static const Option* find(std::string_view word) {
    for (const Option& option : kOptions) {
      const std::string_view name = option.name;
      if (option.number) {
        if (word.size() > name.size() && word.starts_with(name) && word[name.size()] >= '0' &&
            word[name.size()] <= '9') {
          return &option;
        }
      } else if (word == name) {
        return &option;
      }
    }
    return nullptr;
  }

  // An option that takes a number, but got none.
  static const Option* find_name(std::string_view word) {
    for (const Option& option : kOptions) {
      if (option.number && word == option.name) return &option;
    }
    return nullptr;
  }

  static std::string all_options() {
    std::string list;
    for (const Option& option : kOptions) {
      list += fmt::format("{}{}{}", list.empty() ? "" : ", ", option.name,
                          option.number ? "<number>" : "");
    }
    return list;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_string(const octet_gemm_problem& p) {
  std::string out = std::string(grouping_name(p.grouping)) + "_";
  if (p.grouping != OCTET_DENSE) out += fmt::format("g{}", p.groups);
  out += fmt::format("m{}n{}k{}", p.m, p.n, p.k);
  for (const Option& option : kOptions) {
    if (!option.is_set(p)) continue;
    out += fmt::format("_{}", option.name);
    if (option.number) out += fmt::format("{}", option.get(p));
  }
  return out;
}

Status parse_problem(std::string_view text, octet_gemm_problem& problem) {
  return Reader(text).parse(problem);
}

}  // namespace oct::core
