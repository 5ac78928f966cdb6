#!/bin/sh
# Runs the tests of libs/java whose JVM has a limit that changes, on cgroup v2, in a guest of the lab: java.sh LAB [MODULE...]
# It needs a JDK with jlink and Maven. The guest gets a small runtime made by jlink, the libraries of this host that it is linked with, and
# for each module its tests with their class path.
set -eu
lab=$1
shift
[ $# -gt 0 ] || set -- jetty grpc
tree=$(cd "$(dirname "$0")/../.." && pwd)
at=$tree/.cache/java/lab
console=org.junit.platform:junit-platform-console-standalone

for tool in jlink mvn; do
	command -v $tool >/dev/null || { echo "java.sh: $tool is missing: apt-get install openjdk-17-jdk-headless maven" >&2; exit 125; }
done
rm -rf "$at"
mkdir -p "$at/lib"
jlink --add-modules java.se,jdk.unsupported,jdk.management --strip-debug --no-header-files --no-man-pages --compress=2 --output "$at/jre"

modules=$(echo "$@" | tr ' ' ',')
# JUnit 5.n has the platform 1.n.
version=$(sed -n 's|.*<junit.version>5\(.*\)</junit.version>.*|1\1|p' "$tree/libs/java/pom.xml")
(cd "$tree/libs/java" &&
	mvn -B -ntp -q -DskipTests -pl "$modules" -am package dependency:copy-dependencies -DincludeScope=test "-DoutputDirectory=$at/of/\${project.artifactId}" &&
	mvn -B -ntp -q -N dependency:copy "-Dartifact=$console:$version" "-DoutputDirectory=$at")

# The dynamic linker finds the libraries where they are here.
set -- "$@" --
libraries=$(find "$at/jre" -name '*.so' -o -path '*/bin/java' | xargs ldd 2>/dev/null | sed -n 's|.*=> \(/[^ ]*\) .*|\1|p; s|^[[:space:]]*\(/[^ ]*\) .*|\1|p' | grep -v "^$at" | sort -u)
for l in $libraries; do
	set -- "$@" --file "$l=$(readlink -f "$l")"
done
commands='echo +cpu >/sys/fs/cgroup/cgroup.subtree_control'
while [ "$1" != -- ]; do
	m=$1
	shift
	mkdir -p "$at/of/unthrottle-$m"
	cp -r "$tree/libs/java/$m/target/classes" "$tree/libs/java/$m/target/test-classes" "$at/of/unthrottle-$m/"
	of=/java/of/unthrottle-$m
	# The tests start a JVM of their own with the class path of theirs.
	path="$of/classes:$of/test-classes:\$(echo $of/*.jar | tr ' ' ':'):/java/$(basename "$at"/junit-platform-console-standalone-*.jar)"
	commands="$commands && /java/jre/bin/java -cp $path org.junit.platform.console.ConsoleLauncher execute --disable-banner --details=summary --fail-if-no-tests --select-class io.github.unthrottle.$m.ResizeInPlaceTest"
done
shift
out=$at/output.txt
rc=0
"$lab" run --timeout 15m --memory 3072 --file "/java=$at" "$@" -- sh -c "$commands" >"$out" 2>&1 || rc=$?
cat "$out"
if grep -q 'NOT DONE' "$out"; then
	echo "java.sh: the guest could not do what the tests need" >&2
	exit 125
fi
exit $rc
