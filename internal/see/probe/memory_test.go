package probe_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/probe"
)

// TestOpenGivesMemoryBack checks that an agent that runs for months does not hold the memory for reading the kernel's
// types.
func TestOpenGivesMemoryBack(t *testing.T) {
	var before, after runtime.MemStats
	debug.FreeOSMemory() // what earlier tests left is not of Open
	runtime.ReadMemStats(&before)
	open(t, probe.Options{})
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if unused := after.HeapIdle - after.HeapReleased; unused > 2<<20 {
		t.Errorf("%d bytes are unused and not given back", unused)
	}
	if worked := after.TotalAlloc - before.TotalAlloc; worked < 2<<20 {
		t.Errorf("opening allocated only %d bytes: this test shows nothing", worked)
	}
}
