"""Values that are numbers or arrays to Python and none to the library: a sentence by name, not an
exception of ctypes or NumPy from inside."""

import numpy as np
import pytest

import octet

A = np.full((1, 16), 0x38, "u1")
X = np.ones((2, 16), "f4")
HUGE = 10**400


@pytest.mark.parametrize(
    ("says", "call"),
    [
        ("sfa has dtype complex64", lambda: octet.gemm(A, A, np.complex64(2 + 1j), 1.0, dtype="e4m3")),
        ("sfb = (2+1j)", lambda: octet.gemm(A, A, 1.0, 2 + 1j, dtype="e4m3")),
        ("sfa is a number of no FP32", lambda: octet.gemm(A, A, HUGE, 1.0, dtype="e4m3")),
        ("sfb is a number of no FP32", lambda: octet.gemm(A, A, 1.0, -HUGE, dtype="e4m3")),
        ("amax_min is a number of no FP32", lambda: octet.quantize(X, amax_min=HUGE)),
        ("amax_min = ", lambda: octet.quantize(X, amax_min=1j)),
        ("amax_min = ", lambda: octet.quantize(X, amax_min=np.complex64(1j))),
        ("axis = 1.0", lambda: octet.quantize(X, axis=1.0)),
        ("axis = 0.0", lambda: octet.dequantize(A, np.ones((1, 1), "f4"), axis=0.0)),
        ("axis = '1'", lambda: octet.quantize(X, axis="1")),
        ("a has dtype datetime64[s]", lambda: octet.gemm(np.zeros((2, 16), "M8[s]"), A, 1.0, 1.0)),
        ("x has dtype timedelta64[ms]", lambda: octet.quantize(np.zeros((2, 16), "m8[ms]"))),
        (
            "workspace has shape []",
            lambda: octet.cpu.run(
                octet.plan("dense_m1n1k16_f32"),
                A, A, 1.0, 1.0, workspace=np.zeros((), "u1"),
            ),
        ),
        ("x has a mask", lambda: octet.quantize(np.ma.array(X, mask=True))),
        ("a has a mask", lambda: octet.gemm(np.ma.array(A), A, 1.0, 1.0, dtype="e4m3")),
    ],
)  # fmt: skip
def test_is_an_invalid_argument(says, call):
    with pytest.raises(octet.InvalidArgument) as error:
        call()
    assert says in str(error.value)


def test_numbers_of_numpy_are_numbers():
    want = octet.gemm(A, A, 2.0, 1.0, dtype="e4m3")
    for two in (np.float64(2), np.float16(2), np.int32(2), 2):
        assert np.array_equal(octet.gemm(A, A, two, 1.0, dtype="e4m3"), want)
    codes, _ = octet.quantize(X, axis=np.int64(0))
    assert codes.shape == X.shape


def test_ue8m0_has_a_nan():
    codes = np.full((1, 128), 0x38, "u1")
    for byte, value in ((0xFF, np.nan), (0xFE, 2.0**127), (127, 1.0), (1, 2.0**-126), (0, 0.0)):
        x = octet.dequantize(codes, np.array([[byte]], "u1"))
        assert np.array_equal(x, np.full((1, 128), value, "f4"), equal_nan=True)
