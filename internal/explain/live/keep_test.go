package live

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// longRecording has several blocks of events.
func longRecording(t *testing.T) []byte {
	t.Helper()
	const ms = time.Millisecond
	s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
	w := s.Threads("http-worker", 8)
	s.Repeat(5000, 2*ms, func(at time.Duration) { s.Work(at, ms/10, w...) })
	r := s.Run(10 * time.Second)
	var out bytes.Buffer
	in, err := recording.NewWriter(&out, r.Header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Events {
		if err := in.Write(&r.Events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Close(r.Footer); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Damage costs what comes after it, not what comes before.
func TestRecordingDamaged(t *testing.T) {
	whole := longRecording(t)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)*3/4] ^= 0x55
	e, err := Recording(bytes.NewReader(damaged))
	if err != nil {
		t.Fatal(err)
	}
	if e.Window <= 0 || e.Window >= 10*time.Second || e.Verdict == "" || e.Width == nil {
		t.Errorf("%v explained: %q", e.Window, e.Verdict)
	}
	if !slices.ContainsFunc(e.NotMeasured, func(s string) bool { return strings.Contains(s, "the recording is damaged after") }) {
		t.Errorf("the damage is not told: %q", e.NotMeasured)
	}

	damaged = bytes.Clone(whole)
	damaged[40] ^= 0x55
	if _, err := Recording(bytes.NewReader(damaged)); !errors.Is(err, recording.ErrDamaged) {
		t.Errorf("a damaged header: %v", err)
	}
}

// What a process is recognised by survives in the recording.
func TestProcessesThroughTheRecording(t *testing.T) {
	p := threadpool.Process{TGID: 7, Comm: "app", Exe: "/app", Cmdline: []string{"app"}, Libraries: []string{"/lib/a.so"},
		Go: "go1.25.1", Holds: []string{"rayon"}, Budget: &threadpool.Budget{LimitCPUs: new(1.5), Paced: true,
			GOMAXPROCS: 3, Permits: map[string]int{"app": 2}}}
	var h recording.Header
	Options{processes: map[uint32]threadpool.Process{7: p}}.completeProcesses(&h)
	h.Threads = []recording.Thread{{TID: 7, TGID: 7, Comm: "renamed"}}
	got := processesOf(&h, nil, nil)[7]
	if got.Comm != "app" || got.Go != p.Go || !slices.Equal(got.Holds, p.Holds) ||
		!slices.Equal(got.Libraries, p.Libraries) || got.Exe != p.Exe || !reflect.DeepEqual(got.Budget, p.Budget) {
		t.Errorf("%+v became %+v", p, got)
	}
}
