package diagnose_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// fibtest is the program of that name: on 64 CPUs one thread burns and 63 run for a moment and sleep, with a
// limit of 0.1 CPUs.
func fibtest(kernel string) rt.Pinned {
	return rt.Pinned{Kernel: kernel, CPUs: 64, HZ: 250, Quota: 10 * ms, Period: 100 * ms, Fast: 1, Run: 3700, Sleep: 10 * ms, Seed: 1}
}

func simulated(t testing.TB, kernel string) recording.Recording {
	t.Helper()
	r, err := fibtest(kernel).Record(2 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testdata/fibtest-4.19.simulated.utr is what a kernel of 4.18 to 5.3 would show. It is simulated, because no
// such kernel was at hand.
func TestSliceWasteOfTheSimulatedRecording(t *testing.T) {
	path := filepath.Join("testdata", "fibtest-4.19.simulated.utr")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		var b bytes.Buffer
		r := simulated(t, "4.19")
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recording.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	e := explain(r)
	t.Log(e.Verdict)
	if e.Cause != diagnose.SliceWaste {
		t.Errorf("%s: %+v", e.Cause, e.Causes)
	}
	if !strings.Contains(e.Verdict, "4.19") || !strings.Contains(e.Verdict, "10 ms quota") {
		t.Errorf("verdict: %s", e.Verdict)
	}
	if len(e.NotMeasured) == 0 || !strings.Contains(e.NotMeasured[0], "simulated") {
		t.Errorf("not marked as simulated: %v", e.NotMeasured)
	}
}

// The same load on kernels without the bug uses its whole quota: nothing is wasted, and the cause is another
// one.
func TestNoWasteOnOtherKernels(t *testing.T) {
	for _, kernel := range []string{"5.4", "5.15", "6.6"} {
		e := explain(simulated(t, kernel))
		for _, c := range e.Causes {
			if c.Cause == diagnose.SliceWaste {
				t.Errorf("%s: %s", kernel, c.Evidence)
			}
		}
		if e.Cause == diagnose.None || *e.Stopped == 0 {
			t.Errorf("%s: %s", kernel, e.Verdict)
		}
		t.Log(kernel, e.Verdict)
	}
	// A recording of another kernel with the same figures does not get this cause.
	r := simulated(t, "4.19")
	r.Header.Host.Kernel = "6.12.1"
	for _, c := range explain(r).Causes {
		if c.Cause == diagnose.SliceWaste {
			t.Errorf("named on 6.12: %s", c.Evidence)
		}
	}
}

// The kernel's type information counts more than its release, because distributions backport fixes.
func TestWasteByTheKernelsTypes(t *testing.T) {
	for _, c := range []struct {
		release string
		expire  *bool
		waste   bool
	}{
		{"4.19", nil, true}, {"4.19", new(false), false}, {"4.18.0-553.el8_10.x86_64", new(false), false},
		{"6.12.1", nil, false}, {"6.12.1", new(true), true}, {"next", nil, true}, {"next", new(false), false},
	} {
		r := simulated(t, "4.19")
		r.Header.Host.Kernel, r.Header.Features.SlicesExpire = c.release, c.expire
		found := false
		for _, cause := range explain(r).Causes {
			found = found || cause.Cause == diagnose.SliceWaste
		}
		if found != c.waste {
			t.Errorf("%s, types say %v: slice-waste %v, want %v", c.release, c.expire, found, c.waste)
		}
	}
}
