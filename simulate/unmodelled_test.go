package simulate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/scenario"
)

// Every part that the simulator lacks is refused, and named; nothing is left
// out silently.
func TestUnmodelled(t *testing.T) {
	const simple = "version: 1\nhost: {cpus: 2}\nworkloads:\n  w: {kind: service, threads: 2, work: 1ms, arrivals: {per_second: 10}KEYS}\n"
	const long = "version: 1\nhost: {cpus: 2}\nworkloads:\n  w: {kind: service, pools: {p: {threads: 2}}, classes: {c: {pool: p, work: 1ms, arrivals: {per_second: 10}}}KEYS}\n"
	for text, want := range map[string]string{
		strings.Replace(simple, "KEYS", "", 1):                                                                    "",
		strings.Replace(long, "KEYS", "", 1):                                                                      "",
		strings.Replace(simple, "KEYS", ", io: 2", 1):                                                             "workloads.w: more than one I/O thread",
		strings.Replace(simple, "KEYS", ", inflate: 0.1", 1):                                                      "inflates",
		strings.Replace(simple, "KEYS", ", timeout: 1s", 1):                                                       "timeouts",
		strings.Replace(simple, "KEYS", ", shared: 1MiB", 1):                                                      "shared data",
		strings.Replace(simple, "KEYS", ", phases: [{for: 1s, factor: 2}]", 1):                                    "load that changes",
		strings.Replace(strings.Replace(long, "pool: p, ", "", 1), "KEYS", "", 1):                                 "served by the I/O thread",
		strings.Replace(strings.Replace(long, "threads: 2", "threads: 2, queues: per-thread", 1), "KEYS", "", 1):  "queue per thread",
		strings.Replace(strings.Replace(long, "per_second: 10", "per_second: 10, burst: 2", 1), "KEYS", "", 1):    "bursts",
		strings.Replace(strings.Replace(long, "per_second: 10", "per_second: 10, gaps: equal", 1), "KEYS", "", 1): "equal gaps",
		strings.Replace(long, "KEYS}", "}\n  g: {kind: gc, of: w, threads: 2, work: 1ms, every: 1s}", 1):          "workloads.g: kind gc",
		"version: 1\nhost: {cpus: 2}\nworkloads: {k: {kind: kernel, run: 1ms, sleep: 1ms}}\n":                     "kind kernel",
	} {
		s, err := scenario.Parse("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s.Duration = 1e7
		_, err = Run(s, Options{})
		part := new(Unmodelled)
		if errors.As(err, &part) != (want != "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Every scenario of the folder runs here, or says what is not simulated.
func TestScenariosRunOrSayWhy(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(file, data)
		if err != nil {
			t.Error(err)
			continue
		}
		s.Duration = min(s.Duration, 2e9)
		part := new(Unmodelled)
		if _, err := Run(s, Options{Seed: 1}); err != nil && !errors.As(err, &part) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
