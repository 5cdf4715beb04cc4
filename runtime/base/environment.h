#pragma once

/// Names of environment variables: the contract between the launcher and the processes that it
/// starts.
namespace dstrain::env {

inline constexpr const char* rank = "RANK";
inline constexpr const char* local_rank = "LOCAL_RANK";
inline constexpr const char* world_size = "WORLD_SIZE";
inline constexpr const char* local_world_size = "LOCAL_WORLD_SIZE";
inline constexpr const char* local_size = "LOCAL_SIZE";
inline constexpr const char* cross_rank = "CROSS_RANK";
inline constexpr const char* cross_size = "CROSS_SIZE";
inline constexpr const char* master_addr = "MASTER_ADDR";
inline constexpr const char* master_port = "MASTER_PORT";
inline constexpr const char* omp_num_threads = "OMP_NUM_THREADS";
inline constexpr const char* token = "DSTRAIN_TOKEN";  ///< guards the rendezvous
inline constexpr const char* token_directory = "DSTRAIN_TOKEN_DIRECTORY";  ///< see job_token_file.h
inline constexpr const char* job = "DSTRAIN_JOB";  ///< the id printed at start
/// The version of the dstrain that started the rank.
inline constexpr const char* launcher_version = "DSTRAIN_LAUNCHER_VERSION";
inline constexpr const char* comm = "DSTRAIN_COMM";        ///< how ranks communicate
inline constexpr const char* io = "DSTRAIN_IO";            ///< how swap files are read and written
inline constexpr const char* timeout = "DSTRAIN_TIMEOUT";  ///< rendezvous, in seconds
inline constexpr const char* checked = "DSTRAIN_CHECKED";  ///< 1: the launcher has checked files
inline constexpr const char* restart_count = "DSTRAIN_RESTART_COUNT";  ///< absent the first time
/// The source of the number of ranks, for a launcher that does not know the others of its job: its
/// name and options. For messages.
inline constexpr const char* world_claim = "DSTRAIN_WORLD_CLAIM";
inline constexpr const char* kept_batch = "DSTRAIN_KEPT_BATCH";  ///< of an elastic job
/// Where the options of a rank's file of options stand (option_places.h); absent: no file.
inline constexpr const char* option_places = "DSTRAIN_OPTION_PLACES";
inline constexpr const char* terminal =
    "DSTRAIN_TERMINAL";                                    ///< 1: the launcher talks with a person
inline constexpr const char* silence = "DSTRAIN_SILENCE";  ///< seconds until a silent host is lost
inline constexpr const char* hang =
    "DSTRAIN_HANG";  ///< least seconds until a hang is reported; 0: never
/// Folders, separated by colons, that are searched for plug-ins first.
inline constexpr const char* plug_in_path = "DSTRAIN_PLUGIN_PATH";
/// The directory in which device files of GPUs are counted, for tests; absent: /dev.
inline constexpr const char* gpu_directory = "DSTRAIN_GPU_DIRECTORY";
inline constexpr const char* log_level = "DSTRAIN_LOG_LEVEL";          ///< as --log_level
inline constexpr const char* device = "DSTRAIN_DEVICE";                ///< auto, cpu or cuda
inline constexpr const char* device_memory = "DSTRAIN_DEVICE_MEMORY";  ///< bytes per rank
inline constexpr const char* host_memory = "DSTRAIN_HOST_MEMORY";      ///< bytes per node

}  // namespace dstrain::env
