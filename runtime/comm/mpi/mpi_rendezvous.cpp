#include "runtime/comm/mpi/mpi_rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <sstream>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/comm/group_barrier.h"
#include "runtime/comm/store/tcp_store.h"
#include "runtime/os/machine_identity.h"
#include "runtime/os/random_bytes.h"
#include "runtime/rank/port_range.h"

namespace dstrain::comm {
namespace {

/// How long a rank tries each address of rank 0.
constexpr double probe_seconds = 2;
/// Number of addresses that are tried at most: a rank answers with a bit for each.
constexpr std::size_t addresses_max = 16;

/// Starts the text that rank 0 sends if it fails, before the kind of error.
constexpr char failure_mark = '!';

/// An address where rank 0 listens, for all ranks to try.
struct Offer {
  Endpoint endpoint;
  UniqueFd listener;
};

/// Returns the addresses of this host's networks, IPv4 first.
std::vector<std::string> network_addresses() {
  std::vector<std::string> addresses = own_addresses();
  std::stable_partition(addresses.begin(), addresses.end(), [](const std::string& address) {
    return address.find(':') == std::string::npos;
  });
  addresses.resize(std::min(addresses.size(), addresses_max));
  return addresses;
}

/// Returns the addresses to try, best first.
std::vector<std::string> addresses_to_try(const GivenRendezvous& given, bool one_network) {
  if (given.address) return {*given.address};
  return one_network ? std::vector<std::string>{"127.0.0.1"} : network_addresses();
}

std::vector<Offer> listen_at(const std::vector<std::string>& addresses, std::optional<int> port) {
  const std::optional<PortRange> range = read_port_range();
  std::vector<Offer> offers;
  Failure reason{"this machine has no address but loopback"};
  for (const std::string& address : addresses) {
    Result<UniqueFd> listener = port ? listen_tcp({address, *port}) : listen_within(address, range);
    if (listener.ok()) {
      const int bound = bound_port(listener.value().get());
      offers.push_back({{address, bound}, std::move(listener.value())});
    } else {
      reason = listener.failure();
    }
  }
  if (!offers.empty()) return offers;
  fail_to_listen(reason);
}

std::string to_text(const Endpoint& endpoint) {
  return fmt::format("{}\n{}\n", endpoint.host, endpoint.port);
}

Endpoint read_endpoint(std::istream& text) {
  Endpoint endpoint;
  std::string port;
  std::getline(text, endpoint.host);
  std::getline(text, port);
  endpoint.port = parse_number<int>(port).value_or(0);
  return endpoint;
}

/// Sends the result of `make` on rank 0 to all ranks; or its failure, which all then throw.
std::string from_rank_zero(MpiLibrary& mpi, const std::function<std::string()>& make) {
  std::string text;
  try {
    if (mpi.api().rank == 0) text = make();
  } catch (const Error& error) {
    mpi.broadcast(std::string{failure_mark, static_cast<char>(error.code())} + error.what());
    throw;
  }
  text = mpi.broadcast(std::move(text));
  if (text.starts_with(failure_mark)) {
    fail(static_cast<ErrorCode>(text[1]), "rank 0 says: {}", text.substr(2));
  }
  return text;
}

/// Returns a bit for each address of `offers` that this rank can connect to.
std::uint32_t reachable(const std::string& offers) {
  std::istringstream text(offers);
  std::uint32_t bits = 0;
  for (std::uint32_t bit = 1; text.peek() != std::istringstream::traits_type::eof(); bit <<= 1U) {
    if (connect_tcp(read_endpoint(text), Deadline::after(probe_seconds)).ok()) bits |= bit;
  }
  return bits;
}

/// The ranks whose answer lacks the bit of an address.
std::vector<int> ranks_without(std::span<const std::uint32_t> answers, std::size_t index) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if ((answers[rank] >> index & 1U) == 0) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

/// Returns the first address that all ranks can connect to.
Offer choose(std::vector<Offer> offers, std::span<const std::uint32_t> answers) {
  std::string reasons;
  for (std::size_t index = 0; index < offers.size(); ++index) {
    const std::vector<int> without = ranks_without(answers, index);
    if (without.empty()) return std::move(offers[index]);
    reasons += fmt::format("{}{} cannot connect to {}", reasons.empty() ? "" : ", ",
                           name_ranks(without), to_string(offers[index].endpoint));
  }
  fail(ErrorCode::comm,
       "rendezvous: no address of rank 0's machine is reached by all ranks: {}: open the ports "
       "between the hosts, or give a range of ports that may pass (DSTRAIN_PORT_RANGE), or set "
       "MASTER_ADDR and MASTER_PORT",
       reasons);
}

std::string random_token() {
  return to_hex(random_bytes<16>());
}

void check_given(const GivenRendezvous& given, const RendezvousAddress& shared) {
  const char* name = nullptr;
  if (given.address && *given.address != shared.endpoint.host) name = "MASTER_ADDR";
  if (given.port && *given.port != shared.endpoint.port) name = "MASTER_PORT";
  if (given.token && *given.token != shared.token) name = "DSTRAIN_TOKEN";
  if (name == nullptr) return;
  fail(ErrorCode::config,
       "{} of this rank is not that of rank 0: give the same to all ranks (OpenMPI: mpirun -x {}), "
       "or to none",
       name, name);
}

}  // namespace

RendezvousAddress share_rendezvous(MpiLibrary& mpi, const GivenRendezvous& given) {
  const std::vector<Digest> networks = mpi.gather(machine_identity());
  std::vector<Offer> offers;
  const std::string addresses = from_rank_zero(mpi, [&] {
    const bool one_network = std::ranges::count(networks, networks[0]) == mpi.api().size;
    offers = listen_at(addresses_to_try(given, one_network), given.port);
    std::string text;
    for (const Offer& offer : offers) text += to_text(offer.endpoint);
    return text;
  });
  const std::vector<std::uint32_t> answers = mpi.gather(reachable(addresses));
  Offer chosen;
  std::istringstream decision(from_rank_zero(mpi, [&] {
    chosen = choose(std::move(offers), answers);
    return to_text(chosen.endpoint) + given.token.value_or(random_token());
  }));
  RendezvousAddress shared{read_endpoint(decision), {}, std::move(chosen.listener)};
  shared.token.assign(std::istreambuf_iterator<char>(decision), {});
  check_given(given, shared);
  return shared;
}

}  // namespace dstrain::comm
