# Writes a source with the commit of the repository SOURCE to OUTPUT, if it has changed.
find_program(GIT git)
set(commit "")
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(text "#include \"cmd/dstrain/commands.h\"

const char* dstrain::cmd::built_commit() {
  return \"${commit}\";
}
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUTPUT} "${text}")
endif()
