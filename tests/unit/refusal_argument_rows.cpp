// Rows of arguments, of what is found in them, and of kernels; see refusal_rows.h.
#include "refusal_rows.h"

namespace octet_refusals {

std::vector<Row> argument_rows() {
  return {
      {Rule::kExtent, checked(kDense, [](Call& c) { c.args.b.rows = 255; }),
       "b.rows = 255: must be 256 (problem.n)"},
      {Rule::kExtent, checked("offsets_g2m64n256k512", [](Call& c) { c.args.d.rows = 255; }),
       "d.rows = 255: must be 256 (a.rows)"},
      {Rule::kExtent, checked("offsets_g2m64n256k512", [](Call& c) { c.args.a.rows = -1; }),
       "a.rows = -1: must be from 0 to 2147483647"},
      {Rule::kExtent,
       checked("batched_g2m8n256k512_bias", [](Call& c) { c.args.bias_group_stride = -1; }),
       "bias_group_stride = -1: must be from 0 to 2147483647"},
      {Rule::kLeadingDimension, checked(kDense, [](Call& c) { c.args.d.ld = 255; }),
       "d.ld = 255: must be at least d.cols = 256"},
      {Rule::kPitch, checked(kDense, [](Call& c) { c.args.a.ld = 1000; }),
       "a.ld = 1000: must be a multiple of 16 elements (16 bytes; rows of A are read by the copy "
       "engine)"},
      {Rule::kPitch, checked("dense_m64n256k512_bf16in", [](Call& c) { c.args.b.ld = 516; }),
       "b.ld = 516: must be a multiple of 8 elements (16 bytes; rows of B are read by the copy "
       "engine)"},
      {Rule::kGroupStride,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.d.group_stride = 2047; }),
       "d.group_stride = 2047: must be from 2048 to 1099511627776"},
      {Rule::kGroupStride,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.a.group_stride = 16; }),
       "a.group_stride = 16: must be 0 (one matrix for the whole batch) or from 4096 to "
       "1099511627776"},
      {Rule::kGroupStride,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.d.group_stride = 0; }),
       "d.group_stride = 0: must be from 2048 to 1099511627776"},
      {Rule::kGroupStride,
       checked("offsets_g2m8n256k512", [](Call& c) { c.args.b.group_stride = 0; }),
       "b.group_stride = 0: must be from 131072 to 1099511627776"},
      {Rule::kGroupStride,
       checked("offsets_g2m8n256k512", [](Call& c) { c.args.sfb.group_stride = 0; }),
       "sfb.group_stride = 0: must be the distance between groups (0 only where all strides are 0: "
       "one scale for everything)"},
      {Rule::kGroupStride,
       checked("masked_g2m8n256k512", [](Call& c) { c.args.sfa.group_stride = 0; }),
       "sfa.group_stride = 0: must be the distance between groups (0 only where all strides are 0: "
       "one scale for everything)"},
      {Rule::kGroupStridePitch,
       checked("batched_g2m8n256k512", [](Call& c) { c.args.b.group_stride = 131080; }),
       "b.group_stride = 131080: must be a multiple of 16 elements (16 bytes; B is read by the "
       "copy "
       "engine)"},
      {Rule::kTooLarge, checked(kDense, [](Call& c) { c.args.a.ld = kHuge; }),
       "a.ld = 35184372088832: must be at most 2147483648"},
      {Rule::kTooLarge,
       checked("batched_g2147483647m2147483647n256k512",
               [](Call& c) {
                 c.args.a = matrix(arena[kA], 2147483647, 512, 2147483648, kHuge >> 5);
               }),
       "bytes that a spans = more than 2^62: must be at most 4611686018427387904"},
      {Rule::kMissingPointer, checked(kDense, [](Call& c) { c.args.d.data = nullptr; }),
       "d.data is null: must point to D [64, 256]"},
      {Rule::kMissingPointer, checked(kDense, [](Call& c) { c.args.sfb.data = nullptr; }),
       "sfb.data is null: must point to float32 scales [2, 4]"},
      {Rule::kMissingPointer, checked("dense_m64n256k512_acc", [](Call& c) { c.args.c = {}; }),
       "c.data is null: must point to C [64, 256], as problem.accumulate is 1"},
      {Rule::kMissingPointer,
       checked("dense_m64n256k512_biasf16", [](Call& c) { c.args.bias = nullptr; }),
       "bias is null: must point to f16 bias [256]"},
      {Rule::kAlignedPointer, checked(kDense, [](Call& c) { c.args.a.data = arena[kA] + 8; }),
       "a.data = " + address(arena[kA] + 8) + ": must be aligned to 16 bytes"},
      {Rule::kAlignedPointer,
       checked("dense_m64n256k512_f32", [](Call& c) { c.args.d.data = arena[kD] + 2; }),
       "d.data = " + address(arena[kD] + 2) + ": must be aligned to 4 bytes"},
      {Rule::kAlignedPointer,
       checked("offsets_g2m64n256k512_i64",
               [](Call& c) { c.args.group_offsets = arena[kOffsets] + 4; }),
       "group_offsets = " + address(arena[kOffsets] + 4) + ": must be aligned to 8 bytes"},
      {Rule::kScaleStride, checked(kDense, [](Call& c) { c.args.sfa.k_stride = -64; }),
       "sfa.k_stride = -64: must be 0 or more"},
      {Rule::kScaleLayout,
       checked(kDense, [](Call& c) { c.args.sfa = row_major_scales(slot<float>(kSfa) + 16, 4); }),
       "sfa has row_stride 4, k_stride 1 and alignment 64: the problem says column-major "
       "(row_stride 1, k_stride and group_stride multiples of 4, data 16-byte aligned); change "
       "problem.sfa_layout or the scales"},
      {Rule::kScaleLayout,
       checked("dense_m64n256k512_sfarow",
               [](Call& c) { c.args.sfa = column_major_scales(slot<float>(kSfa) + 16, 64); }),
       "sfa has row_stride 1, k_stride 64 and alignment 64: the problem says row-major (k_stride "
       "1); change problem.sfa_layout or the scales"},
      {Rule::kScaleLayout,
       checked("dense_m64n256k512_sfbodd",
               [](Call& c) { c.args.sfb = row_major_scales(slot<float>(kSfb) + 1, 4); }),
       "sfb has row_stride 4, k_stride 1 and alignment 4: the problem says column-major with any "
       "pitch (row_stride 1); change problem.sfb_layout or the scales"},
      {Rule::kOverlap, checked(kDense, [](Call& c) { c.args.d.data = arena[kA] + 32; }),
       "d overlaps a: what is written must not share memory with what is read"},
      {Rule::kPartialC,
       checked("dense_m64n256k512_acc", [](Call& c) { c.args.c.data = arena[kD] + 16; }),
       "c overlaps d: c must be d itself (same data, ld and group_stride) or apart from it"},
      {Rule::kInterleaved,
       checked("dense_m9000000n1k16_f32",
               [](Call& c) {
                 c.args.a = matrix(arena[kA], 9000000, 16, 1600);
                 c.args.d = matrix(arena[kA] + 400, 9000000, 1, 200);
               }),
       "d and a interleave with different strides: keep them apart"},
      {Rule::kMissingMetadata,
       checked("contiguous_g2m64n256k512", [](Call& c) { c.args.group_index = nullptr; }),
       "group_index is null: contiguous problems read int32[a.rows]"},
      {Rule::kMissingMetadata,
       checked("offsets_g2m64n256k512", [](Call& c) { c.args.group_offsets = nullptr; }),
       "group_offsets is null: offsets problems read groups + 1 row offsets of index_type"},
      {Rule::kMissingMetadata,
       checked("aligned_g2m64n256k512", [](Call& c) { c.args.group_ends = nullptr; }),
       "group_ends is null: aligned problems read int32[groups]"},
      {Rule::kMissingMetadata,
       checked("masked_g2m64n256k512", [](Call& c) { c.args.group_counts = nullptr; }),
       "group_counts is null: masked problems read int32[groups]"},
      {Rule::kMissingMetadata,
       checked("kgrouped_g2m64n256k256", [](Call& c) { c.args.group_counts = nullptr; }),
       "group_counts is null: kgrouped problems read one number for each group"},
      {Rule::kPackedColumns,
       checked("kgrouped_g2m64n256k256_packed", [](Call& c) { c.args.a.cols = 500; }),
       "a.cols = 500: must be a multiple of 128 in packed K-grouped problems"},
      {Rule::kWorkspace, checked(kDense, [](Call& c) { c.plan.workspace_bytes = 1024; }),
       "workspace_bytes = 0: the plan needs 1024"},
      {Rule::kWorkspaceAlignment,
       checked(kDense,
               [](Call& c) {
                 c.plan.workspace_bytes = 1024;
                 c.args.workspace_bytes = 2048;
                 c.args.workspace = arena[kWork] + 64;
               }),
       "workspace = " + address(arena[kWork] + 64) + ": must be aligned to 256 bytes"},
      {Rule::kThreads,
       [] {
         const Call c = call(kDense);
         return cpu::run(c.plan, c.args, 1025);
       },
       "threads = 1025: must be from 0 (all) to 1024"},
      {Rule::kThreads, quantized([](auto& q) { q.threads = -1; }),
       "threads = -1: must be from 0 (all) to 1024"},
  };
}

std::vector<Row> found_rows() {
  return {
      {Rule::kBadIndex,
       validated("contiguous_g2m64n256k512", [](Call&) { slot<std::int32_t>(kIndex)[7] = 2; }),
       "group_index[7] = 2: must be -1 or from 0 to 1"},
      {Rule::kBadIndex,
       validated("contiguous_g0m64n256k512",
                 [](Call&) {
                   for (int i = 0; i < 256; ++i) slot<std::int32_t>(kIndex)[i] = i == 9 ? 5 : -1;
                 }),
       "group_index[9] = 5: must be -1 (there are no groups)"},
      {Rule::kMixedBlock,
       validated("contiguous_g2m64n256k512", [](Call&) { slot<std::int32_t>(kIndex)[130] = 1; }),
       "group_index[130] = 1: must be 0 or -1, as its block of 128 rows begins"},
      {Rule::kResumedBlock,
       validated("contiguous_g2m64n256k512", [](Call&) { slot<std::int32_t>(kIndex)[129] = -1; }),
       "group_index[130] = 0: must be -1, as the row before it in its block of 128 rows is"},
      {Rule::kBadOffset,
       validated("offsets_g2m64n256k512", [](Call&) { slot<std::int32_t>(kOffsets)[1] = 257; }),
       "group_offsets[1] = 257: must be from 0 to 256"},
      {Rule::kBadOffset,
       validated("aligned_g2m64n256k512", [](Call&) { slot<std::int32_t>(kEnds)[1] = -5; }),
       "group_ends[1] = -5: must be from 0 to 256"},
      {Rule::kDecreasing,
       validated("offsets_g2m64n256k512",
                 [](Call&) {
                   slot<std::int32_t>(kOffsets)[1] = 50;
                   slot<std::int32_t>(kOffsets)[2] = 49;
                 }),
       "group_offsets[2] = 49: must be at least 50, where the group starts"},
      {Rule::kBadCount,
       validated("masked_g2m64n256k512", [](Call&) { slot<std::int32_t>(kCounts)[1] = 129; }),
       "group_counts[1] = 129: must be from 0 to 128"},
      {Rule::kKStart,
       validated("kgrouped_g2m64n256k256", [](Call&) { slot<std::int32_t>(kOffsets)[1] = 64; }),
       "group_offsets[1] = 64: must be a multiple of 128 (a group's K starts on a scale)"},
      {Rule::kKMultiple,
       validated("kgrouped_g2m64n256k256_packed",
                 [](Call&) { slot<std::int32_t>(kCounts)[0] = 100; }),
       "group_counts[0] = 100: must be a multiple of 128 in the packed form"},
      {Rule::kBadCount,
       validated("kgrouped_g2m64n256k256_packed",
                 [](Call&) { slot<std::int32_t>(kCounts)[0] = -1; }),
       "group_counts[0] = -1: must be from 0 to 512"},
      {Rule::kKOverlap,
       validated("kgrouped_g2m64n256k256",
                 [](Call&) {
                   slot<std::int32_t>(kCounts)[0] = 129;
                   slot<std::int32_t>(kOffsets)[1] = 128;
                 }),
       "group_offsets[1] = 128: must be at least 129, where the K of the group before ends"},
      {Rule::kScaleNotFinite,
       validated(kDense,
                 [](Call&) {
                   slot<float>(kSfa)[64 * 3 + 5] = std::numeric_limits<float>::infinity();
                 }),
       "sfa: group 0, row 5, K-block 3 is inf: must be finite"},
      {Rule::kAmaxMin, quantized([](auto& q) { q.amax_min = -1.5f; }),
       "amax_min = -1.5: must be finite and 0 or more"},
      {Rule::kCodesExtent, quantized([](auto& q) { q.codes.cols = q.codes.ld = 257; }),
       "codes.cols = 257: must be from 250 to 256"},
      {Rule::kCodesExtent, quantized([](auto& q) { q.codes.rows = 63; }),
       "codes.rows = 63: must be 64"},
      {Rule::kEnumValue, quantized([](auto& q) { q.block = 0; }),
       "block = 0: must be 1 (1x128) or 2 (128x128)"},
      {Rule::kEnumValue, quantized([](auto& q) { q.x_type = OCTET_E4M3; }),
       "x_type = e4m3: must be f32, bf16 or f16"},
      {Rule::kEnumValue, quantized([](auto& q) { q.scale_format = 3; }),
       "scale_format = 3: must be 0 (f32), 1 (powers of two) or 2 (ue8m0)"},
      {Rule::kFlag, quantized([](auto& q) { q.axis = 2; }), "axis = 2: must be 0 or 1"},
      {Rule::kStructSize, quantized([](auto& q) { q.struct_size = 0; }),
       "args.struct_size = 0: must be " + size(sizeof(octet_quantize_args)) +
           "; start with octet_quantize_args_init()"},
      {Rule::kMissingPointer, quantized([](auto& q) { q.scales = nullptr; }),
       "scales is null: must point to f32 scales [64, 2]"},
      {Rule::kOverlap, quantized([](auto& q) { q.codes.data = q.x.data; }),
       "codes overlaps x: what is written must not share memory with what is read"},
      {Rule::kOverlap, dequantized([](auto& q) { q.scales = static_cast<float*>(q.x.data) + 250; }),
       "scales overlaps x: what is written must not share memory with what is read"},
      {Rule::kScaleStride, dequantized([](auto& q) { q.k_stride = -1; }),
       "k_stride = -1: must be 0 or more"},
      {Rule::kScaleStride, quantized([](auto& q) { q.row_stride = -1; }),
       "row_stride = -1: must be 0 or more"},
      {Rule::kExtent, quantized([](auto& q) { q.k_stride = 0; }),
       "k_stride = 0: must be 1 or more: scales are written"},
  };
}

// What `explain()` and the sentence of a problem without a kernel say of each kernel.
std::vector<Row> kernel_rows() {
  return {
      {Rule::kServesGrouping, served("normal_m128n128_x2", "offsets_g2m64n256k512", 1),
       "serves dense and batched problems"},
      {Rule::kServesGrouped, served("normal_m128n256_g", "dense_m64n256k512", 1),
       "serves problems grouped over M"},
      {Rule::kServesGrouped, served("normal_m128n256_g", "kgrouped_g2m64n256k512", 1),
       "serves problems grouped over M"},
      {Rule::kServesOneRange, served("normal_m128n256_g", "offsets_g2m64n256k512", 2),
       "serves grouped problems with K in one range"},
      {Rule::kServesRows, served("normal_m128n256_g", "masked_g2m64n256k512_maxm2147483000", 1),
       "serves grouped problems of at most 2147482624 rows"},
      {Rule::kServesOperands, served("normal_m128n128_x2", "dense_m64n256k512_bf16in", 1),
       "serves e4m3 operands with 1D2D scales"},
      {Rule::kServesPairs, served("normal_m256n128_1d1d", "dense_m64n256k512", 1),
       "serves e4m3 operands with 1D1D scales"},
      {Rule::kServesKGrouped, served("normal_m256n128_kg", "dense_m64n256k512_1d1d", 1),
       "serves K-grouped problems"},
      {Rule::kServesPacked, served("normal_m256n128_kp", "kgrouped_g2m64n256k512", 1),
       "serves packed groups"},
      {Rule::kServesUnpacked, served("normal_m256n128_kg", "kgrouped_g2m64n256k512_packed", 1),
       "serves groups side by side in one matrix"},
      {Rule::kServesPipelines, served("swapped_w64t8_k4", "dense_m8n256k7168", 2),
       "its 4 pipelines need a multiple of as many ranges"},
      {Rule::kServesShared, served("normal_m128n256_cm2", "dense_m512n512k7168", 2),
       "its cluster shares operands, not K"},
      {Rule::kServesNoRoom, served("normal_m256n128", "dense_m512n512k7168", 2),
       "no room for partial sums beside the ring"},
      {Rule::kServesCluster, served("normal_m128n128_x2", "dense_m64n256k7168", 9),
       "clusters have at most 8 CTAs"},
      {Rule::kServesFewBlocks, served("normal_m128n128_x2", "dense_m64n256k128", 2),
       "fewer K-blocks than ranges"},
      {Rule::kServesTiles, served("normal_m128n128_x2", "batched_g2147483647m256n256k128", 1),
       "2^31 tiles or more"},
      {Rule::kServesCoordinates, served("normal_m128n256_cm2", "dense_m2147483647n1k128", 1),
       "coordinates beyond 2^31 in the last tile"},
      {Rule::kServesCoordinates, served("swapped_w192t64", "dense_m1n2147483640k128", 1),
       "coordinates beyond 2^31 in the last tile"},
      {Rule::kServesMemory,
       served("normal_m128n128_x2", "dense_m64n256k512", 1,
              [](DeviceSpec& d) { d.shared_memory_bytes = 1 << 16; }),
       "not enough shared memory"},
      {Rule::kServesBudget, served("normal_m128n128_x2", "dense_m64n256k512_sms1", 2),
       "a cluster of 2 does not fit the SM budget"},
  };
}

// What the processor has decides the end of this sentence.
Row isa_row() {
  std::string names;
  for (octet_isa isa = OCTET_ISA_PORTABLE; isa <= OCTET_ISA_AVX512; ++isa) {
    if (!octet_isa_available(isa)) continue;
    names += (names.empty() ? "" : ", ") + std::string(octet_isa_name(isa));
  }
  return {Rule::kIsa,
          [] {
            const Call c = call(kDense);
            cpu::Options options;
            options.isa = 99;
            return cpu::run(c.plan, c.args, options).status();
          },
          "isa = 99: must be one this processor has: " + names};
}

}  // namespace octet_refusals
