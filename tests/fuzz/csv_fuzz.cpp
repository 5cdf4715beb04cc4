// Records of CSV: they are whole wherever a text is cut, and their fields hold no more than it.
#include "runtime/base/error.h"
#include "runtime/preprocess/csv.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text = fuzz::as_text(bytes, size);
  return fuzz::refuse_or_accept([&] {
    std::size_t read = 0;
    std::size_t of_fields = 0;
    const preprocess::CsvColumn column{',', 0, 1};
    preprocess::for_each_csv_text(text, column, "input", 1,
                                  [&](std::string_view field) { of_fields += field.size(); });
    DSTRAIN_CHECK(of_fields <= text.size(), "{} bytes of {}", of_fields, text.size());
    while (read < text.size()) {
      const std::string_view rest = std::string_view(text).substr(read);
      const std::size_t whole = preprocess::whole_records(rest, ',');
      const auto record = preprocess::parse_csv_record(rest, ',', "input");
      DSTRAIN_CHECK(record.bytes > 0, "a record of nothing at {}", read);
      DSTRAIN_CHECK(whole == 0 || record.bytes <= whole, "{} of {}", record.bytes, whole);
      read += record.bytes;
    }
  });
}
