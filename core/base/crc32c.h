// CRC-32C (Castagnoli), the checksum of iSCSI (RFC 3720, appendix B.4) and of TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace pmaptrain {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace pmaptrain
