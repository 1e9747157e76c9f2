#include "core/base/crc32c.h"

#include <string>

#include "tests/catch.h"

using namespace pmaptrain;

// RFC 3720, appendix B.4, and the check value of the catalogues of checksums.
TEST_CASE("CRC-32C gives the values of its standard", "[base]") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  CHECK(crc32c(ascending) == 0x46dd794e);
}
