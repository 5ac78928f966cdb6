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
	// Readers of earlier tests may still allocate, so the bound is a part of what opening took.
	worked := after.TotalAlloc - before.TotalAlloc
	if worked < 4<<20 {
		t.Fatalf("opening allocated only %d bytes: this test shows nothing", worked)
	}
	if unused := after.HeapIdle - after.HeapReleased; unused > worked/2 {
		t.Errorf("%d bytes are unused and not given back, of %d that opening allocated", unused, worked)
	}
}
