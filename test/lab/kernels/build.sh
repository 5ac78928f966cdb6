#!/bin/sh
# Builds the kernel that lets slices expire, and for comparison the same one
# without the patch: Debian's linux-source-6.1, affected.config,
# slice-expiry.patch. Prints the two paths.
#
#   test/lab/kernels/build.sh [FOLDER]     ~/.cache/unthrottle/lab/kernel-src
#
# Nothing is installed. Needs, beside apt and gcc: make flex bison bc xz-utils
# libelf-dev. 1.5 GB of disk, a few CPU-minutes; JOBS says how many at once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/unthrottle/lab/kernel-src}
jobs=${JOBS:-2}

missing=
for tool in apt-get dpkg-deb xz gcc make flex bison bc patch; do
	command -v "$tool" >/dev/null || missing="$missing $tool"
done
[ -e /usr/include/libelf.h ] || missing="$missing libelf.h"
if [ -n "$missing" ]; then
	echo "build a kernel: missing:$missing; apt-get install gcc make flex bison bc patch xz-utils libelf-dev" >&2
	exit 125
fi

mkdir -p "$dir/package" "$dir/build"
cd "$dir"
if [ ! -e unpacked ]; then
	rm -rf package/* linux-source-6.1
	(cd package && apt-get -q download linux-source-6.1 >&2)
	dpkg-deb -x package/linux-source-6.1_*.deb package
	tar -xJf package/usr/src/linux-source-6.1.tar.xz
	cp linux-source-6.1/kernel/sched/fair.c linux-source-6.1/kernel/sched/sched.h package/
	rm -rf package/usr package/*.deb
	touch unpacked
fi

# compile NAME leaves vmlinux-NAME; make finds what has to be built anew.
compile() {
	nice -n 19 make -s -C build -j"$jobs" LOCALVERSION="-$1" vmlinux >&2
	cp build/vmlinux "vmlinux-$1"
	echo "$dir/vmlinux-$1"
}
cp package/fair.c package/sched.h linux-source-6.1/kernel/sched/
make -s -C linux-source-6.1 O="$dir/build" KCONFIG_ALLCONFIG="$here/affected.config" allnoconfig >&2
compile slices-kept
patch -s -p1 -d linux-source-6.1 <"$here/slice-expiry.patch"
compile slices-expire
