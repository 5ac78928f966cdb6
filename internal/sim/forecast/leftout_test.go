package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
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
	exit := func(tid uint32) { add(recording.Event{Kind: recording.Exit, Thread: tid}) }
	for tid := range uint32(maxThreads) {
		turn(1000 + tid)
		if tid%2 == 0 {
			exit(1000 + tid)
		}
	}
	const beyond = 1000 + maxThreads
	for range 50 {
		for tid := range uint32(6) {
			turn(beyond + tid)
		}
	}
	if b.leftOut != 6 {
		t.Errorf("6 threads are left out, counted %d", b.leftOut)
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

// Of threads that are there at once only so many are told apart, and the note says no number then.
func TestLeftOutIsBounded(t *testing.T) {
	b, err := newBuilder(*rt.New(2).Limit(20*ms, 100*ms).Header())
	if err != nil {
		t.Fatal(err)
	}
	for tid := range uint32(schedule.MaxThreads + 5) {
		b.add(&recording.Event{AtNS: int64(tid), Kind: recording.Wakeup, Thread: tid + 1})
	}
	l, err := b.finish(recording.Footer{EndNS: schedule.MaxThreads + 6})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("the replay leaves out threads beyond the first %d", maxThreads); !slices.Contains(l.notes, want) {
		t.Errorf("notes: %s", strings.Join(l.notes, "; "))
	}
}
