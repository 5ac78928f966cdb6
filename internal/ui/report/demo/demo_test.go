package demo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/demo"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

func ptr[T any](v T) *T { return &v }

// example is what a run on a busy 2-CPU host gave (Linux 6.18).
func example() demo.Result {
	bins := func(counts ...int) []demo.Bin {
		edges := []float64{10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200}
		all := make([]demo.Bin, len(edges)-1)
		for i := range all {
			all[i] = demo.Bin{FromMs: edges[i], ToMs: edges[i+1]}
			if i < len(counts) {
				all[i].Count = counts[i]
			}
		}
		return all
	}
	variant := func(name string, burn int, cpus string, throttled *uint64, p50, p99, most, late float64, bins []demo.Bin) demo.Variant {
		return demo.Variant{Name: name, Burners: burn, CPUs: cpus, Periods: ptr(uint64(70)), ThrottledPeriods: throttled,
			UsedCPUs: ptr(1.0), P50: &p50, P99: &p99, Max: &most, Late: &late, Histogram: bins}
	}
	return demo.Result{
		Kernel: "6.18.44", CPUs: 2, Cgroups: "v1", Quota: 1, Period: 0.1, Burners: 32, Sleep: 10, Pinned: "0",
		Before:  variant("quota", 32, "0-1", ptr(uint64(70)), 12, 180, 180, 5.2, bins(109, 0, 3, 5, 0, 0, 0, 1, 29, 1)),
		Threads: variant("threads", 1, "0-1", ptr(uint64(18)), 10.1, 13.7, 16.8, 0.1, bins(650)),
		CPUSet:  variant("cpuset", 32, "0", ptr(uint64(0)), 10.1, 13.9, 13.9, 1.1, bins(585)),
		After:   variant("pin", 32, "0", nil, 10.1, 13.9, 14, 1.1, bins(584)),
		Verdict: demo.Verdict{Text: []string{"With pin, p99 of the 10 ms sleep is 13.9 ms instead of 180.0 ms: " +
			"12.9x lower, at the same CPU used (1.00 and 1.00 CPUs)."}},
		Restored: true,
	}
}

const want = `32 threads burn CPU under a limit of 1 CPU; one more sleeps 10 ms at a time.
Linux 6.18.44, cgroup v1, 2 CPUs; quota 100/100 ms; pinned to CPU 0.
The demo runs at the highest CPU weight, so other load hardly affects the
results.

How long a sleep of 10 ms really took, in ms:

         quota                               pin
  10-20  ██████████████████████▏ 109         ██████████████████████████████ 584
  20-40
  40-60  ▋ 3
  60-80  █ 5
 80-100
100-120
120-140
140-160  ▎ 1
160-180  █████▉ 29
180-200  ▎ 1

  variant  burn  on CPU  throttled  CPUs used   p50    p99  max ms  late s
    quota    32     0-1   70 of 70       1.00  12.0  180.0   180.0    5.20
  threads     1     0-1   18 of 70       1.00  10.1   13.7    16.8    0.10
   cpuset    32       0    0 of 70       1.00  10.1   13.9    13.9    1.10
      pin    32       0          -       1.00  10.1   13.9    14.0    1.10

With pin, p99 of the 10 ms sleep is 13.9 ms instead of 180.0 ms: 12.9x lower, at
the same CPU used (1.00 and 1.00 CPUs).
Everything restored; no other process on this host was moved or limited.
`

func written(t *testing.T, r demo.Result, o page.Style) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	if got := written(t, example(), page.Style{}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestFitsAndIsPlain(t *testing.T) {
	for _, columns := range []int{1, 40, 60, 80, 100, 500} {
		got := written(t, example(), page.Style{Width: columns, ASCII: true})
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if limit := min(maxWidth, max(minWidth, columns)); text.Width(line) > limit {
				t.Errorf("%d columns of %d: %q", text.Width(line), limit, line)
			}
			for _, r := range line {
				if r > '~' {
					t.Fatalf("%q in ASCII", line)
				}
			}
		}
		if !strings.Contains(got, "160-180  ##") {
			t.Errorf("no second mode:\n%s", got)
		}
	}
}

func TestNotMeasuredIsADash(t *testing.T) {
	text := written(t, demo.Result{Before: demo.Variant{Name: "quota"}, Notes: []string{"a \x1b[31mnote"}}, page.Style{})
	if !strings.Contains(text, "quota     0                  -          -    -    -       -       -") ||
		strings.Contains(text, "\x1b") || strings.Contains(text, "restored") {
		t.Errorf("got:\n%s", text)
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	d := NewProgress(&b, true, true)
	d.Event(demo.Event{Doing: "quota", Done: 10 * time.Second, Total: 30 * time.Second})
	d.Event(demo.Event{Doing: "quota", Done: 10*time.Second + time.Millisecond, Total: 30 * time.Second})
	d.Event(demo.Event{Doing: "pin", Done: 40 * time.Second, Total: 30 * time.Second})
	d.Done()
	d.Done()
	want := fmt.Sprintf("\r%-30s 20 s  %-22s\r%-30s  0 s  %-22s\r\x1b[K", "##########", "quota", strings.Repeat("#", 30), "pin")
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTellsThatItCouldNotWrite(t *testing.T) {
	if err := Write(full{}, example(), page.Style{}); err == nil {
		t.Error("no error")
	}
}
