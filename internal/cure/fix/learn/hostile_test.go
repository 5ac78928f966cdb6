package learn

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// mostMemory is what an explanation or a forecast may take, whatever the container did. A fifth of it are the times of 32,768 requests
// under each remedy.
const mostMemory = 80 << 20

// meter reads a file, and notes the most memory in use meanwhile.
type meter struct {
	io.ReadSeeker
	before, most uint64
	every        int64 // bytes between two looks
	left         int64
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.ReadSeeker.Read(b)
	if m.left -= int64(n); m.left <= 0 {
		m.left = m.every
		m.look()
	}
	return n, err
}

// look notes how many bytes of the heap are reachable.
func (m *meter) look() {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	m.most = max(m.most, s.HeapAlloc)
	if m.before == 0 {
		m.before = s.HeapAlloc
	}
}

// readers are what the agent does with a recording. An explanation goes through live, diagnose, requests, roles and
// threadpool; a forecast through diagnose, roles, threadpool and its own, and then through the replays of all remedies.
var readers = []struct {
	name string
	read func(*meter) (any, error)
}{
	{"explain", func(m *meter) (any, error) { return live.Recording(m) }},
	{"forecast", func(m *meter) (any, error) {
		load, runs, err := forecast.ReadWithRuns(m)
		if err != nil {
			return nil, err
		}
		m.look()
		made, err := policy.Forecast(load, nil, true, func(n int, do func(int) error) error {
			for i := range n {
				if err := do(i); err != nil {
					return err
				}
				if i%10 == 0 || i == n-1 {
					m.look()
				}
			}
			return nil
		})
		return []any{load, runs, made}, err
	}},
}

// A container that makes 100,000 names, threads, cgroups or sockets in ten seconds, or all of these, costs none that reads
// its recording more than mostMemory. Not measured is what one replay needs while it runs. Under -short it makes a tenth:
// enough to pass most bounds, and minutes less.
func TestHostileRecordingsTakeBoundedMemory(t *testing.T) {
	require.Unraced(t, "its readers have no goroutines")
	many := 100_000
	if testing.Short() {
		many /= 10
	}
	for kind, what := range recordingtest.Hostiles {
		if testing.Short() && what != recordingtest.Everything {
			continue // it has all the others in it
		}
		t.Run(kind, func(t *testing.T) {
			file, err := os.Create(filepath.Join(t.TempDir(), "recording"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if err := recordingtest.WriteHostile(file, what, many); err != nil {
				t.Fatal(err)
			}
			size, err := file.Seek(0, io.SeekCurrent)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range readers {
				if _, err := file.Seek(0, io.SeekStart); err != nil {
					t.Fatal(err)
				}
				m := &meter{ReadSeeker: file, every: size / 6}
				m.look()
				made, err := r.read(m)
				if err != nil {
					t.Error(err)
				}
				m.look()
				runtime.KeepAlive(made)
				took := float64(m.most-m.before) / (1 << 20)
				t.Logf("%s takes %.1f MB of a file of %.1f MB", r.name, took, float64(size)/(1<<20))
				if took > mostMemory>>20 {
					t.Errorf("%s takes %.1f MB, more than %d", r.name, took, mostMemory>>20)
				}
			}
		})
	}
}
