package scx

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// TestObjectIsFresh checks that the compiled object belongs to the sources beside it. `make generate` writes the sums.
func TestObjectIsFresh(t *testing.T) {
	names, err := filepath.Glob("bpf/*.[ch]")
	if err != nil || len(names) < 6 {
		t.Fatalf("sources: %v %v", names, err)
	}
	var sums strings.Builder
	for _, name := range append(names, "bpf_bpfel.o") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), name)
	}
	want, err := os.ReadFile("bpf/SHA256SUMS")
	if err != nil || string(want) != sums.String() {
		t.Errorf("the object or a source has changed since `make generate` (%v); the sums are now\n%s", err, sums.String())
	}
}

// TestObject checks that the object has the scheduler, and the license that its kernel functions need.
func TestObject(t *testing.T) {
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	if m := spec.Maps[bpfMapUnthrottle]; m == nil || m.Type != ebpf.StructOpsMap {
		t.Errorf("no scheduler: %v", m)
	}
	if m := spec.Maps[bpfMapFaults]; m == nil || int(m.MaxEntries) != len(faultNames) {
		t.Errorf("%d faults have names: %v", len(faultNames), m)
	}
	for name, p := range spec.Programs {
		if p.Type != ebpf.StructOps || p.License != "Dual BSD/GPL" {
			t.Errorf("program %s: %v, license %q", name, p.Type, p.License)
		}
	}
}
