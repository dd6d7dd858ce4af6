"""octet.h in ctypes: its structs, field by field, and the words that stand for its numbers.

Structs carry the C names. A test compiles a C program and compares every size and offset with what
is written here; loading the library compares the sizes once more.
"""

from __future__ import annotations

from ctypes import (
    Structure,
    c_char,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_uint32,
    c_void_p,
)

TEXT_CAPACITY = 512

# Words of the problem string where it has them; a word's place is its number.
TYPES = ("none", "e4m3", "bf16", "f16", "f32", "i32", "i64", "ue8m0")
GROUPINGS = ("dense", "batched", "contiguous", "offsets", "aligned", "masked", "kgrouped")
GRANULARITIES = ("none", "1d2d", "1d1d")
SCALE_LAYOUTS = ("column_major", "row_major", "column_major_odd")
ISAS = ("auto", "portable", "avx2", "avx512")
BLOCKS = ("", "1x128", "128x128")
SCALE_FORMATS = ("f32", "pow2", "ue8m0")

# Bytes of an element.
SIZES = {"e4m3": 1, "bf16": 2, "f16": 2, "f32": 4, "i32": 4, "i64": 8, "ue8m0": 1}


class octet_gemm_problem(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("grouping", c_int32),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("groups", c_int64),
        ("max_m", c_int64),
        ("alignment", c_int64),
        ("in_type", c_int32),
        ("d_type", c_int32),
        ("bias_type", c_int32),
        ("accumulate", c_int32),
        ("granularity", c_int32),
        ("sfa_layout", c_int32),
        ("sfb_layout", c_int32),
        ("index_type", c_int32),
        ("packed", c_int32),
        ("zero_padding", c_int32),
        ("split", c_int32),
        ("batch_invariant", c_int32),
        ("sm_budget", c_int32),
        ("dependent_launch", c_int32),
        ("weights_ready", c_int32),
        ("even", c_int32),
        ("seed", c_uint32),
    ]


class octet_device_spec(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("compute_major", c_int32),
        ("compute_minor", c_int32),
        ("sms", c_int32),
        ("name", c_char * 32),
        ("shared_memory_bytes", c_int64),
        ("l2_bytes", c_int64),
        ("dram_bytes_per_second", c_double),
        ("fp8_flops_per_second", c_double),
        ("bf16_flops_per_second", c_double),
        ("launch_seconds", c_double),
        ("active_clusters", c_int32 * 5),
        ("reserved", c_int32),
    ]


class octet_gemm_plan(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("split", c_int32),
        ("problem", octet_gemm_problem),
        ("device", c_char * 32),
        ("kernel", c_char * 64),
        ("sms", c_int32),
        ("reserved", c_int32),
        ("workspace_bytes", c_int64),
        ("predicted_us", c_double),
    ]


class octet_matrix(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("rows", c_int64),
        ("cols", c_int64),
        ("ld", c_int64),
        ("group_stride", c_int64),
    ]


class octet_scale_matrix(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("row_stride", c_int64),
        ("k_stride", c_int64),
        ("group_stride", c_int64),
    ]


class octet_gemm_args(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_int32),
        ("a", octet_matrix),
        ("b", octet_matrix),
        ("d", octet_matrix),
        ("c", octet_matrix),
        ("sfa", octet_scale_matrix),
        ("sfb", octet_scale_matrix),
        ("bias", c_void_p),
        ("bias_group_stride", c_int64),
        ("group_index", c_void_p),
        ("group_offsets", c_void_p),
        ("group_ends", c_void_p),
        ("group_counts", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_int64),
    ]


class octet_cpu_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("threads", c_int32),
        ("isa", c_int32),
        ("reserved", c_int32),
    ]


class octet_cpu_report(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("isa", c_int32),
        ("threads", c_int32),
        ("reserved", c_int32),
        ("scratch_bytes", c_int64),
    ]


class octet_quantize_args(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("block", c_int32),
        ("axis", c_int32),
        ("transpose", c_int32),
        ("x_type", c_int32),
        ("scale_format", c_int32),
        ("amax_min", c_float),
        ("threads", c_int32),
        ("x", octet_matrix),
        ("codes", octet_matrix),
        ("scales", c_void_p),
        ("row_stride", c_int64),
        ("k_stride", c_int64),
    ]


STRUCTS = (
    octet_gemm_problem,
    octet_device_spec,
    octet_gemm_plan,
    octet_matrix,
    octet_scale_matrix,
    octet_gemm_args,
    octet_cpu_options,
    octet_cpu_report,
    octet_quantize_args,
)
