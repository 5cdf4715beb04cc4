#include <algorithm>
#include <cstring>
#include <string>

#include <mpi.h>

#include "runtime/comm/mpi/mpi_api.h"

/// The plug-in, built once for each MPI library. Only this file includes MPI.
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(void*), "a request is kept in a pointer");

// There is one MPI per process, and C functions can only reach globals.
MPI_Comm group = MPI_COMM_NULL;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
bool entered = false;            // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

MPI_Request request_of(void* const* kept) {
  MPI_Request request = MPI_REQUEST_NULL;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the handle itself, which OpenMPI makes a pointer
  std::memcpy(&request, kept, sizeof(request));
  return request;
}

void keep(MPI_Request request, void** kept) {
  *kept = nullptr;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): likewise
  std::memcpy(kept, &request, sizeof(request));
}

int send(const void* from, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** kept) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Isend(from, bytes, MPI_BYTE, peer, tag, group, &request);
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): whoever keeps the request waits for it
  keep(request, kept);
  return code;
}

int receive(void* to, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** kept) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(to, bytes, MPI_BYTE, peer, tag, group, &request);
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): likewise
  keep(request, kept);
  return code;
}

int broadcast(void* bytes, std::int32_t count, void** kept) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Ibcast(bytes, count, MPI_BYTE, 0, group, &request);
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): likewise
  keep(request, kept);
  return code;
}

int gather(const void* from, std::int32_t bytes, void* to, void** kept) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Igather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, group, &request);
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): likewise
  keep(request, kept);
  return code;
}

int barrier(void** kept) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Ibarrier(group, &request);
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): likewise
  keep(request, kept);
  return code;
}

int test(void** kept, std::int32_t* done) {
  MPI_Request request = request_of(kept);
  int flag = 0;
  const int code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  keep(request, kept);
  *done = flag;
  return code;
}

int cancel(void** kept) {
  MPI_Request request = request_of(kept);
  return MPI_Cancel(&request);
}

void forget(void** kept) {
  MPI_Request request = request_of(kept);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  keep(MPI_REQUEST_NULL, kept);
}

#ifdef MPICH
/// Receives messages that no rank waits for any more, such as one that its receiver has refused:
/// UCX, under MPICH, warns of each such message on stderr. Receives into no memory, which MPI calls
/// an error: a sender that cancelled the message may have freed its memory, and UCX reads as much
/// of it as there is room for.
void receive_the_rest() {
  for (int found = 1; found != 0;) {
    MPI_Status status{};
    found = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, group, &found, &status) != MPI_SUCCESS) return;
    if (found == 0) return;
    MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, group, MPI_STATUS_IGNORE);
  }
}
#else
/// OpenMPI does not warn of them, and receiving them would let senders read memory that they have
/// freed.
void receive_the_rest() {}
#endif

int finish() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!entered || finalized != 0) return MPI_SUCCESS;
  if (group != MPI_COMM_NULL) {
    receive_the_rest();
    MPI_Comm_free(&group);
  }
  return MPI_Finalize();
}

void describe(int code, char* text, std::int32_t capacity) {
  std::string words(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, words.data(), &length) != MPI_SUCCESS) length = 0;
  const int count = std::min(length, capacity - 1);
  words.copy(text, static_cast<std::size_t>(count));
  text[count] = '\0';
}

int enter() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) return MPI_SUCCESS;
  int level = 0;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  entered = code == MPI_SUCCESS;
  return entered && level < MPI_THREAD_SERIALIZED ? MPI_ERR_OTHER : code;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int dstrain_mpi_start_2(DstrainMpiApi* api) {
  int code = enter();
  if (code != MPI_SUCCESS) return code;
  // Errors come back as codes; MPI's default is to end the process.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (group == MPI_COMM_NULL) code = MPI_Comm_dup(MPI_COMM_WORLD, &group);
  if (code != MPI_SUCCESS) return code;
  MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
  *api = {0,       0,    32767,  send,   receive, broadcast, gather,
          barrier, test, cancel, forget, finish,  describe};
  MPI_Comm_rank(group, &api->rank);
  MPI_Comm_size(group, &api->size);
  int* tag_max = nullptr;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&tag_max), &found);
  if (found != 0) api->tag_max = *tag_max;
  return MPI_SUCCESS;
}
