package probe

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// mostFollowed bounds how many pointers the verifier follows from tasks, on all paths together. For each it looks through the kernel's
// types by name up to four times (since Linux 6.4), which takes a millisecond. There were 591 where each path read its own pointers.
const mostFollowed = 250

// followed counts the lines of a verifier's log in which a pointer is read from a task that the kernel vouches for.
func followed(log string) (n int) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "=trusted_ptr_task_struct") && strings.Contains(line, ": (79) r") && !strings.Contains(line, "(r10 ") {
			n++
		}
	}
	return n
}

// TestFewPointersAreFollowed checks that loading the programs takes little CPU time from others: look-ups by name took nine tenths of it.
func TestFewPointersAreFollowed(t *testing.T) {
	require.BPF(t)
	cache := btf.NewCache()
	types, err := cache.Kernel()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	p := &Probe{options: Options{Containers: 10, Proc: "/proc"}}
	if p.kernel, err = readKernel(types); err != nil {
		t.Fatal(err)
	}
	if p.ncpu, err = ebpf.PossibleCPU(); err != nil {
		t.Fatal(err)
	}
	if err := p.prepare(spec); err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: cache,
		Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelInstruction, LogSizeStart: 64 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer coll.Close()
	all := 0
	for name, program := range coll.Programs {
		n := followed(program.VerifierLog)
		t.Logf("%s: %d", name, n)
		all += n
	}
	if all > mostFollowed {
		t.Errorf("the verifier follows %d pointers from tasks, want at most %d: read them before the paths part", all, mostFollowed)
	}
}
