package probe

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

const sumFile = "bpf/SHA256SUMS"

// TestObjectsAreFresh checks that the compiled object belongs to the sources beside it. `make generate` writes both
// sums.
func TestObjectsAreFresh(t *testing.T) {
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
	want, err := os.ReadFile(sumFile)
	if err != nil || string(want) != sums.String() {
		t.Errorf("the object or a source has changed since `make generate` (%v); the sums are now\n%s", err, sums.String())
	}
}

// TestObjectHasAllPrograms checks that the object has the programs that the loader names, and the license that GPL-only
// helpers need.
func TestObjectHasAllPrograms(t *testing.T) {
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Concat(whileRecording, onSockets)
	for name := range always {
		names = append(names, name)
	}
	for _, name := range names {
		p := spec.Programs[name]
		if p == nil || p.Type != ebpf.Tracing || p.AttachType != ebpf.AttachTraceRawTp || p.License != "Dual BSD/GPL" {
			t.Errorf("program %s: %+v", name, p)
		}
	}
}
