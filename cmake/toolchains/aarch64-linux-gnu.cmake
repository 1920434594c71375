# Debian's cross compiler for aarch64, libraries of a sysroot (tools/cross/fetch_sysroot.sh), programs run
# by qemu. `./dev aarch64` makes what is named here.
get_filename_component(aarch64_root "${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
set(aarch64_cache "${aarch64_root}/.cache/aarch64")
set(aarch64_sysroot "${aarch64_cache}/sysroot")
set(triple aarch64-linux-gnu)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)

# Tools (protoc, flatc, Python) are this machine's; everything else is the target's.
set(CMAKE_FIND_ROOT_PATH "${aarch64_sysroot}" "/usr/${triple}" "${aarch64_cache}/engine")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${aarch64_sysroot}")
set(ENV{PKG_CONFIG_LIBDIR} "${aarch64_sysroot}/usr/lib/${triple}/pkgconfig:${aarch64_sysroot}/usr/share/pkgconfig")
set(CMAKE_C_FLAGS_INIT "-isystem ${aarch64_sysroot}/usr/include")
set(CMAKE_CXX_FLAGS_INIT "-isystem ${aarch64_sysroot}/usr/include")

# Libraries that libraries need.
set(aarch64_library_paths "${aarch64_sysroot}/usr/lib/${triple}:${aarch64_sysroot}/lib/${triple}")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-rpath-link,${aarch64_library_paths}")
endforeach()

find_program(CORELANE_QEMU NAMES qemu-aarch64-static qemu-aarch64)
set(CMAKE_CROSSCOMPILING_EMULATOR "${CORELANE_QEMU};-L;/usr/${triple};-E;LD_LIBRARY_PATH=${aarch64_library_paths}")
