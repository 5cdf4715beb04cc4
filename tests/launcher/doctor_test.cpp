#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <regex>

#include <sys/resource.h>
#include <sys/stat.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/machine_probe.h"
#include "launcher/doctor/reach.h"
#include "launcher/doctor/report.h"
#include "runtime/os/file.h"
#include "runtime/os/socket.h"
#include "tests/launcher/fake_machine.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::launcher::doctor;
using Catch::Matchers::ContainsSubstring;
using test::FakeMachine;

namespace {

std::vector<Finding> look_at(const Probe& machine, const Question& question) {
  std::vector<Finding> all;
  for (const Check& check : all_checks()) {
    Findings findings{std::string(check.name)};
    check.look(machine, question, findings);
    all.insert(all.end(), findings.list().begin(), findings.list().end());
  }
  return all;
}

std::vector<Finding> problems_in(const std::vector<Finding>& all) {
  std::vector<Finding> problems;
  std::ranges::copy_if(all, std::back_inserter(problems),
                       [](const Finding& one) { return one.level == Level::problem; });
  return problems;
}

/// Something that is wrong, and the check that must say so.
struct Fault {
  const char* check;
  const char* what;  ///< a word of the finding
  std::function<void(FakeMachine&, Question&)> plant;
};

Limit at_most(std::uint64_t value) {
  return {value, Limit::unlimited};
}

const std::vector<Fault> program_faults{
    {"programs", "neither beside",
     [](FakeMachine& m, Question&) {
       m.files.erase("/opt/dstrain/bin/dstraind");
     }},
    {"programs", "libdnnl.so." DSTRAIN_DNNL_NUMBER ": cannot open",
     [](FakeMachine& m, Question&) {
       m.runs["/opt/dstrain/bin/dstraind --version"] = {
           true, 127,
           "dstraind: error while loading shared libraries: libdnnl.so." DSTRAIN_DNNL_NUMBER
           ": cannot open"};
     }},
    {"programs", "it hangs",
     [](FakeMachine& m, Question&) {
       m.runs["/opt/dstrain/bin/dstraind --version"] = {false, -1, ""};
     }},
    {"programs", "1.2.2",
     [](FakeMachine& m, Question&) {
       m.runs["/opt/dstrain/bin/dstraind --version"].output = "dstraind 1.2.2\n";
     }},
    {"plug_ins", "libssh.so.4",
     [](FakeMachine& m, Question&) {
       m.load_failures["/opt/dstrain/bin/libdstrain_ssh.so"] = "libssh.so.4: cannot open";
     }},
    {"plug_ins", "libmpi.so.40",
     [](FakeMachine& m, Question&) {
       m.load_failures["/opt/dstrain/bin/libdstrain_mpi_openmpi.so"] = "libmpi.so.40: cannot open";
     }},
    {"plug_ins", "libsentencepiece.so.0",
     [](FakeMachine& m, Question&) {
       m.load_failures["/opt/dstrain/bin/libdstrain_tokenizers.so"] =
           "libsentencepiece.so.0: cannot open";
     }},
    {"mpi", "orted",
     [](FakeMachine& m, Question&) {
       m.runs["mpirun.openmpi --version"] = {true, 1, "orted was not found\n"};
     }},
    {"slurm", "no srun",
     [](FakeMachine& m, Question&) {
       m.variables["SLURM_JOB_ID"] = "7";
     }},
    {"slurm", "munge",
     [](FakeMachine& m, Question&) {
       m.programs["srun"] = "/usr/bin/srun";
       m.put_file("/etc/slurm/slurm.conf", "ClusterName=c\n");
       m.runs["srun --mpi=list"] = {true, 0, "MPI plugin types are...\n\tpmix\n"};
     }},
    {"slurm", "nothing answers at /srv/munge.socket",
     [](FakeMachine& m, Question&) {
       m.programs["srun"] = "/usr/bin/srun";
       m.put_file("/etc/slurm/slurm.conf", "authinfo = cred_expire=5,socket=/srv/munge.socket\n");
       m.served.insert("/run/munge/munge.socket.2");
       m.runs["srun --mpi=list"] = {true, 0, "MPI plugin types are...\n\tpmix\n"};
     }},
    {"slurm", "SLURM_CONF is set to \"/srv/slurm.conf\", which does not exist",
     [](FakeMachine& m, Question&) {
       m.programs["srun"] = "/usr/bin/srun";
       m.put_file("/etc/slurm/slurm.conf", "AuthType=auth/none\n");
       m.variables["SLURM_CONF"] = "/srv/slurm.conf";
     }},
    {"slurm_pmix", "no pmix",
     [](FakeMachine& m, Question&) {
       m.programs["srun"] = "/usr/bin/srun";
       m.put_file("/etc/slurm/slurm.conf", "AuthType=auth/none\n");
       m.runs["srun --mpi=list"] = {true, 0, "MPI plugin types are...\n\tnone\n\tpmi2\n"};
     }},
};

const std::vector<Fault> ssh_faults{
    {"ssh_directory", "may write to /home/user/.ssh:",
     [](FakeMachine& m, Question&) {
       m.put_directory("/home/user/.ssh", 0770);
     }},
    {"ssh_directory", "may write to /home/user:",
     [](FakeMachine& m, Question&) {
       m.put_directory("/home/user", 0777);
     }},
    {"ssh_directory", "authorized_keys",
     [](FakeMachine& m, Question&) {
       m.put_file("/home/user/.ssh/authorized_keys", "ssh-ed25519 AAAA", 0664);
     }},
    {"ssh_directory", "HOME",
     [](FakeMachine& m, Question&) {
       m.variables.erase("HOME");
     }},
    {"ssh_keys", "other users may read",
     [](FakeMachine& m, Question&) {
       m.put_file("/home/user/.ssh/id_ed25519", "key", 0644);
     }},
    {"ssh_keys", "no key",
     [](FakeMachine& m, Question& q) {
       m.files.erase("/home/user/.ssh/id_ed25519");
       q.hosts = q.ssh_hosts = {"w1"};
     }},
    {"ssh_agent", "no agent answers",
     [](FakeMachine& m, Question&) {
       m.variables["SSH_AUTH_SOCK"] = "/tmp/ssh-X/agent.1";
     }},
    {"ssh_config", "cannot be read",
     [](FakeMachine& m, Question&) {
       m.put_file("/home/user/.ssh/config", "", 0);
       m.files["/home/user/.ssh/config"].readable = false;
     }},
    {"ssh_config", "is writable by others",
     [](FakeMachine& m, Question&) {
       m.put_file("/home/user/.ssh/config", "Host a\n", 0666);
     }},
    {"known_hosts", "w2",
     [](FakeMachine& m, Question& q) {
       m.addresses["w2"] = {"10.0.0.12"};
       q.hosts = q.ssh_hosts = {"w1", "w2"};
     }},
};

const std::vector<Fault> network_faults{
    {"host_name", "has no address",
     [](FakeMachine& m, Question&) {
       m.addresses.erase("w0");
     }},
    {"host_name", "127.0.1.1",
     [](FakeMachine& m, Question& q) {
       m.addresses["w0"] = {"127.0.1.1"};
       q.hosts = {"w1"};
     }},
    {"hosts_file", "several addresses: 10.0.0.10, 10.9.9.9",
     [](FakeMachine& m, Question&) {
       m.files["/etc/hosts"].text += "10.9.9.9 other w0\n";
     }},
    {"hosts_file", "localhost to 10.0.0.10",
     [](FakeMachine& m, Question&) {
       m.put_file("/etc/hosts", "10.0.0.10 localhost w0\n");
     }},
    {"host_names", "w1",
     [](FakeMachine& m, Question& q) {
       m.addresses["w1"] = {"127.0.1.1"};
       q.hosts = {"w1"};
     }},
};

const std::vector<Fault> machine_faults{
    {"free_memory", "97.7 MiB of",
     [](FakeMachine& m, Question&) {
       m.put_file("/proc/meminfo", "MemTotal: 65536000 kB\nMemAvailable: 100000 kB\n");
     }},
    {"overcommit", "is 2",
     [](FakeMachine& m, Question&) {
       m.put_file("/proc/sys/vm/overcommit_memory", "2\n");
     }},
    {"memory_file", "memfd_create",
     [](FakeMachine& m, Question&) {
       m.memory_file_failure = "Operation not permitted";
     }},
    {"shared_memory", "no /dev/shm",
     [](FakeMachine& m, Question&) {
       m.disks.erase("/dev/shm");
     }},
    {"shared_memory", "may not write to /dev/shm",
     [](FakeMachine& m, Question&) {
       m.unwritable.insert("/dev/shm");
     }},
    {"locked_memory", "64.0 KiB",
     [](FakeMachine& m, Question&) {
       m.limits[RLIMIT_MEMLOCK] = at_most(64 << 10);
     }},
    {"open_files", "256",
     [](FakeMachine& m, Question&) {
       m.limits[RLIMIT_NOFILE] = at_most(256);
     }},
    {"processes", "100",
     [](FakeMachine& m, Question&) {
       m.limits[RLIMIT_NPROC] = at_most(100);
     }},
    {"memory_limit", "512 MiB",
     [](FakeMachine& m, Question&) {
       m.put_file("/sys/fs/cgroup/user.slice/memory.max", "536870912\n");
     }},
    {"memory_limit", "in use",
     [](FakeMachine& m, Question&) {
       m.put_file("/proc/self/cgroup", "4:cpu,cpuacct:/a\n3:memory:/docker/x\n");
       m.put_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n");
       m.put_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4200000000\n");
     }},
    {"cpu_limit", "0.50 cores",
     [](FakeMachine& m, Question&) {
       m.put_file("/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
     }},
    {"process_limit", "64",
     [](FakeMachine& m, Question&) {
       m.put_file("/sys/fs/cgroup/user.slice/pids.max", "64\n");
     }},
    {"io_uring", "io_uring_disabled=2",
     [](FakeMachine& m, Question&) {
       m.uring = EPERM;
       m.put_file("/proc/sys/kernel/io_uring_disabled", "2\n");
       m.variables["DSTRAIN_IO"] = "uring";
     }},
    {"disks", "read-only",
     [](FakeMachine& m, Question&) {
       m.disks["/home/user/run"].read_only = true;
     }},
    {"disks", "may not write to /home/user/run",
     [](FakeMachine& m, Question&) {
       m.unwritable.insert("/home/user/run");
     }},
    {"disks", "/tmp has 10.0 MiB",
     [](FakeMachine& m, Question&) {
       m.disks["/tmp"].free = 10 * mebibyte;
     }},
    {"disks", "/data does not exist",
     [](FakeMachine&, Question& q) {
       q.paths = {"/data"};
     }},
};

const std::vector<Fault> shell_faults{
    {"gpus", "libcublasLt.so.13",
     [](FakeMachine& m, Question&) {
       m.put_file("/dev/nvidia0", "");
       m.put_file("/opt/dstrain/bin/libdstrain_cuda.so", "");
       m.load_failures["/opt/dstrain/bin/libdstrain_cuda.so"] = "libcublasLt.so.13: cannot open";
     }},
    {"gpus", "the driver's libcuda.so.1 cannot be loaded",
     [](FakeMachine& m, Question&) {
       m.put_file("/dev/nvidia0", "");
       m.put_file("/opt/dstrain/bin/libdstrain_cuda.so", "");
       m.load_failures["libcuda.so.1"] = "no such file";
     }},
    {"gpu_sensors", "GPU 1, H200, 40 C, 120 W of 700 W: 2 uncorrectable memory (ECC) errors",
     [](FakeMachine& m, Question&) {
       m.put_file("/dev/nvidia0", "");
       m.gpus_read.push_back({"H200", {}});
       m.gpus_read.push_back(
           {"H200", {.watts = 120.4, .watts_limit = 700, .celsius = 40, .memory_errors = 2}});
     }},
    {"visible_devices", "gpu0",
     [](FakeMachine& m, Question&) {
       m.variables["CUDA_VISIBLE_DEVICES"] = "gpu0";
     }},
    {"visible_devices", "no GPU 1: one GPU is there",
     [](FakeMachine& m, Question&) {
       m.put_file("/dev/nvidia0", "");
       m.variables["CUDA_VISIBLE_DEVICES"] = "0,1";
     }},
    {"threads", "not a number",
     [](FakeMachine& m, Question&) {
       m.variables["OMP_NUM_THREADS"] = "all";
     }},
    {"threads", "one of 8",
     [](FakeMachine& m, Question&) {
       m.variables["OMP_NUM_THREADS"] = "1";
     }},
    {"rank_variables", "RANK, WORLD_SIZE are",
     [](FakeMachine& m, Question&) {
       m.variables["RANK"] = "1";
       m.variables["WORLD_SIZE"] = "2";
     }},
    {"starter_variables", "OMPI_COMM_WORLD_SIZE=2",
     [](FakeMachine&, Question& q) {
       q.starter_refusal = "OMPI_COMM_WORLD_SIZE=2: mpirun has started this process as one of 2";
     }},
    {"dstrain_variables", "DSTRAIN_IO=fast",
     [](FakeMachine& m, Question&) {
       m.refused = {"DSTRAIN_IO=fast: use auto, uring or threads"};
     }},
    {"master_address", "another machine",
     [](FakeMachine& m, Question&) {
       m.variables["MASTER_ADDR"] = "w1";
     }},
    {"library_path", "libstdc++.so.6",
     [](FakeMachine& m, Question&) {
       m.put_directory("/opt/conda/lib");
       m.put_file("/opt/conda/lib/libstdc++.so.6", "");
       m.variables["LD_LIBRARY_PATH"] = "/opt/conda/lib:/usr/lib";
       m.put_directory("/usr/lib");
     }},
    {"leftover_processes", "4711",
     [](FakeMachine& m, Question&) {
       m.put_process(4711, "dstraind", 1, std::string("A=b\0DSTRAIN_JOB=j\0", 18));
     }},
    {"leftover_processes", "processes of jobs without a launcher: 4711 (sh), 4712 (sleep)",
     [](FakeMachine& m, Question&) {
       const std::string environment("DSTRAIN_JOB=j\0", 14);
       m.put_process(4711, "sh", 1, environment);
       m.put_process(4712, "sleep", 4711, environment);
       m.put_process(4713, "dstrain", 1, "");  // a launcher that nobody has launched
       m.put_process(4714, "dstraind", 4713, environment);
     }},
    {"leftover_files", "dstrain-swap-abcdef",
     [](FakeMachine& m, Question&) {
       m.put_file("/home/user/run/dstrain-swap-abcdef", "");
     }},
    {"leftover_files", "checkpoint-12",
     [](FakeMachine& m, Question&) {
       m.put_directory("/home/user/run/checkpoint-12.tmp-w0-0123456789abcdef-40265318-99-123-0");
     }},
    {"runtime_directory", "does not belong to this user alone",
     [](FakeMachine& m, Question&) {
       m.put_directory("/run/user/1000", 0700, 0);
     }},
};

std::vector<Fault> all_faults() {
  std::vector<Fault> all;
  for (const auto* faults :
       {&program_faults, &ssh_faults, &network_faults, &machine_faults, &shell_faults}) {
    all.insert(all.end(), faults->begin(), faults->end());
  }
  return all;
}

HostReport healthy_report(const std::string& host) {
  return {.host = host,
          .looked = true,
          .machine = {"A Processor", "avx2 avx512f", 8, 64 * gibibyte},
          .clock = {0.001, 0.0005}};
}

std::vector<std::string> checks_of(const std::vector<Finding>& findings) {
  std::vector<std::string> checks;
  for (const Finding& finding : findings) checks.push_back(finding.check);
  return checks;
}

}  // namespace

TEST_CASE("Doctor: a healthy machine has no problem", "[launcher][doctor]") {
  const FakeMachine machine;
  const Question question{.paths = {}, .hosts = {"w1"}, .ssh_hosts = {"w1"}, .starter_refusal = {}};
  for (const Finding& finding : look_at(machine, question)) {
    INFO(finding.check << ": " << finding.what);
    CHECK(finding.level == Level::ok);
  }
}

TEST_CASE("Doctor: each planted fault is one problem with its fix", "[launcher][doctor]") {
  const std::vector<Fault> faults = all_faults();
  CHECK(faults.size() >= 25);
  for (const Fault& fault : faults) {
    INFO(fault.check << ": " << fault.what);
    FakeMachine machine;
    Question question;
    fault.plant(machine, question);
    const std::vector<Finding> problems = problems_in(look_at(machine, question));
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].check == fault.check);
    CHECK_THAT(problems[0].what, ContainsSubstring(fault.what));
    CHECK_FALSE(problems[0].fix.empty());
  }
}

TEST_CASE("Doctor: the plug-in of GPUs matters where there are some", "[launcher][doctor]") {
  FakeMachine machine;
  const auto says = [&](const std::string& what) {
    return std::ranges::any_of(look_at(machine, {}), [&](const Finding& finding) {
      return finding.check == "gpus" && finding.what == "none, so slots are CPU ranks; " + what;
    });
  };
  CHECK(says("libdstrain_cuda.so is not installed"));
  const std::string plug_in = "/opt/dstrain/bin/libdstrain_cuda.so";
  machine.put_file(plug_in, "");
  CHECK(says("libdstrain_cuda.so is installed and not loaded"));
  machine.load_failures[plug_in] = "libcublasLt.so.13: cannot open";
  CHECK(problems_in(look_at(machine, {})).empty());
  machine.load_failures.clear();
  machine.put_file("/dev/nvidia0", "");
  const std::vector<Finding> found = look_at(machine, {});
  CHECK(problems_in(found).empty());
  CHECK(std::ranges::any_of(found, [](const Finding& finding) {
    return finding.check == "gpus" && finding.what.ends_with("libdstrain_cuda.so uses them");
  }));
}

TEST_CASE("Doctor: checks the plug-ins that a launch would open", "[launcher][doctor]") {
  FakeMachine machine;
  machine.put_file("/dev/nvidia0", "");
  machine.variables["DSTRAIN_PLUGIN_PATH"] = "/nowhere:/elsewhere";
  machine.put_file("/elsewhere/libdstrain_cuda.so", "");
  machine.put_file("/elsewhere/libdstrain_ssh.so", "");
  CHECK(problems_in(look_at(machine, {})).empty());
  machine.load_failures["/elsewhere/libdstrain_cuda.so"] = "libcublasLt.so.13: cannot open";
  machine.load_failures["/elsewhere/libdstrain_ssh.so"] = "libssh.so.4: cannot open";
  const std::vector<Finding> problems = problems_in(look_at(machine, {}));
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].what == "libdstrain_ssh.so cannot be loaded: libssh.so.4: cannot open");
  CHECK(
      problems[1].what.ends_with("libdstrain_cuda.so cannot be loaded: libcublasLt.so.13: "
                                 "cannot open"));
}

TEST_CASE("Doctor: mere information is a note", "[launcher][doctor]") {
  const std::vector<Fault> notes{
      {"processor", "without AVX2",
       [](FakeMachine& m, Question&) {
         m.put_file("/proc/cpuinfo", "flags : fpu sse2\n");
       }},
      {"gpus", "1 GPU device files",
       [](FakeMachine& m, Question&) {
         m.put_file("/dev/nvidia0", "");
       }},
      {"gpu_sensors", "sensors: libnvidia-ml.so.1: no such file",
       [](FakeMachine& m, Question&) {
         m.put_file("/dev/nvidia0", "");
         m.put_file("/opt/dstrain/bin/libdstrain_cuda.so", "");
         m.gpus_failure = "libnvidia-ml.so.1: no such file";
       }},
      {"gpu_sensors", "GPU 0, H200, 92 C: heat slows its clock down",
       [](FakeMachine& m, Question&) {
         m.put_file("/dev/nvidia0", "");
         m.put_file("/opt/dstrain/bin/libdstrain_cuda.so", "");
         m.gpus_read.push_back({"H200", {.celsius = 92, .slowed_by_heat = true}});
       }},
      {"shared_memory", "64.0 MiB",
       [](FakeMachine& m, Question&) {
         m.disks["/dev/shm"].size = 64 * mebibyte;
       }},
      {"huge_pages", "shared memory: never",
       [](FakeMachine& m, Question&) {
         m.put_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [never]\n");
       }},
      {"runtime_directory", "/run/user/1000/dstrain-RANDOM",
       [](FakeMachine& m, Question&) {
         m.put_directory("/run/user/1000/dstrain", 0755);
       }},
      {"core_files", "unlimited",
       [](FakeMachine& m, Question&) {
         m.limits[RLIMIT_CORE] = {};
       }},
      {"io_uring", "seccomp",
       [](FakeMachine& m, Question&) {
         m.uring = EPERM;
       }},
      {"cpu_limit", "1.50 cores",
       [](FakeMachine& m, Question&) {
         m.put_file("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
       }},
      {"memory_limit", "16.0 GiB",
       [](FakeMachine& m, Question&) {
         m.put_file("/sys/fs/cgroup/memory.max", "17179869184\n");
       }},
      {"disks", "it is in memory",
       [](FakeMachine& m, Question&) {
         m.disks["/tmp"].kind = "tmpfs";
       }},
      {"disks", "a network file system",
       [](FakeMachine& m, Question&) {
         m.disks["/home/user/run"].kind = "nfs";
       }},
      {"host_name", "127.0.1.1",
       [](FakeMachine& m, Question&) {
         m.addresses["w0"] = {"127.0.1.1"};
       }},
      {"master_port", "29500",
       [](FakeMachine& m, Question&) {
         m.used_ports.insert(29500);
       }},
      {"threads", "OMP_PROC_BIND",
       [](FakeMachine& m, Question&) {
         m.variables["OMP_PROC_BIND"] = "close";
       }},
      {"job_sockets", "old.sock",
       [](FakeMachine& m, Question&) {
         m.put_socket("/run/user/1000/dstrain/old.sock");
       }},
      {"locale", "POSIX",
       [](FakeMachine& m, Question&) {
         m.variables["LANG"] = "POSIX";
       }},
      {"mpi", "no mpirun",
       [](FakeMachine& m, Question&) {
         m.programs.clear();
       }},
      {"plug_ins", "no libdstrain_ssh.so",
       [](FakeMachine& m, Question&) {
         m.files.erase("/opt/dstrain/bin/libdstrain_ssh.so");
       }},
      {"plug_ins", "no libdstrain_tokenizers.so",
       [](FakeMachine& m, Question&) {
         m.files.erase("/opt/dstrain/bin/libdstrain_tokenizers.so");
       }},
      {"libraries", "libdnnl.so." DSTRAIN_DNNL_NUMBER,
       [](FakeMachine& m, Question&) {
         m.load_failures["libdnnl.so." DSTRAIN_DNNL_NUMBER] =
             "libdnnl.so." DSTRAIN_DNNL_NUMBER ": none";
       }},
  };
  for (const Fault& note : notes) {
    INFO(note.check << ": " << note.what);
    FakeMachine machine;
    Question question;
    note.plant(machine, question);
    std::vector<Finding> unusual;
    for (const Finding& finding : look_at(machine, question)) {
      if (finding.level != Level::ok) unusual.push_back(finding);
    }
    REQUIRE(unusual.size() == 1);
    CHECK(unusual[0].level == Level::note);
    CHECK(unusual[0].check == note.check);
    CHECK_THAT(unusual[0].what, ContainsSubstring(note.what));
  }
}

TEST_CASE("Doctor: munged is searched at the place in slurm.conf", "[launcher][doctor]") {
  for (const char* text : {"AuthInfo=socket=/srv/munge.socket\n",
                           "AuthInfo=socket=/srv/munge.socket,cred_expire=5 # x\n",
                           "AuthType=auth/munge\nAUTHINFO=ttl=9, socket=/srv/munge.socket\n"}) {
    CAPTURE(text);
    FakeMachine machine;
    machine.programs["srun"] = "/usr/bin/srun";
    machine.put_file("/srv/slurm.conf", text);
    machine.variables["SLURM_CONF"] = "/srv/slurm.conf";
    machine.served.insert("/srv/munge.socket");
    Findings findings("slurm");
    check_slurm(machine, {}, findings);
    REQUIRE(findings.list().size() == 1);
    CHECK(findings.list()[0].level == Level::ok);
  }
}

TEST_CASE("Doctor: root is told which variables OpenMPI requires", "[launcher][doctor]") {
  FakeMachine machine;
  machine.user_id = 0;
  const auto notes = [&] {
    Findings findings("mpi");
    check_mpi(machine, {}, findings);
    std::vector<Finding> found;
    for (const Finding& one : findings.list()) {
      if (one.level == Level::note) found.push_back(one);
    }
    return found;
  };
  machine.variables["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
  REQUIRE(notes().size() == 1);
  CHECK_THAT(notes()[0].what, ContainsSubstring("refuses to run as root"));
  CHECK_THAT(notes()[0].fix, ContainsSubstring("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"));
  machine.variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  CHECK(notes().empty());
  machine.variables.clear();
  machine.programs.erase("mpirun.openmpi");
  for (const Finding& note : notes()) CHECK_THAT(note.what, !ContainsSubstring("root"));
}

TEST_CASE("Doctor: a plug-in of an MPI that is not installed is no problem", "[launcher]") {
  FakeMachine machine;
  machine.put_file("/opt/dstrain/bin/libdstrain_mpi_mpich.so", "");
  for (const char* kind : {"openmpi", "mpich"}) {
    machine.load_failures[fmt::format("/opt/dstrain/bin/libdstrain_mpi_{}.so", kind)] =
        "no library";
  }
  Findings findings("plug_ins");
  check_plug_ins(machine, {}, findings);
  std::vector<Finding> unusual;
  for (const Finding& one : findings.list()) {
    if (one.level != Level::ok) unusual.push_back(one);
  }
  REQUIRE(unusual.size() == 2);
  CHECK(unusual[0].level == Level::note);
  CHECK_THAT(unusual[0].what, ContainsSubstring("mpich"));
  CHECK_THAT(unusual[0].fix, ContainsSubstring("apt-get install mpich"));
  CHECK(unusual[1].level == Level::problem);  // there is an mpirun.openmpi
  CHECK_THAT(unusual[1].what, ContainsSubstring("openmpi"));
}

TEST_CASE("Doctor: processes of a launcher that is process 1 are not left over", "[launcher]") {
  FakeMachine machine;
  const std::string environment("DSTRAIN_JOB=j\0", 14);
  machine.put_process(1, "dstrain", 0, "");
  machine.put_process(4711, "dstrain", 1, environment);
  machine.put_process(4712, "dstraind", 4711, environment);
  CHECK(problems_in(look_at(machine, {})).empty());
}

TEST_CASE("Doctor: an empty XDG_RUNTIME_DIR counts as unset", "[launcher][doctor]") {
  FakeMachine machine;
  machine.variables["XDG_RUNTIME_DIR"] = "";
  CHECK(problems_in(look_at(machine, {})).empty());
}

TEST_CASE("Doctor: an existing runtime directory is suggested", "[launcher][doctor]") {
  FakeMachine machine;
  machine.variables["XDG_RUNTIME_DIR"] = "/run/user/0";
  std::vector<Finding> problems = problems_in(look_at(machine, {}));
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0].fix, ContainsSubstring("export XDG_RUNTIME_DIR=/run/user/1000"));
  machine.files.erase("/run/user/1000");
  problems = problems_in(look_at(machine, {}));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].fix == "unset XDG_RUNTIME_DIR");
}

TEST_CASE("Doctor: a process that has a launcher is not left over", "[launcher][doctor]") {
  FakeMachine machine;
  const std::string environment("DSTRAIN_JOB=j\0", 14);
  machine.put_process(10, "dstrain", 1, "");             // a launcher in the background
  machine.put_process(11, "dstrain", 10, environment);   // its agent
  machine.put_process(12, "dstraind", 11, environment);  // a rank
  machine.put_process(13, "dstraind", 1, "RANK=0");      // a container's only program
  machine.put_process(14, "dstraind", 1, environment);   // another user's
  machine.files["/proc/14"].facts.owner = 1001;
  CHECK(problems_in(look_at(machine, {})).empty());
}

TEST_CASE("Doctor: the page has exactly one row for each check", "[launcher][doctor]") {
  const std::string page = read_text_file(DSTRAIN_SOURCE_DIR "/docs/doctor.md", mebibyte);
  std::vector<std::string> rows;
  const std::regex row("\\n\\| `([a-z_]+)` \\|");
  for (std::sregex_iterator match(page.begin(), page.end(), row), end; match != end; ++match) {
    rows.push_back((*match)[1]);
  }
  std::vector<std::string> checks;
  for (const Check& check : all_checks()) checks.emplace_back(check.name);
  for (const char* check : host_checks) checks.emplace_back(check);
  std::ranges::sort(rows);
  std::ranges::sort(checks);
  CHECK(rows == checks);
}

TEST_CASE("Doctor: the real machine is read below a given root directory", "[launcher][doctor]") {
  const test::TempDir root;
  const auto put = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root.path() / name).parent_path());
    write_text_file(root.path() / name, text);
  };
  put("proc/cpuinfo", "model name : M\nflags : avx2\n");
  put("etc/hosts", "10.0.0.1 localhost\n");
  put("home/.ssh/id_rsa", "key");
  ::chmod((root.path() / "home/.ssh/id_rsa").c_str(), 0640);
  ::mkfifo((root.path() / "pipe").c_str(), 0600);
  const MachineProbe probe({.version = "1", .working_directory = "/", .root = root.path()});
  CHECK(probe.text("/proc/cpuinfo") == "model name : M\nflags : avx2\n");
  CHECK_FALSE(probe.text("/absent"));
  CHECK_FALSE(probe.text("/pipe"));  // which would wait for a writer
  CHECK(probe.facts("/home/.ssh/id_rsa").is_open_to_others());
  CHECK_FALSE(probe.facts("/home/.ssh/id_rsa").others_may_write());
  CHECK(probe.facts("/home").kind == FileFacts::Kind::directory);
  CHECK(probe.facts("/none").kind == FileFacts::Kind::absent);
  CHECK(probe.names("/") == std::vector<std::string>{"etc", "home", "pipe", "proc"});
  CHECK(probe.names("/none").empty());
  CHECK_FALSE(probe.space("/none"));
  CHECK(probe.space("/")->size > 0);
  CHECK_FALSE(probe.is_served("/home/.ssh/id_rsa"));
  Findings findings("hosts_file");
  check_hosts_file(probe, {}, findings);
  REQUIRE(findings.list().size() == 1);
  CHECK(findings.list()[0].level == Level::problem);
}

TEST_CASE("Doctor: programs and libraries that hang or crash are survived", "[launcher][doctor]") {
  const MachineProbe probe({.version = "1", .working_directory = "/"});
  CHECK(probe.run({"sh", "-c", "echo out; echo err >&2; exit 3"}).status == 3);
  CHECK(probe.run({"sh", "-c", "echo out; echo err >&2"}).output == "out\nerr\n");
  CHECK_FALSE(probe.run({"/no/such/program"}).ended);
  CHECK(probe.run({"sh", "-c", "kill -9 $$"}).status == 137);
  CHECK_FALSE(probe.load("libno-such-library.so.1").ok());
  CHECK_THAT(probe.load("libc.so.6").value(), ContainsSubstring("/libc"));
  CHECK(probe.memory_file().ok());
}

TEST_CASE("Doctor: a peer is reached only if its own listener answers", "[launcher][doctor]") {
  const Listener first("127.0.0.1", {});
  const Listener second("127.0.0.1", {});
  CHECK(Listener("192.0.2.1", {}).port() == 0);
  CHECK_FALSE(Listener("192.0.2.1", {}).failure().empty());
  const UniqueFd silent = std::move(listen_tcp({"127.0.0.1", 0}).value());
  std::vector<Peer> peers;
  for (int i = 0; i < 100; ++i) {
    const Listener& one = i % 2 == 0 ? first : second;
    peers.push_back({"good", "127.0.0.1", one.port(), one.nonce()});
  }
  CHECK(reach_all(peers).empty());
  peers = {{"other", "127.0.0.1", first.port(), second.nonce()},
           {"silent", "127.0.0.1", bound_port(silent.get()), first.nonce()},
           {"shut", "127.0.0.1", 1, first.nonce()}};
  std::vector<Unreached> unreached = reach_all(peers);
  std::ranges::sort(unreached, {}, &Unreached::host);
  REQUIRE(unreached.size() == 3);
  CHECK_THAT(unreached[0].reason, ContainsSubstring("another machine"));
  CHECK_THAT(unreached[1].reason, ContainsSubstring("refused"));
  CHECK_THAT(unreached[2].reason, ContainsSubstring("no data arrives"));
}

TEST_CASE("Doctor: many peers go in messages that fit and come back", "[launcher][doctor]") {
  std::vector<Peer> peers;
  for (int i = 0; i < 1000; ++i) peers.push_back({fmt::format("host{}", i), "::1", i, "0123abcd"});
  std::vector<Peer> back;
  for (const std::string& message : encode_reach(peers)) {
    CHECK(message.size() <= 8192);
    const std::vector<Peer> part = decode_reach(message);
    back.insert(back.end(), part.begin(), part.end());
  }
  REQUIRE(back.size() == peers.size());
  CHECK(back[999].host == "host999");
  CHECK(back[999].port == 999);
  CHECK_THROWS(decode_reach("reach\nhost ::1 port nonce"));
  CHECK_THROWS(decode_says("no JSON"));
  CHECK_THROWS(decode_says("{\"kind\": \"unheard\"}"));
}

TEST_CASE("Doctor: different clocks and machines are reported", "[launcher][doctor]") {
  std::vector<HostReport> reports{healthy_report("w0"), healthy_report("w1")};
  compare_hosts(reports);
  CHECK(reports[0].findings.empty());
  CHECK(checks_of(reports[1].findings) == std::vector<std::string>{"clock"});
  CHECK(count_problems(reports) == 0);

  reports = {healthy_report("w0"), healthy_report("w1"), healthy_report("w2")};
  reports[1].clock = {-90, 0.01};
  reports[2].clock = {1.5, 0.8};  // which may be less than a second
  compare_hosts(reports);
  CHECK(count_problems(reports) == 1);
  CHECK_THAT(reports[1].findings[0].what, ContainsSubstring("90.000 s behind"));

  reports = {healthy_report("w0"), healthy_report("w1")};
  reports[1].machine = {"Another", "avx2", 4, 16 * gibibyte};
  compare_hosts(reports);
  CHECK(checks_of(reports[1].findings) ==
        std::vector<std::string>{"clock", "same_hosts", "same_hosts", "same_hosts"});
  CHECK(count_problems(reports) == 0);
}
