package budget

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/pace"
)

const ms = time.Millisecond

// host is a machine with one cgroup of v2, in fake time. Tasks of the test use CPU time while they burn.
type host struct {
	mu            sync.Mutex
	begun         time.Time
	quota, period time.Duration // quota 0: max
	phase         time.Duration
	broken        error
	noCounters    bool  // cpu.stat has no nr_periods
	periodsBefore int64 // what nr_periods began with
	burning       int
	used          time.Duration
	at            time.Duration
	inPeriod      time.Duration // used in this period
	throttled     int
	others        time.Duration // CPU time of the rest of the container, per second
	allowed       string        // the CPUs of the process; "": they cannot be read
	procs         []int
	warnings      []string
	says          file
}

func newHost(quota time.Duration) *host {
	return &host{begun: time.Now(), quota: quota, period: 100 * ms, phase: 37 * ms}
}

// start starts a budget on the host, until the test's context ends.
func (h *host) start(t *testing.T, o Options) *Budget {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	o.Warn = func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.warnings = append(h.warnings, err.Error())
	}
	return start(ctx, o, world{h, h.cpu, func(n int) { h.procs = append(h.procs, n) }, 8, h.says})
}

func (h *host) settle() {
	now := time.Since(h.begun)
	for h.at < now {
		until := min(now, h.at+h.period-(h.at+h.period-h.phase)%h.period)
		ran := time.Duration(h.burning) * (until - h.at)
		h.used += ran
		h.inPeriod += ran
		if h.at = until; (h.at+h.period-h.phase)%h.period == 0 {
			if h.quota > 0 && h.inPeriod > h.quota {
				h.throttled++ // the tasks of this host run on all the same
			}
			h.inPeriod = 0
		}
	}
}

func (h *host) cpu() (time.Duration, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	return h.used, nil
}

// burn uses CPU time.
func (h *host) burn(d time.Duration) {
	h.mu.Lock()
	h.settle()
	h.burning++
	h.mu.Unlock()
	time.Sleep(d)
	h.mu.Lock()
	h.settle()
	h.burning--
	h.mu.Unlock()
}

func (h *host) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// Open is the file system of the host.
func (h *host) Open(name string) (fs.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: h.broken}
	}
	h.settle()
	quota := "max"
	if h.quota > 0 {
		quota = fmt.Sprint(h.quota.Microseconds())
	}
	periods := int64((h.at - h.phase + h.period) / h.period)
	stat := fmt.Sprintf("nr_periods %d\nnr_throttled %d\nthrottled_usec 0\n", int32(h.periodsBefore+periods), h.throttled)
	if h.noCounters {
		stat = ""
	}
	if name == "proc/self/status" && h.allowed == "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return fstest.MapFS{
		"proc/self/status": {Data: []byte("Name:\ta\nCpus_allowed:\tff\nCpus_allowed_list:\t" + h.allowed +
			"\nMems_allowed_list:\t0\n")},
		"proc/self/cgroup":        {Data: []byte("0::/a\n")},
		"proc/self/mountinfo":     {Data: []byte("30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
		"sys/fs/cgroup/a/cpu.max": {Data: fmt.Appendf(nil, "%s %d\n", quota, h.period.Microseconds())},
		"sys/fs/cgroup/a/cpu.stat": {Data: fmt.Appendf(nil, "usage_usec %d\n%s",
			(h.used + time.Duration(float64(h.others)*h.at.Seconds())).Microseconds(), stat)},
	}.Open(name)
}

func (h *host) warned() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.warnings
}

var errGone = errors.New("input/output error")

// sampleOf is a reading of nr_periods in periods that begin at 0.
func sampleOf(at, period time.Duration) pace.Sample {
	return pace.Sample{From: at, To: at + 1, Periods: uint64(at / period)}
}
