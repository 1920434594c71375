# package_upgrade(<root> <packages>): dpkg upgrades a root that holds corelane-rknnrt of release 0.1.0, which had
# the runtime's files, and then swaps the RKNN API for the object runtime. dpkg thereby checks that no two packages
# hold one file. It has to be root: really, or as far as its files are concerned.
include("${CMAKE_CURRENT_LIST_DIR}/step_run.cmake")

# owned_by(<root> <pattern> <package>): that package alone has the file.
function(owned_by root pattern package)
  step_run(COMMAND dpkg-query "--admindir=${root}/var/lib/dpkg" -S "${pattern}" OUT owner)
  if(NOT owner MATCHES "^${package}(:[a-z0-9]+)?: [^\n]*\n$")
    message(FATAL_ERROR "${pattern} is not in ${package} alone: ${owner}")
  endif()
endfunction()

# corelane-rknnrt as it was, as far as dpkg looks at it, with one of the files that are the runtime's now.
function(make_old_package folder out)
  step_run(COMMAND dpkg --print-architecture OUT architecture)
  string(STRIP "${architecture}" architecture)
  file(WRITE "${folder}/usr/bin/corelane" "the tool")
  file(WRITE "${folder}/DEBIAN/control" "Package: corelane-rknnrt\nVersion: 0.1.0\nArchitecture: ${architecture}\n"
    "Maintainer: The Corelane developers\nDescription: librknnrt.so with all that it runs on\n")
  step_run(COMMAND dpkg-deb --root-owner-group -b "${folder}" "${out}")
endfunction()

function(package_upgrade root packages)
  set(as_root unshare -r)
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${as_root} true RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(user EQUAL 0)
    set(as_root "")
  elseif(NOT status EQUAL 0)
    message(STATUS "an upgrade is not tried: this user can neither be root nor seem to be it")
    return()
  endif()
  # What is installed on this machine is installed in the root, as far as dpkg looks at it.
  file(MAKE_DIRECTORY "${root}/var/lib/dpkg/updates" "${root}/var/lib/dpkg/info")
  step_run(OUT status COMMAND dpkg-query -W -f "Package: \${Package}\\nStatus: \${Status}\\nVersion: \${Version}\
\\nArchitecture: \${Architecture}\\nMulti-Arch: \${Multi-Arch}\\nProvides: \${Provides}\\nMaintainer: any\
\\nDescription: any\\n\\n")
  string(REGEX REPLACE "(Provides|Multi-Arch): \n" "" status "${status}")
  file(WRITE "${root}/var/lib/dpkg/status" "${status}")
  step_run(OUT names COMMAND dpkg-query -W -f "\${binary:Package}\\n")
  string(REGEX MATCHALL "[^\n]+" names "${names}")
  foreach(name IN LISTS names)
    file(TOUCH "${root}/var/lib/dpkg/info/${name}.list")  # Without it dpkg warns.
  endforeach()
  # The packages' scripts call ldconfig alone, and the root has no shell to run them in.
  file(WRITE "${root}/stand_in/ldconfig" "#!/bin/sh\n")
  file(CHMOD "${root}/stand_in/ldconfig" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(dpkg ${as_root} env "PATH=${root}/stand_in:$ENV{PATH}:/usr/sbin:/sbin" dpkg "--root=${root}" --force-unsafe-io
    --force-script-chrootless)

  make_old_package("${root}/old" "${root}/old.deb")
  step_run(COMMAND ${dpkg} -i "${root}/old.deb")
  file(GLOB runtime "${packages}/corelane-runtime_*.deb")
  file(GLOB others "${packages}/*.deb")
  list(REMOVE_ITEM others ${runtime})
  set(object_runtime ${others})
  list(FILTER object_runtime INCLUDE REGEX "/corelane-qaic")
  list(FILTER others EXCLUDE REGEX "/corelane-qaic")
  # The runtime alone would leave the old package without its files: dpkg refuses it.
  step_run(COMMAND sh -c "! \"$@\"" sh ${dpkg} -i ${runtime})
  # apt gives dpkg both, and lets the old package wait. The runtime takes over the files of the old one.
  step_run(COMMAND ${dpkg} --auto-deconfigure -i ${runtime} ${others})
  owned_by("${root}" /usr/bin/corelane corelane-runtime)
  owned_by("${root}" "*/librknnrt.so" corelane-rknnrt)
  if(object_runtime)
    step_run(COMMAND ${dpkg} -i ${object_runtime})
    step_run(COMMAND ${dpkg} -r corelane-rknnrt-dev corelane-rknnrt)
    owned_by("${root}" "*/libQAic.so" corelane-qaic)
    owned_by("${root}" /usr/bin/corelane corelane-runtime)
  endif()
  message(STATUS "an upgrade from release 0.1.0 works")
endfunction()
