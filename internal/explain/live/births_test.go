package live

import (
	"errors"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Forks that keep a name of the start are asked for their titles once they run, and others are not.
func TestTitlesOfForks(t *testing.T) {
	b := newBirths(&recording.Header{Threads: []recording.Thread{{TID: 10, TGID: 10, Comm: "postgres"}}})
	titles := map[int]string{20: "postgres: parallel worker for PID 10", 21: ""}
	b.title = func(pid int) (string, []string, error) {
		if titles[pid] == "" {
			return "", nil, errors.New("ended")
		}
		return "postgres", []string{titles[pid]}, nil
	}
	born := func(tid uint32, name string) {
		b.look(&recording.Event{Kind: recording.Name, Thread: tid, TGID: tid, Text: name})
	}
	born(20, "postgres")
	born(21, "postgres")
	born(22, "gzip")
	if len(b.found) != 0 {
		t.Errorf("%+v before they run", b.found)
	}
	b.look(&recording.Event{AtNS: titleAfter.Nanoseconds()})
	if len(b.found) != 1 || b.found[0].TGID != 20 || b.found[0].Cmdline[0] != titles[20] || b.asked != 2 {
		t.Errorf("%d asked: %+v", b.asked, b.found)
	}
	for i := range uint32(10 * maxTitles) {
		b.look(&recording.Event{AtNS: int64(time.Hour) + int64(i)*int64(time.Second), Kind: recording.Name,
			Thread: 100 + i, TGID: 100 + i, Text: "postgres"})
	}
	if b.asked != maxTitles {
		t.Errorf("%d asked", b.asked)
	}
}

// A recording that no longer fits into memory is still passed on, until that fails too.
func TestTee(t *testing.T) {
	kept := 0
	var failing error
	copied := &tee{keep: writer(func(b []byte) (int, error) { kept += len(b); return len(b), failing })}
	block := make([]byte, maxCopy/2+1)
	for range 2 {
		if _, err := copied.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if !copied.full || copied.memory.Len() != 0 || kept != 2*len(block) {
		t.Errorf("full %v, %d bytes in memory, %d kept", copied.full, copied.memory.Len(), kept)
	}
	failing = errors.New("disk full")
	if _, err := copied.Write(block); !errors.Is(err, errNoRoom) || copied.failed != failing {
		t.Errorf("%v, %v", err, copied.failed)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
