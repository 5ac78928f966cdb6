#!/bin/sh
# How large the tree is for who has to read it: lines of code without tests and generated files, and words. Run it from the top: make size.
set -eu
lines() { xargs -r cat | wc -l; }
words() { xargs -r cat | tr -s '[:space:]' '\n' | grep -c '[[:alnum:]]'; }
generated='_bpfel\.go$|zz_generated|\.pb\.go$|/golden/|/vmlinux'
sources() { git ls-files '*.go' '*.c' '*.h' '*.java' | grep -vE "$generated"; }
# Packages that only tests import count as tests.
tests='_test\.go$|^test/|/src/test/|/testdata/|/curetest/|/cgrouptest/|/topologytest/|/recordingtest/|/cgroupmodel/|/load/provoke/|/sim/agreement/'
row() { printf '%-48s %8d\n' "$1" "$2"; }
row 'lines of Go, C and Java without tests' "$(sources | grep -vE "$tests" | lines)"
row 'lines of tests' "$(sources | grep -E "$tests" | lines)"
row 'words of pages under docs' "$(git ls-files 'docs/*.md' | words)"
row 'words of README.md' "$(echo README.md | words)"
row 'words of CHANGELOG.md' "$(echo CHANGELOG.md | words)"
row 'lines of JSON records' "$(git ls-files 'bench/*.json' 'bench/*.jsonl' 'fleet/*.json' 'internal/sim/*.json' | lines)"
