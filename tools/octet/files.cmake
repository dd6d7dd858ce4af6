# Files of the user's in and out, and the commands over them.
target_sources(octet_command_parts PRIVATE
  interrupts.cpp
  mapped_file.cpp
  npy.cpp
  output_file.cpp
  tensor.cpp
  tensor_output.cpp)
