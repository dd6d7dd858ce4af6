# Files of the user's in and out, and the commands over them.
target_sources(octet_command_parts PRIVATE
  gemm.cpp
  gemm_device.cpp
  gemm_error.cpp
  gemm_operand.cpp
  interrupts.cpp
  mapped_file.cpp
  model_files.cpp
  npy.cpp
  output_file.cpp
  quantize.cpp
  dequantize_model.cpp
  quantize_model.cpp
  quantize_tensor.cpp
  scale_source.cpp
  scales.cpp
  tensor.cpp
  tensor_output.cpp
  tensor_store.cpp
  tiles.cpp)
