package probe

// The compiled object is in the tree, so users need no clang. `make generate` needs clang 14 or later and libbpf-dev.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go@v0.22.0 -cc clang-14 -strip llvm-strip-14 -target bpfel -go-package probe -type container -type usage -type cpu -type record -type record_more -type record_thread -type record_period -type record_datagram -type thread_row -type row -type record_kind -type record_flags -type holder_kind -type trouble bpf bpf/probe.bpf.c -- -Wall -Wno-unused-function
