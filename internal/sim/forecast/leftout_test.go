package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// The note tells threads, not events: six threads beyond the bound that run again and again are six. An id that the kernel
// uses again is another thread.
func TestLeftOutCountsThreads(t *testing.T) {
	b, err := newBuilder(*rt.New(2).Limit(20*ms, 100*ms).Header())
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	add := func(e recording.Event) {
		at += 1000
		e.AtNS = at
		b.add(&e)
	}
	turn := func(tid uint32) {
		add(recording.Event{Kind: recording.Wakeup, Thread: tid})
		add(recording.Event{Kind: recording.Switch, NextThread: tid})
		add(recording.Event{Kind: recording.Switch, Thread: tid})
	}
	for tid := range uint32(maxThreads) {
		turn(1000 + tid)
	}
	const beyond = 1000 + maxThreads
	for range 50 {
		for tid := range uint32(6) {
			turn(beyond + tid)
		}
	}
	if b.leftOut.count != 6 {
		t.Errorf("6 threads are left out, counted %d", b.leftOut.count)
	}
	add(recording.Event{Kind: recording.Switch, NextThread: beyond})
	add(recording.Event{Kind: recording.Exit, Thread: beyond})
	add(recording.Event{Kind: recording.Switch, Thread: beyond})
	add(recording.Event{Kind: recording.Leave, Thread: beyond + 1})
	turn(beyond)
	turn(beyond + 1)
	l, err := b.finish(recording.Footer{EndNS: at + 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("the replay leaves out 8 threads beyond the first %d", maxThreads); !slices.Contains(l.notes, want) {
		t.Errorf("notes: %s", strings.Join(l.notes, "; "))
	}
}

// What is followed to tell threads from ids is bounded, and the note says where it does not know them all.
func TestLeftOutIsBounded(t *testing.T) {
	var l leftOut
	for tid := range uint32(2 * maxThreads) {
		l.add(tid + 1)
	}
	if l.count != maxThreads || len(l.dying) != maxThreads || !l.uncounted {
		t.Errorf("%d counted, %d followed, not all known: %v", l.count, len(l.dying), l.uncounted)
	}
}
