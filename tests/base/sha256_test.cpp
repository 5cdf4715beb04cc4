#include "runtime/base/sha256.h"

#include <string>
#include <vector>

#include "runtime/os/random_bytes.h"
#include "tests/support/catch.h"

using namespace dstrain;

namespace {

std::vector<std::uint8_t> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

struct Row {
  std::string key;
  std::string message;
  std::string digest;
};

}  // namespace

TEST_CASE("Sha256: vectors of FIPS 180-4", "[base]") {
  const auto row =
      GENERATE(Row{"", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
               Row{"", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
               Row{"", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
               Row{"", std::string(1'000'000, 'a'),
                   "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"});
  CAPTURE(row.message.size());
  CHECK(to_hex(sha256(bytes(row.message))) == row.digest);
}

TEST_CASE("Hmac: vectors of RFC 4231", "[base]") {
  const auto row = GENERATE(
      Row{std::string(20, '\x0b'), "Hi There",
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      Row{"Jefe", "what do ya want for nothing?",
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      Row{std::string(20, '\xaa'), std::string(50, '\xdd'),
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      Row{std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"});
  CAPTURE(row.message);
  CHECK(to_hex(hmac_sha256(bytes(row.key), bytes(row.message))) == row.digest);
}

TEST_CASE("Hmac: comparison covers every byte", "[base]") {
  const Digest digest = sha256(bytes("abc"));
  CHECK(equal_in_constant_time(digest, digest));
  for (std::size_t i = 0; i < digest.size(); ++i) {
    Digest other = digest;
    other[i] ^= 0x80;
    CHECK_FALSE(equal_in_constant_time(digest, other));
  }
}
