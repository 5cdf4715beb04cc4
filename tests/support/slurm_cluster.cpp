#include "tests/support/slurm_cluster.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <sched.h>
#include <unistd.h>

#include <climits>
#include <fmt/format.h>

#include "runtime/base/error.h"
#include "tests/support/process_end.h"
#include "tests/support/skip.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* unshare = "/usr/bin/unshare";
constexpr const char* sinfo = "/usr/bin/sinfo";
constexpr std::array<const char*, 9> programs{unshare,
                                              "/usr/bin/setpriv",
                                              "/usr/sbin/ip",
                                              "/usr/sbin/munged",
                                              "/usr/sbin/slurmctld",
                                              "/usr/sbin/slurmd",
                                              sinfo,
                                              "/usr/bin/srun",
                                              "/usr/bin/salloc"};

/// Among others OpenMPI would take those of one host, which our two nodes are and SLURM's are not.
constexpr const char* openmpi_ways = "tcp,self";

/// The daemons, as the first process of their namespace and its children. munged returns when it
/// can be used.
constexpr const char* start_script = R"(cd "$0" || exit
ip link set lo up && ip link add near type veth peer name far &&
  ip address add "$1/24" dev near && ip link set near up && ip link set far up || exit
munged --force --socket="$0/munge.socket" --key-file="$0/munge.key" --pid-file="$0/munged.pid" \
  --log-file="$0/munged.log" --seed-file="$0/munge.seed" || exit
slurmctld -D -c > slurmctld.log 2>&1 &
slurmd -D -N n1 > n1.log 2>&1 &
slurmd -D -N n2 > n2.log 2>&1 &
wait
)";

constexpr const char* configuration = R"(ClusterName=test
SlurmctldHost=localhost({address})
SlurmctldPort=17010
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
KillWait=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr={address} Port=17011 CPUs=8
NodeName=n2 NodeHostname={host} NodeAddr={address} Port=17012 CPUs=8
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
)";

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) fail_errno(errno, "gethostname");
  const std::string whole(name.data());
  return whole.substr(0, whole.find('.'));
}

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> cluster_environment() {
  const char* const configured = std::getenv("SLURM_CONF");
  return {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
          fmt::format("OMPI_MCA_btl={}", openmpi_ways),
          fmt::format("SLURM_CONF={}", configured == nullptr ? "" : configured)};
}

}  // namespace

std::string output_of(std::vector<std::string> command) {
  RankProcess process({command, cluster_environment()});
  const std::string output = process.read_all();
  const int status = process.wait();
  if (status != 0) {
    throw std::runtime_error(fmt::format("{} ended with {}: {}", command[0], status, output));
  }
  return output;
}

std::optional<std::string> SlurmCluster::refusal() {
  for (const char* const program : programs) {
    if (!fs::exists(program)) {
      return fmt::format("there is no {} (Debian: slurm-wlm, munge, iproute2)", program);
    }
  }
  RankProcess trial({{unshare, "--net", "--pid", "--fork", "--mount-proc", "/bin/true"}, {}});
  const std::string why = trial.read_all();
  if (trial.wait() != 0) return "this user may not make namespaces: run as root (" + why + ")";
  return std::nullopt;
}

SlurmCluster::SlurmCluster() {
  if (const auto reason = refusal()) skip(*reason);
  if (::unshare(CLONE_NEWNET) != 0) fail_errno(errno, "unshare");
  write_configuration();
  ::setenv("SLURM_CONF", (folder_.path() / "slurm.conf").c_str(), 1);
  ::setenv("OMPI_MCA_btl", openmpi_ways, 1);
  start_daemons();
  wait_for_nodes();
}

SlurmCluster::~SlurmCluster() {
  ::unsetenv("SLURM_CONF");
  ::unsetenv("OMPI_MCA_btl");
}

std::string SlurmCluster::environment() const {
  return fmt::format("SLURM_CONF={}", (folder_.path() / "slurm.conf").string());
}

fs::path SlurmCluster::folder() const {
  return folder_.path() / "work";
}

void SlurmCluster::write_configuration() const {
  const fs::path& folder = folder_.path();
  for (const char* const name : {"state", "n1", "n2", "work"}) fs::create_directory(folder / name);
  std::ofstream(folder / "slurm.conf")
      << fmt::format(fmt::runtime(configuration), fmt::arg("folder", folder.string()),
                     fmt::arg("host", host_name()), fmt::arg("address", address));
  // Not a mount point: nothing of it is used with proctrack/linuxproc.
  std::ofstream(folder / "cgroup.conf")
      << fmt::format("CgroupPlugin=cgroup/v1\nCgroupMountpoint={}/work\n", folder.string());
  std::ifstream random("/dev/urandom", std::ios::binary);
  std::string key(128, '\0');
  random.read(key.data(), static_cast<std::streamsize>(key.size()));
  std::ofstream(folder / "munge.key", std::ios::binary) << key;
  fs::permissions(folder / "munge.key", fs::perms::owner_read | fs::perms::owner_write);
}

void SlurmCluster::start_daemons() {
  const std::string folder = folder_.path().string();
  daemons_ = std::make_unique<RankProcess>(
      Program{{"/usr/bin/setpriv", "--pdeathsig", "KILL", unshare, "--pid", "--fork",
               "--kill-child", "--mount-proc", "/bin/sh", "-c", start_script, folder, address},
              cluster_environment()});
}

void SlurmCluster::wait_for_nodes() const {
  const bool up = look_until(daemons_->pid(), [] {
    RankProcess asked({{sinfo, "--noheader", "--format=%T %D"}, cluster_environment()});
    const std::string states = asked.read_all();
    return asked.wait() == 0 && states == "idle 2\n";
  });
  if (!up) throw std::runtime_error("the SLURM nodes do not come up:\n" + last_words());
}

std::string SlurmCluster::last_words() const {
  constexpr std::size_t shown = 2000;
  std::string text;
  for (const char* const name : {"munged.log", "slurmctld.log", "n1.log", "n2.log"}) {
    const std::string whole = text_of_file(folder_.path() / name);
    text +=
        fmt::format("{}: {}\n", name, whole.substr(whole.size() - std::min(shown, whole.size())));
  }
  return text;
}

}  // namespace dstrain::test
