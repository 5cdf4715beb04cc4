#include "runtime/comm/gather.h"

#include <algorithm>

namespace dstrain::comm {

std::vector<std::string> gather_texts(const std::string& own,
                                      Communicator& communicator,
                                      StreamView stream) {
  const std::vector<std::size_t> lengths = gather_values(own.size(), communicator, stream);
  const std::size_t longest = std::ranges::max(lengths);
  std::string padded = own;
  padded.resize(longest);
  std::string all(longest * lengths.size(), '\0');
  const auto numel = static_cast<std::int64_t>(longest);
  communicator.all_gather({padded.data(), DType::u8, {numel}},
                          {all.data(), DType::u8, {numel * communicator.size()}}, stream);
  stream.synchronize();
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    texts.push_back(all.substr(rank * longest, lengths[rank]));
  }
  return texts;
}

}  // namespace dstrain::comm
