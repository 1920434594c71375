#!/bin/sh
# Unpacks the arm64 packages of a list into a folder, without installing them: apt gets a state of its
# own there, so that neither root nor a foreign architecture of the machine is needed.
#
# usage: fetch_sysroot.sh <list> <folder>
set -eu

list=$1
mkdir -p "$2"
folder=$(CDPATH='' cd -- "$2" && pwd -P)
state=$folder/.apt
sum=$(sha256sum "$list" | cut -d ' ' -f 1)
[ "$(cat "$folder/.complete" 2>/dev/null)" != "$sum" ] || exit 0

rm -rf "$folder/usr" "$folder/lib" "$folder/.complete" "$state"
mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/packages"
: >"$state/status"
apt() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$state" \
    -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status" \
    -o Dir::Cache="$state" -o APT::Sandbox::User="$(id -un)" "$@"
}
apt update || exit 1
packages=$(sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$list")
# shellcheck disable=SC2086 # the list is meant to be split
(cd "$state/packages" && apt download $packages) || exit 1
for package in "$state"/packages/*.deb; do
  dpkg-deb -x "$package" "$folder"
done
# Links to absolute places mean places in the sysroot.
find "$folder" -type l -lname '/*' | while read -r link; do
  ln -sfn "$folder$(readlink "$link")" "$link"
done
# The cross compiler looks into its own folder of headers for one architecture, not into this one.
cp -R "$folder/usr/include/aarch64-linux-gnu/." "$folder/usr/include/"
rm -rf "$state"
printf '%s\n' "$sum" >"$folder/.complete"
