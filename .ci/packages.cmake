# What `cmake --install` installs, and in which package each file is. A component is a package; its
# name is here, and .ci/package.sh makes all of them.
set(package_of_programs dstrain)
set(package_of_library libdstrain${PROJECT_VERSION_MAJOR})
set(package_of_development libdstrain-dev)
set(package_of_openmpi dstrain-openmpi)
set(package_of_mpich dstrain-mpich)
set(package_of_cuda dstrain-cuda)
set(components programs library development)

option(DSTRAIN_BUNDLE "install the libraries of this system that the programs need, too" OFF)
# A tree in /usr has Debian's places. Any other works wherever it is put.
set(in_usr OFF)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(in_usr ON)
endif()

# The library that programs and plug-ins share is private to them, and lies in a folder of its own.
set(private ${CMAKE_INSTALL_LIBDIR}/dstrain)
file(RELATIVE_PATH private_from_bin /${CMAKE_INSTALL_BINDIR} /${private})
get_property(plug_ins GLOBAL PROPERTY dstrain_plug_ins)
set_target_properties(dstrain dstraind PROPERTIES
  INSTALL_RPATH "$ORIGIN/${private_from_bin};$ORIGIN")  # the second for --copy_binary
set_target_properties(dstrain_core ${plug_ins} PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(libdstrain PROPERTIES INSTALL_RPATH "$ORIGIN/dstrain")

install(TARGETS dstrain dstraind COMPONENT programs)
set(bundling $<TARGET_FILE:dstrain> $<TARGET_FILE:dstraind>)
foreach(target dstrain_core ${plug_ins})
  set(component library)
  if(target MATCHES "^dstrain_(cuda|mpi_openmpi|mpi_mpich)$")
    string(REGEX REPLACE "^dstrain_(mpi_)?" "" component ${target})
    list(APPEND components ${component})
  else()
    list(APPEND bundling $<TARGET_FILE:${target}>)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${private} COMPONENT ${component})
endforeach()
install(TARGETS libdstrain LIBRARY COMPONENT library NAMELINK_COMPONENT development)

# What the program prints of itself is written to the build folder first, by one installation at a
# time.
install(CODE "file(LOCK \"${PROJECT_BINARY_DIR}/install.lock\" GUARD PROCESS)" COMPONENT programs)
# What shells complete with.
set(zsh_functions zsh/site-functions)
if(in_usr)
  set(zsh_functions zsh/vendor-completions)
endif()
foreach(script bash:bash-completion/completions/dstrain zsh:${zsh_functions}/_dstrain
    fish:fish/vendor_completions.d/dstrain.fish)
  string(REGEX REPLACE ":.*" "" shell ${script})
  string(REGEX REPLACE ".*:" "${CMAKE_INSTALL_DATADIR}/" file ${script})
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(GET file FILENAME name)
  set(made ${PROJECT_BINARY_DIR}/completions/${shell})
  install(CODE "
    file(MAKE_DIRECTORY \"${made}\")
    execute_process(COMMAND \"$<TARGET_FILE:dstrain>\" completion ${shell}
      OUTPUT_FILE \"${made}/${name}\" COMMAND_ERROR_IS_FATAL ANY)
    file(INSTALL \"${made}/${name}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\")"
    COMPONENT programs)
endforeach()

# Manual pages, which Debian keeps compressed.
set(made ${PROJECT_BINARY_DIR}/manual)
set(compress)
if(in_usr)
  set(compress "file(GLOB pages \"${made}/*.1\")
    execute_process(COMMAND gzip -9n \${pages} COMMAND_ERROR_IS_FATAL ANY)")
endif()
install(CODE "
  file(REMOVE_RECURSE \"${made}\")
  execute_process(COMMAND sh \"${PROJECT_SOURCE_DIR}/.ci/man_pages.sh\"
    \"$<TARGET_FILE:dstrain>\" \"${made}\" COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE \"${made}/dstraind.1\" \".so man1/dstrain.1\\n\")
  ${compress}
  file(GLOB pages \"${made}/*\")
  file(INSTALL \${pages} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\")"
  COMPONENT programs)

# Texts. In Debian's places each package has a copyright file and a list of changes.
set(docs ${CMAKE_INSTALL_DATADIR}/doc)
install(FILES README.md DESTINATION ${docs}/dstrain COMPONENT programs)
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
install(FILES ${pages} DESTINATION ${docs}/dstrain/docs COMPONENT programs)
install(DIRECTORY
  examples/container examples/infinity examples/kubernetes examples/slurm examples/systemd
  DESTINATION ${docs}/dstrain/examples COMPONENT programs USE_SOURCE_PERMISSIONS)
set(library_docs ${docs}/dstrain)
if(in_usr)
  set(library_docs ${docs}/${package_of_development})
endif()
install(DIRECTORY examples/library DESTINATION ${library_docs}/examples COMPONENT development)

set(texts ${PROJECT_BINARY_DIR}/package_texts)
file(WRITE ${texts}/copyright "dstrain
Copyright: the authors of dstrain

No license has been chosen for dstrain yet. Until then nobody but its authors has the right to copy,
change or distribute it, beyond what the law grants without a license.

The programs contain code of these libraries, which have licenses of their own.
")
foreach(header_library nlohmann-json3-dev libcli11-dev)
  set(terms /usr/share/doc/${header_library}/copyright)
  if(EXISTS ${terms})
    file(READ ${terms} terms)
    file(APPEND ${texts}/copyright "\n--- ${header_library}\n\n${terms}")
  endif()
endforeach()
install(FILES ${texts}/copyright DESTINATION ${docs}/dstrain COMPONENT programs)

# Built on Debian 12 a package needs the libraries of that: its version is 0.1.0-1~debian12.
cmake_host_system_information(RESULT os QUERY DISTRIB_ID DISTRIB_VERSION_ID)
list(JOIN os "" os)
string(REGEX REPLACE "[^A-Za-z0-9.+~]" "" revision "1~${os}")
set(DSTRAIN_CONTACT "dstrain maintainers <maintainers@dstrain.invalid>" CACHE STRING
  "the maintainer that packages name")
if(in_usr)
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD
    OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT date)  # the sources without their history
    set(date "Thu, 01 Jan 1970 00:00:00 +0000")
  endif()
  file(WRITE ${texts}/changes "dstrain (${PROJECT_VERSION}-${revision}) unstable; urgency=medium

  * Version ${PROJECT_VERSION}.

 -- ${DSTRAIN_CONTACT}  ${date}
")
  execute_process(COMMAND gzip -9nc ${texts}/changes OUTPUT_FILE ${texts}/changelog.Debian.gz
    COMMAND_ERROR_IS_FATAL ANY)
  foreach(component ${components})
    install(FILES ${texts}/changelog.Debian.gz DESTINATION ${docs}/${package_of_${component}}
      COMPONENT ${component})
    if(NOT component STREQUAL "programs")
      install(FILES ${texts}/copyright DESTINATION ${docs}/${package_of_${component}}
        COMPONENT ${component})
    endif()
  endforeach()
endif()

# The libraries that the programs need, for systems that have none of them: all but those of C and
# C++, MPI and CUDA, which belong to the machine. Debian 12's libstdc++ needs a newer glibc than
# everything else here, and is older than what MPI and CUDA of a newer machine may need. Each has
# the name that the loader looks for, and the terms of its Debian package lie beside the copyright
# file.
if(DSTRAIN_BUNDLE)
  set(of_the_machine
    "^(ld-linux.*|lib(c|m|mvec|pthread|dl|rt|resolv|util|anl|gcc_s|stdc\\+\\+))\\.so")
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${bundling} RESOLVED_DEPENDENCIES_VAR found
      PRE_EXCLUDE_REGEXES [[${of_the_machine}]] \"^libdstrain_core\")
    foreach(library \${found})
      cmake_path(GET library FILENAME name)
      file(REAL_PATH \"\${library}\" real)
      file(INSTALL \"\${real}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${private}\"
        RENAME \"\${name}\")
      execute_process(COMMAND dpkg-query --search \"\${real}\" OUTPUT_VARIABLE owner ERROR_QUIET)
      string(REGEX REPLACE \":.*\" \"\" owner \"\${owner}\")
      if(owner)
        file(INSTALL \"/usr/share/doc/\${owner}/copyright\" FOLLOW_SYMLINK_CHAIN
          DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${docs}/dstrain/libraries/\${owner}\")
      endif()
    endforeach()" COMPONENT library)
endif()

# Packages, which .ci/package.sh makes: `cpack -G DEB` with the prefix /usr, `cpack -G TGZ` with
# another.
set(CPACK_PACKAGE_NAME dstrain)
set(CPACK_PACKAGE_VENDOR "dstrain")
set(CPACK_PACKAGE_CONTACT "${DSTRAIN_CONTACT}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME dstrain-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_ARCHIVE_THREADS 0)
set(CPACK_THREADS 0)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_SOURCE dstrain)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
math(EXPR next_minor "${PROJECT_VERSION_MINOR} + 1")
set(next_minor ${PROJECT_VERSION_MAJOR}.${next_minor})
# Libraries by their packages; ours, by exactly this version.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/bin)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
# What packages of others depend on that link the library, and that the loader's cache knows it.
file(WRITE ${texts}/shlibs "libdstrain ${PROJECT_VERSION_MAJOR} ${package_of_library} \
(>= ${PROJECT_VERSION}), ${package_of_library} (<< ${next_minor})\n")
file(WRITE ${texts}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${texts}/shlibs ${texts}/triggers)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(component ${components})
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${package_of_${component}})
  if(NOT component STREQUAL "library")
    set(CPACK_COMPONENT_${COMPONENT}_DEPENDS library)
  endif()
endforeach()
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS
  "dstrain-cuda, dstrain-openmpi | dstrain-mpich, libdstrain-dev, openssh-client")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "dstrain")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake | pkgconf, dstrain")
set(CPACK_DEBIAN_OPENMPI_PACKAGE_RECOMMENDS "openmpi-bin")
set(CPACK_DEBIAN_MPICH_PACKAGE_RECOMMENDS "mpich")
# NVIDIA's packages, which Debian lacks; its installer's libraries do as well.
string(REPLACE "." "-" cuda_number "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS "libcublas-${cuda_number}, libnccl2")

set(about "dstrain trains language models on one machine or many. Parameters, gradients
and optimizer states are sharded over the ranks (ZeRO), and offloaded to host
memory or disks.")
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "train large language models with ZeRO sharding
${about}
This package has the programs.")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "train large language models - shared library
${about}
This package has the library of training programs, and what dstrain's own
programs share.")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "train large language models - development files
${about}
This package has headers, the CMake package and examples of training programs.")
set(CPACK_DEBIAN_OPENMPI_DESCRIPTION "train large language models - OpenMPI
${about}
With this package, ranks that OpenMPI's mpirun starts communicate through MPI.")
set(CPACK_DEBIAN_MPICH_DESCRIPTION "train large language models - MPICH
${about}
With this package, ranks that MPICH's mpiexec starts communicate through MPI.")
set(CPACK_DEBIAN_CUDA_DESCRIPTION "train large language models - NVIDIA GPUs
${about}
With this package, ranks train on GPUs. It needs cuBLAS of CUDA ${CUDAToolkit_VERSION_MAJOR}, and
NCCL for several GPUs.")
include(CPack)
