package flightrecorder

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func save(t *testing.T, s Store, at time.Time, id uint64, bytes int) (Kept, []Kept) {
	t.Helper()
	k, removed, err := s.Save(at, id, func(w io.Writer) error {
		_, err := io.CopyN(w, zero{}, int64(bytes))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return k, removed
}

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestStoreKeepsTheNewest(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "recordings")}
	if stored, err := s.List(); err != nil || len(stored) != 0 {
		t.Fatalf("before the first: %v, %v", stored, err)
	}
	var removed []Kept
	for i := range maxRecordings + 5 {
		_, gone := save(t, s, start.Add(time.Duration(i)*time.Minute), uint64(i%3), 10)
		removed = append(removed, gone...)
	}
	stored, err := s.List()
	if err != nil || len(stored) != maxRecordings || len(removed) != 5 {
		t.Fatalf("%d kept, %d removed, %v", len(stored), len(removed), err)
	}
	if !stored[0].At.Equal(start.Add(5*time.Minute)) || stored[0].ID != 2 || stored[0].Size != 10 {
		t.Errorf("the oldest is %+v", stored[0])
	}
	if !removed[0].At.Equal(start) {
		t.Errorf("removed first: %+v", removed[0])
	}
}

// Recordings from when the clock was ahead make room for new ones.
func TestStoreAfterTheClockWasSetBack(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	ahead := start.Add(24 * time.Hour)
	for i := range maxRecordings {
		save(t, s, ahead.Add(time.Duration(i)*time.Second), 1, 10)
	}
	for i := range time.Duration(3) {
		kept, removed := save(t, s, start.Add(i*time.Second), 2, 10)
		if len(removed) != 1 || !removed[0].At.Equal(ahead.Add(i*time.Second)) {
			t.Fatalf("kept %v, removed %v", kept, removed)
		}
	}
}

func TestStoreBoundsBytes(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	save(t, s, start, 1, maxRecordingBytes/2)
	save(t, s, start.Add(time.Minute), 1, maxRecordingBytes/4)
	_, removed := save(t, s, start.Add(2*time.Minute), 1, maxRecordingBytes/2)
	if len(removed) != 1 || !removed[0].At.Equal(start) {
		t.Errorf("removed %+v", removed)
	}
	if _, _, err := s.Save(start, 2, func(w io.Writer) error {
		_, err := io.CopyN(w, zero{}, maxRecordingBytes+1)
		return err
	}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("too large: %v", err)
	}
}

func TestNothingHalfIsKept(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	broken := errors.New("the probe went away")
	if _, _, err := s.Save(start, 1, func(w io.Writer) error { io.WriteString(w, "half"); return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	left := filepath.Join(s.Dir, "20260101T000000.000Z-1"+recordingSuffix+partSuffix)
	if err := os.WriteFile(left, []byte("of a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stored, _ := s.List(); len(stored) != 0 {
		t.Errorf("%+v", stored)
	}
	save(t, s, start, 1, 1)
	if entries, _ := os.ReadDir(s.Dir); len(entries) != 1 {
		t.Errorf("%d files", len(entries))
	}
}

func TestNearest(t *testing.T) {
	at := func(minute int, id uint64) Kept {
		return Kept{At: start.Add(time.Duration(minute) * time.Minute), ID: id}
	}
	stored := []Kept{at(0, 1), at(20, 1), at(24, 2), at(26, 1)}
	for _, c := range []struct {
		minute int
		want   Kept
		ok     bool
	}{{1, stored[0], true}, {23, stored[1], true}, {25, stored[3], true}, {40, Kept{}, false}, {36, stored[3], true}} {
		got, ok := Nearest(stored, start.Add(time.Duration(c.minute)*time.Minute), Key{ID: 1})
		if got != c.want || ok != c.ok {
			t.Errorf("minute %d: %+v %v", c.minute, got, ok)
		}
	}
}

// Recordings of containers that have the same cgroup id in two boots are told apart.
func TestRecordingsOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	boots := []string{"", "1f0a3a52-9d5c-4c6f-8d6e-0b1f6a3c7e11", "77b2c9de-0d9a-4a54-9b1c-5f3e2d1c0b9a"}
	for i, boot := range boots {
		save(t, Store{Dir: dir, Boot: boot}, start.Add(time.Duration(i)*time.Minute), 7, 10)
	}
	stored, err := Store{Dir: dir}.List()
	if err != nil || len(stored) != len(boots) {
		t.Fatalf("%+v, %v", stored, err)
	}
	for i, boot := range boots {
		if got, ok := Nearest(stored, start.Add(time.Minute), Key{7, boot}); !ok || got != stored[i] || got.Boot != boot {
			t.Errorf("boot %q: %+v, %v", boot, got, ok)
		}
	}
}

func TestMoment(t *testing.T) {
	now := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"03:12":                time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC),
		"23:59:30":             time.Date(2026, 3, 3, 23, 59, 30, 0, time.UTC),
		"2026-03-01 03:12":     time.Date(2026, 3, 1, 3, 12, 0, 0, time.UTC),
		"2026-03-01T03:12:05Z": time.Date(2026, 3, 1, 3, 12, 5, 0, time.UTC),
		"20m":                  now.Add(-20 * time.Minute),
	} {
		if got, err := Moment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "25:00", "noon", "-20m", "2026-03-05 03:12"} {
		if got, err := Moment(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
