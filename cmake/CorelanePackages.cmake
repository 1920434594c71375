# Debian packages: `./dev package`, or cpack in a build folder configured as the preset `package`.
#   corelane-runtime  what every door runs on: libcorelane, driver modules, the engine, the tool
#   corelane-dev      what C++ programs, and drivers outside the tree, are built with
# Each door adds its own ones, which depend on exactly this build's runtime. Included by CorelaneInstall.cmake.
include_guard()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME corelane)
set(CPACK_PACKAGE_VENDOR "Corelane")
set(CPACK_PACKAGE_CONTACT "The Corelane developers")
# The default: with another one CPack would put it before the summary of each package.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_PROJECT_NAME} built using CMake")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
# Counts the packagings of one version. The packages of release 0.1.0 had no number, which sorts below 1.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(corelane_package_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
# What lies in a package of ours has no package of Debian to depend on.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
if(engine_dir) # Set by CorelaneInstall.cmake.
  # Without CORELANE_BUNDLE_ENGINE the package runs where it was built only.
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${engine_dir}")
endif()
set(CPACK_COMPONENTS_ALL "")

# corelane_package(<component> <package> SUMMARY <line> DESCRIPTION <text> [SECTION <section>]
#                  [NEEDS <package of ours>...] [LINKS <package of Debian>...] [INCLUDES <package of Debian>...])
# One component as one package, which needs the packages of this version named in NEEDS. LINKS are the packages
# that its programs link: a native build reads them from the programs, a cross build takes them from here. INCLUDES
# are those that its headers include.
function(corelane_package component package)
  cmake_parse_arguments(P "" "SUMMARY;DESCRIPTION;SECTION" "NEEDS;LINKS;INCLUDES" ${ARGN})
  set(depends ${P_INCLUDES})
  foreach(needed IN LISTS P_NEEDS)
    list(APPEND depends "${needed} (= ${corelane_package_version})")
  endforeach()
  string(TOUPPER "CPACK_DEBIAN_${component}" prefix)
  if(P_LINKS AND CMAKE_CROSSCOMPILING)
    # dpkg-shlibdeps asks the packages of this machine; these are those of the sysroot.
    list(APPEND depends ${P_LINKS})
  elseif(P_LINKS)
    set(${prefix}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  endif()
  list(JOIN depends ", " depends)
  set(${prefix}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(${prefix}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(${prefix}_DESCRIPTION "${P_SUMMARY}\n${P_DESCRIPTION}" PARENT_SCOPE)
  if(P_SECTION)
    set(${prefix}_PACKAGE_SECTION ${P_SECTION} PARENT_SCOPE)
  endif()
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  # Where Debian looks for the licence of a package.
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright
      DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component})
    if(notices_dir) # Set by CorelaneInstall.cmake.
      install(FILES "${notices_dir}/NOTICES.txt" "${notices_dir}/corelane.cdx.json"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component})
    endif()
  endif()
endfunction()

corelane_package(runtime corelane-runtime
  LINKS "libc6 (>= 2.36)" libdnnl2 libfmt9 libgcc-s1 libgomp1 libhwy1 libjpeg62-turbo libpng16-16
    libprotobuf-lite32 libspdlog1.10-fmt9 "libstdc++6 (>= 12)" libxxhash0
  SUMMARY "inference runtime for NPUs, with a virtual one"
  DESCRIPTION
"What the libraries of Corelane run on: its core, the devices with their engine,
and the command line tool corelane, which makes programs from ONNX models.")
# corelane-rknnrt of release 0.1.0 held these files.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_BREAKS "corelane-rknnrt (<< 0.1.0-1~)")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_REPLACES "corelane-rknnrt (<< 0.1.0-1~)")

corelane_package(dev corelane-dev SECTION libdevel NEEDS corelane-runtime INCLUDES libexpected-dev libfmt-dev
  SUMMARY "inference runtime for NPUs - C++ headers"
  DESCRIPTION
"Headers of Corelane's session, programs, batch scheduler and devices in C++20, with
pkg-config and CMake packages named corelane, and the suite that a driver of one's
own has to pass.")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS libgtest-dev) # Of the suite.
