// A device that is none: the C interface's CUDA part and the command's device memory, on the
// processor. Linked into the command in place of the real ones, so that what the command says of a
// device that is wrong, writes astray, faults, hangs or is not there can be tested anywhere.
//
// OCTET_FAKE_DEVICE says what it does: right (default), wrong, stray, fault, hang, none.
#pragma once

#include <string>

namespace octet::fake {

std::string mode();

}  // namespace octet::fake
