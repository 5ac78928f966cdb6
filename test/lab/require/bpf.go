package require

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BPF needs a kernel that loads a tracing BPF program for us and publishes
// its types (BTF).
func BPF(t testing.TB) {
	t.Helper()
	need{name: needBPF, runsIn: inLab}.ask(t, tryBPF)
}

// SchedExt needs sched_ext, with no other scheduler loaded.
func SchedExt(t testing.TB) {
	t.Helper()
	need{name: needSchedExt, runsIn: inLab}.ask(t, trySchedExt)
}

func trySchedExt() error {
	const state = "/sys/kernel/sched_ext/state"
	now, err := os.ReadFile(state)
	if err != nil {
		return fmt.Errorf("the kernel has no sched_ext: %w", err)
	}
	if s := strings.TrimSpace(string(now)); s != "disabled" {
		return fmt.Errorf("%s is %q: a scheduler is loaded already", state, s)
	}
	return tryBPF()
}

// progLoad is the head of union bpf_attr for BPF_PROG_LOAD (linux/bpf.h).
type progLoad struct {
	progType uint32
	insnCnt  uint32
	insns    uint64
	license  uint64
	_        [24]byte // log_level, log_size, log_buf, kern_version, prog_flags
}

const maxLoadTries = 30

func tryBPF() error {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Errorf("the kernel publishes no BTF: %w", err)
	}
	// "r0 = 0; exit", as a raw tracepoint program: a type that needs
	// CAP_PERFMON too, as the probe does.
	insns := [2]uint64{0x00000000_000000b7, 0x00000000_00000095}
	license := [4]byte{'G', 'P', 'L', 0}
	attr := progLoad{
		progType: unix.BPF_PROG_TYPE_RAW_TRACEPOINT,
		insnCnt:  uint32(len(insns)),
		insns:    uint64(uintptr(unsafe.Pointer(&insns[0]))),
		license:  uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	var fd uintptr
	errno := unix.EAGAIN
	// The verifier gives up with EAGAIN if a signal arrives, and the Go runtime
	// sends itself some (libbpf and cilium/ebpf try again too).
	for tries := 0; errno == unix.EAGAIN && tries < maxLoadTries; tries++ {
		fd, _, errno = unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	}
	runtime.KeepAlive(&insns)
	runtime.KeepAlive(&license)
	if errno != 0 {
		return fmt.Errorf("bpf(BPF_PROG_LOAD): %w", errno)
	}
	return unix.Close(int(fd))
}
