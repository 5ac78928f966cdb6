package holder

import (
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/internal/widthcap"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
)

// modelled is a scheduler in memory.
type modelled struct {
	mu     sync.Mutex
	loaded bool
	caps   map[uint64]scx.Cap
	done   chan struct{}
	why    error
	loads  int
}

func (m *modelled) Set(id uint64, c scx.Cap) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.caps[id] = c
	return nil
}

func (m *modelled) Remove(id uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.caps[id]; !has {
		return scx.ErrNoCap
	}
	delete(m.caps, id)
	return nil
}

func (m *modelled) All() (map[uint64]scx.Cap, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.caps), nil
}

func (m *modelled) Stats(id uint64) (scx.Stats, error) {
	if _, has := m.caps[id]; !has {
		return scx.Stats{}, scx.ErrNoCap
	}
	return scx.Stats{Now: 1, Widest: 2, AtCap: time.Second}, nil
}

func (m *modelled) Done() <-chan struct{} { return m.done }
func (m *modelled) Err() error            { return m.why }
func (m *modelled) Close() error          { return nil }

// ending is the same where its Close unloads it, as the holder's does.
type ending struct{ *modelled }

func (m ending) Close() error { m.loaded = false; clear(m.caps); return nil }

func hostOf(t *testing.T, m *modelled) *Host {
	return &Host{StateDir: t.TempDir(),
		open: func() (caps, error) {
			if !m.loaded {
				return nil, scx.ErrNotEnabled
			}
			return m, nil
		},
		start: func() error { m.loaded = true; m.loads++; return nil },
	}
}

func newModelled() *modelled {
	return &modelled{caps: map[uint64]scx.Cap{}, done: make(chan struct{})}
}

func TestCaps(t *testing.T) {
	m := newModelled()
	h := hostOf(t, m)
	two := widthcap.Cap{CPUs: 2, Credit: time.Second}
	if _, ok, err := h.Read(7); ok || err != nil {
		t.Fatalf("no scheduler: %v, %v", ok, err)
	}
	if err := h.Remove(7); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint64{7, 8} {
		if err := h.Write(id, two); err != nil {
			t.Fatal(err)
		}
	}
	if c, ok, err := h.Read(7); !ok || err != nil || c != two || m.loads != 1 {
		t.Errorf("%+v, %v, %v, started %d times", c, ok, err, m.loads)
	}
	if s, ok, err := h.Counts(7); !ok || err != nil || s.Widest != 2 || s.AtCap != time.Second {
		t.Errorf("%+v, %v, %v", s, ok, err)
	}
	if _, ok, err := h.Counts(9); ok || err != nil {
		t.Errorf("no cap: %v, %v", ok, err)
	}
	if err := errors.Join(h.Remove(7), h.Remove(7)); err != nil || len(m.caps) != 1 {
		t.Errorf("%v, %v", m.caps, err)
	}
}

// Where no scheduler can run the error says so and why.
func TestUnavailable(t *testing.T) {
	h := hostOf(t, newModelled())
	h.start = func() error { return &scx.Unavailable{Why: "another scheduler is loaded (lavd)", Way: "unload it"} }
	err := h.Write(7, widthcap.Cap{CPUs: 2})
	if !errors.Is(err, widthcap.ErrUnavailable) || !errors.As(err, new(*scx.Unavailable)) {
		t.Errorf("%v", err)
	}
	h.start = func() error { return nil } // it came, and the kernel threw it out at once
	if err := h.Write(7, widthcap.Cap{CPUs: 2}); !errors.Is(err, widthcap.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// held starts hold at the beginning of a clock that then shows a fixed time.
func held(t *testing.T, m *modelled, dir string, later time.Duration) (look chan time.Time, ended chan error) {
	t.Helper()
	if err := (Holder{Process: journal.Process{PID: 4711}, Scheduler: scx.Name}).write(dir); err != nil {
		t.Fatal(err)
	}
	look, ended = make(chan time.Time), make(chan error, 1)
	now := time.Unix(0, 0)
	go func() {
		ended <- hold(t.Context(), ending{m}, dir, look, func() time.Time {
			was := now
			now = time.Unix(0, 0).Add(later)
			return was
		})
	}()
	return look, ended
}

// lookUntil looks until the holder has ended.
func lookUntil(t *testing.T, look chan time.Time, ended chan error) {
	t.Helper()
	for {
		select {
		case look <- time.Time{}:
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// The holder ends when the last cap is gone, and not while one is being set.
func TestHolderEndsByItself(t *testing.T) {
	m, dir := newModelled(), t.TempDir()
	m.loaded, m.caps[7] = true, scx.Cap{CPUs: 2}
	look, ended := held(t, m, dir, 0)
	unlock, err := lockDir(dir, unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	look <- time.Time{}
	look <- time.Time{} // the look before is over
	if err := m.Remove(7); err != nil {
		t.Fatal(err)
	}
	look <- time.Time{}
	select {
	case err := <-ended:
		t.Fatalf("it ended while a cap was being set: %v", err)
	case look <- time.Time{}:
	}
	unlock()
	lookUntil(t, look, ended)
	if note, err := ReadNote(dir); note != nil || err != nil || m.loaded {
		t.Errorf("%+v, %v", note, err)
	}
}

// A holder waits for its first cap, but not for long. A scheduler that the kernel ended leaves its reason.
func TestHolderWithoutCapsOrScheduler(t *testing.T) {
	m, dir := newModelled(), t.TempDir()
	look, ended := held(t, m, dir, firstCap-1)
	look <- time.Time{}
	look <- time.Time{}
	m.why = errors.New("runnable task stall")
	close(m.done)
	if err := <-ended; err == nil {
		t.Error("the kernel ended it, and no error")
	}
	note, err := ReadNote(dir)
	if err != nil || note == nil || note.Why != "runnable task stall" || note.Process.PID != 4711 {
		t.Errorf("%+v, %v", note, err)
	}
	look, ended = held(t, newModelled(), dir, firstCap)
	lookUntil(t, look, ended)
}
