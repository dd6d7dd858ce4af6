// Which whole products gemms.bin holds. Each is computed by every kernel of the table that serves
// it, so small M meets the kernels for large M too; together they reach every kernel with every
// split that it has (gemms_test.cpp counts). D is small, because all of it is recorded.
#pragma once

#include <cstdint>

#include "golden/gemm_inputs.h"

namespace oct::golden {

struct GemmCase {
  const char* problem;  // without its seed: that is the case's number, from 1
  uint32_t input_class = 0;
  ScaleClass scales = ScaleClass::kOrdinary;
};

inline constexpr GemmCase kGemmCases[] = {
    // Sizes: one of everything, odd ones, widths that straddle blocks of 128 columns, edges of
    // tiles.
    {"dense_m1n1k1"},
    {"dense_m1n129k103"},
    {"dense_m3n1k128_f32", 10},
    {"dense_m20n70k0_f32_acc_bias"},
    {"dense_m8n128k128"},
    {"dense_m7n300k257_f16"},
    {"dense_m9n577k127"},
    {"dense_m65n96k640"},
    {"dense_m129n33k384_f16"},
    {"dense_m257n24k200"},
    {"dense_m5n1000k129"},
    {"dense_m2n2112k256"},
    {"dense_m64n64k2048"},
    {"dense_m16n192k7168"},
    {"dense_m33n161k1000"},
    {"dense_m40n130k576_f32"},
    {"dense_m259n266k200_f16"},
    {"dense_m130n392k384"},
    // Operands.
    {"dense_m13n140k300_f32", 0},
    {"dense_m13n140k300_f32", 2},
    {"dense_m13n140k300_f32", 3},
    {"dense_m13n140k300_f32", 4},
    {"dense_m13n140k300_f32", 5},
    {"dense_m13n140k300_f32", 6},
    {"dense_m13n140k300_f32", 8},
    {"dense_m13n140k300_f32", 9},
    {"dense_m13n140k300_f32", 10},
    {"dense_m13n140k300_f32", 11},
    {"dense_m13n140k300_f32", 13},
    {"dense_m18n200k520", 4},
    {"dense_m18n200k520_f16", 13},
    // Scales.
    {"dense_m11n150k390_f32", 0, ScaleClass::kPowersOfTwo},
    {"dense_m11n150k390_f32", 0, ScaleClass::kTiny},
    {"dense_m11n150k390_f32", 0, ScaleClass::kHuge},
    {"dense_m11n150k390_f32", 10, ScaleClass::kWide},
    {"dense_m11n150k390_f32", 0, ScaleClass::kZerosAndSigns},
    {"dense_m11n150k390_f32", 0, ScaleClass::kNotFinite},
    {"dense_m11n150k390", 3, ScaleClass::kTiny},
    {"dense_m11n150k390_f16", 11, ScaleClass::kPowersOfTwo},
    {"dense_m11n150k390_f16", 6, ScaleClass::kPowersOfTwo},
    {"dense_m11n150k390", 0, ScaleClass::kHuge},
    // What is added, and how D is stored.
    {"dense_m12n131k260_bias"},
    {"dense_m12n131k260_f32_biasbf16"},
    {"dense_m12n131k260_f16_biasf16"},
    {"dense_m12n131k260_acc", 10},
    {"dense_m12n131k260_f32_acc_bias", 13},
    {"dense_m12n131k260_f16_acc_biasbf16"},
    {"dense_m70n136k140_acc"},
    {"dense_m70n136k140_f16"},
    {"dense_m70n50k140_f32"},
    // Layouts of the scales.
    {"dense_m21n135k400_sfarow"},
    {"dense_m21n135k400_sfaodd_sfbcol"},
    {"dense_m70n100k650_sfarow_sfbodd"},
    {"dense_m131n40k300_f16_sfaodd"},
    {"dense_m6n260k900_f32_sfarow_sfbcol", 0, ScaleClass::kZerosAndSigns},
    // Batches.
    {"batched_g3m9n70k200"},
    {"batched_g5m3n130k129_f16_bias"},
    {"batched_g2m70n40k300_f32_acc_sfarow"},
    {"batched_g7m1n64k128_sfaodd", 10},
    // Few CTAs, each with several tiles; dependent launches.
    {"dense_m100n60k260_sms1"},
    {"dense_m17n330k520_sms3"},
    {"batched_g4m20n66k130_f16_sms2"},
    {"dense_m15n257k640_pdl"},
    {"dense_m15n257k640_acc_pdl_wready"},
    // Ranges of K: equal and unequal ones, and as few K-blocks as there are ranges. FP32 results
    // show the order of the additions, which rounding to BF16 mostly hides.
    {"dense_m9n136k256_f32_split2"},
    {"dense_m70n70k1000_f16_split2", 10},
    {"batched_g2m5n140k700_f32_acc_split2"},
    {"dense_m9n136k384_f32_split3"},
    {"dense_m66n72k1300_bias_split3", 4},
    {"dense_m9n136k512_f32_split4"},
    {"dense_m33n130k1500_f32_sfarow_split4", 2},
    {"dense_m17n300k2048_split4_sms8", 0, ScaleClass::kPowersOfTwo},
    {"dense_m9n136k640_f32_split5"},
    {"dense_m65n40k1700_f16_acc_split5"},
    {"dense_m9n136k768_f32_split6"},
    {"dense_m20n129k2000_f32_split6", 13},
    {"dense_m9n136k896_f32_split7"},
    {"dense_m64n64k1111_sfaodd_split7"},
    {"dense_m9n136k1024_f32_split8"},
    {"dense_m36n100k2500_f32_bias_split8", 5},
    {"batched_g3m6n70k1100_f16_split8_pdl"},
    {"dense_m7n140k1280_f32_split10"},
    {"dense_m30n70k1999_f32_split10"},
    {"dense_m7n140k1536_f32_split12"},
    {"dense_m30n70k3000_f16_sfarow_split12", 10},
    {"dense_m7n140k1792_f32_split14"},
    {"dense_m30n70k2345_f32_acc_split14"},
    {"dense_m7n140k2048_f32_split16"},
    {"dense_m30n70k4000_split16", 2},
    {"dense_m7n140k2560_f32_split20"},
    {"dense_m30n70k2900_f32_split20", 8},
    {"dense_m7n140k3072_f32_split24"},
    {"dense_m12n70k4600_f16_bias_split24"},
    {"dense_m7n140k3584_f32_split28"},
    {"dense_m12n70k4000_f32_split28", 9},
    {"dense_m7n140k4096_f32_split32"},
    {"dense_m12n70k7168_f32_acc_split32"},
    {"dense_m10n80k300_f32_split64"},  // more ranges than K-blocks
};

}  // namespace oct::golden
