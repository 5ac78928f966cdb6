package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

// variant is one way to run the burners.
type variant struct {
	// Threads is GOMAXPROCS; "": what Go chooses.
	Threads string `json:"gomaxprocs"`
	// Quota: it has a quota of limitCPUs. Confined: it may run on that many CPUs only.
	Quota    bool `json:"quota"`
	Confined bool `json:"confined"`
}

// variants in the order of the page. The first and the fourth are the published ones.
var variants = []variant{
	{"32", true, false}, {"2", true, false}, {"", true, false},
	{"32", true, true}, {"2", true, true}, {"", true, true},
	{"32", false, true}, {"2", false, true}, {"", false, true},
	{"32", false, false},
}

func (v variant) String() string {
	of := "Go's own GOMAXPROCS"
	if v.Threads != "" {
		of = "GOMAXPROCS=" + v.Threads
	}
	return of + ", " + v.hold()
}

// hold is what holds it, in words.
func (v variant) hold() string {
	switch {
	case v.Quota && v.Confined:
		return "quota, on two CPUs"
	case v.Quota:
		return "quota"
	case v.Confined:
		return "on two CPUs"
	}
	return "nothing"
}

const (
	limitCPUs = 2
	// burning is how many goroutines compute, and napping for how long the loop beside them sleeps at a time.
	burning = 32
	napping = 10 * time.Millisecond
)

// piece is what one run showed.
type piece struct {
	study.Made
	Variant  variant `json:"variant"`
	Round    int     `json:"round"`
	Seconds  float64 `json:"seconds"`
	HostCPUs int     `json:"host_cpus"`
	K        int     `json:"k"`
	// Sleeps is how many sleeps ended, P50 to Longest how long they took, in ms.
	Sleeps  int      `json:"sleeps"`
	P50     *float64 `json:"p50_ms"`
	P90     *float64 `json:"p90_ms"`
	P99     *float64 `json:"p99_ms"`
	Longest *float64 `json:"longest_ms"`
	// Periods and Throttled are the kernel's, UsedCPUs its CPU time over the run.
	Periods   uint64  `json:"periods"`
	Throttled uint64  `json:"throttled_periods"`
	UsedCPUs  float64 `json:"used_cpus"`
}

// same tells whether a record is of the same run.
func (p piece) same(q piece) bool {
	return p.Variant == q.Variant && p.Round == q.Round && p.HostCPUs == q.HostCPUs && p.K == q.K
}

// burners is the published program: it computes on many goroutines, sleeps beside them for so long in all, and prints how long each sleep
// took, in ms.
func burners(length string) error {
	d, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	for range burning {
		go func() {
			for i := 0; ; i++ {
				_ = i
			}
		}()
	}
	var took []float64
	for end := time.Now().Add(d); ; {
		began := time.Now()
		if began.After(end) {
			break
		}
		time.Sleep(napping)
		took = append(took, float64(time.Since(began))/float64(time.Millisecond))
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

// inside runs one piece in the guest and prints it.
func inside(text string) (err error) {
	var p piece
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("the piece %.200q: %w", text, err)
	}
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-published-"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Remove()) }()
	group, err := box.Group("burners")
	if err != nil {
		return err
	}
	if p.Variant.Quota {
		period := bandwidth.DefaultPeriod
		if err := group.SetLimit(cgroup.Limit{Quota: bandwidth.QuotaOf(limitCPUs, period), Period: period}); err != nil {
			return err
		}
	}
	if p.Variant.Confined {
		if err := group.SetCPUs(cpuset.New(box.CPUs().List()[:limitCPUs]...)); err != nil {
			return err
		}
	}
	took, err := p.burn(group)
	if err != nil {
		return err
	}
	p.Made = study.Now(time.Now())
	p.Sleeps = len(took)
	slices.Sort(took)
	if len(took) > 0 {
		p.P50, p.P90, p.P99 = new(stats.Rank(took, 0.5)), new(stats.Rank(took, 0.9)), new(stats.Rank(took, 0.99))
		p.Longest = new(took[len(took)-1])
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}

// burn runs the burners in a cgroup to their end.
func (p *piece) burn(group *sandbox.Group) (took []float64, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// The shell waits for a line until it has been moved: Go reads the limit when it starts.
	cmd := exec.Command("/bin/sh", "-c", `read -r go && exec "$0" "$@"`, program, burnersCommand,
		time.Duration(p.Seconds*float64(time.Second)).String())
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") })
	if p.Variant.Threads != "" {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+p.Variant.Threads)
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := group.Attach(cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	before, err := group.Stat()
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	began := time.Now()
	if _, err := fmt.Fprintln(in, "go"); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	unread := json.NewDecoder(out).Decode(&took)
	lasted := time.Since(began)
	after, err := group.Stat()
	if err := errors.Join(err, cmd.Wait(), unread); err != nil {
		return nil, fmt.Errorf("burners: %w", err)
	}
	p.Periods, p.Throttled = after.Periods-before.Periods, after.ThrottledPeriods-before.ThrottledPeriods
	if after.Usage != nil && before.Usage != nil {
		p.UsedCPUs = (*after.Usage - *before.Usage).Seconds() / lasted.Seconds()
	}
	return took, nil
}
