package scx

// The compiled object is in the tree, so users need no clang. `make generate` needs clang 14 or later and libbpf-dev.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go@v0.22.0 -cc clang-14 -strip llvm-strip-14 -no-global-types -target bpfel -go-package scx -type wish -type row -type control -type farewell bpf bpf/scx.bpf.c -- -mcpu=v3 -Wall -Wno-unused-function
