#include "tests/comm/conformance.h"

#include "runtime/comm/self/self_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "tests/comm/memory_store.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace dstrain::test;

namespace {

GroupMaker self_groups() {
  return {"self", [](int, double) {
            Group::Members members;
            members.push_back(dstrain::comm::make_self_communicator());
            return Group(std::move(members), std::make_shared<MemoryStore>());
          }};
}

}  // namespace

TEST_CASE("SelfCommunicator: conformance", "[comm]") {
  check_results(self_groups(), {1});
  check_long_sums(self_groups(), {1});
  check_sequences(self_groups(), {1});
  check_split(self_groups(), {1});
}

TEST_CASE("SelfCommunicator: refuses dtypes that cannot be summed", "[comm]") {
  const auto self = dstrain::comm::make_self_communicator();
  dstrain::CpuStream stream(dstrain::CpuStream::Mode::inline_on_caller);
  std::uint16_t value = 0;
  const dstrain::HostView values(&value, dstrain::DType::u16, {1});
  CHECK(error_of([&] {
          self->all_reduce(values, stream);
        }).ends_with("all_reduce of 1 u16: sums are of f32, bf16, f16, i32 and i64"));
}

TEST_CASE("ThreadCommunicator: results", "[comm]") {
  check_results(thread_groups(), {1, 2, 3, 5});
}

TEST_CASE("ThreadCommunicator: long sums", "[comm]") {
  check_long_sums(thread_groups(), {2, 3});
}

TEST_CASE("ThreadCommunicator: sequences", "[comm]") {
  check_sequences(thread_groups(), {1, 2, 3, 4});
}

TEST_CASE("ThreadCommunicator: groups and messages", "[comm]") {
  check_split(thread_groups(), {1, 2, 3, 4, 5});
  check_messages(thread_groups());
}

TEST_CASE("ThreadCommunicator: failures", "[comm]") {
  check_failures(thread_groups());
}

TEST_CASE("StagedCommunicator: results", "[comm]") {
  check_results(staged_groups(4096), {1, 2, 3, 5});
}

TEST_CASE("StagedCommunicator: sequences", "[comm]") {
  check_sequences(staged_groups(4096), {1, 2, 3, 4});
}

TEST_CASE("StagedCommunicator: groups and messages", "[comm]") {
  check_split(staged_groups(4096), {1, 2, 3, 4, 5});
  check_messages(staged_groups(4096));
}

TEST_CASE("StagedCommunicator: failures", "[comm]") {
  check_failures(staged_groups(8 * dstrain::mebibyte));
}

TEST_CASE("ShmCommunicator: results", "[comm]") {
  check_results(shm_groups(), {1, 2, 3, 5});
}

TEST_CASE("ShmCommunicator: long sums", "[comm]") {
  check_long_sums(shm_groups(), {2, 3});
}

TEST_CASE("ShmCommunicator: sequences", "[comm]") {
  check_sequences(shm_groups(), {1, 2, 3, 4});
}

TEST_CASE("ShmCommunicator: groups and messages", "[comm]") {
  check_split(shm_groups(), {1, 2, 3, 4, 5});
  check_messages(shm_groups());
}

TEST_CASE("ShmCommunicator: failures", "[comm]") {
  check_failures(shm_groups());
}

TEST_CASE("TcpCommunicator: results", "[comm]") {
  check_results(tcp_groups(), {1, 2, 3, 5});
}

TEST_CASE("TcpCommunicator: long sums", "[comm]") {
  check_long_sums(tcp_groups(), {2, 3});
}

TEST_CASE("TcpCommunicator: sequences", "[comm]") {
  check_sequences(tcp_groups(), {1, 2, 3, 4});
}

TEST_CASE("TcpCommunicator: groups and messages", "[comm]") {
  check_split(tcp_groups(), {1, 2, 3, 4, 5});
  check_messages(tcp_groups());
}

TEST_CASE("TcpCommunicator: failures", "[comm]") {
  check_failures(tcp_groups());
}

TEST_CASE("HierarchicalCommunicator: results", "[comm]") {
  check_results(hierarchical_groups({2}), {1, 2, 3, 4, 6});
  check_results(hierarchical_groups({3, 1, 2}), {5, 6});
  check_results(hierarchical_groups({1, 3}), {4});
  check_results(hierarchical_groups({1}), {17});  // so many that not all are connected
}

TEST_CASE("HierarchicalCommunicator: long sums", "[comm]") {
  check_long_sums(hierarchical_groups({2}), {3, 4});
}

TEST_CASE("HierarchicalCommunicator: sequences", "[comm]") {
  check_sequences(hierarchical_groups({2}), {4, 5});
  check_sequences(hierarchical_groups({1, 2}), {4});
}

TEST_CASE("HierarchicalCommunicator: groups and messages", "[comm]") {
  check_split(hierarchical_groups({2}), {2, 3, 4, 6});
  check_split(hierarchical_groups({1, 3}), {5});
  check_split(hierarchical_groups({1}), {17});
  check_messages(hierarchical_groups({2}));
}

TEST_CASE("HierarchicalCommunicator: failures", "[comm]") {
  check_failures(hierarchical_groups({2}));
  check_failures(hierarchical_groups({1, 3}));
}

TEST_CASE("HierarchicalCommunicator: ranks of a node need not be consecutive", "[comm]") {
  check_results(scattered_groups(), {3, 4});
  check_split(scattered_groups(), {4});
}
