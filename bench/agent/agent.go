package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

const (
	// recordingsPerHour is what the agent allows itself (recordsPerHour of package agent).
	recordingsPerHour = 12
	// recordFor is how long the agent records.
	recordFor = 10 * time.Second
	// Lines of the agent.
	watching, recorded = "watching; http://", "recorded a container"
)

// agentCost is what the whole agent cost in one scenario. CPU figures are seconds per minute, of all containers together,
// but for Start and Recording. A nil figure was not measured.
type agentCost struct {
	Cgroups int `json:"cgroups"`
	Stopped int `json:"stopped"`
	// Start is the CPU time of the start, in s.
	Start float64 `json:"start"`
	// Process is the agent's process while it records nothing.
	Process float64 `json:"process"`
	// Programs are the probe's, by their run time; Runs is how often they ran, per second. They run in whatever process
	// causes the event.
	Programs *float64 `json:"programs"`
	Runs     *float64 `json:"runs"`
	// Recording is what one recording of ten seconds costs beyond Process, in s.
	Recording *float64 `json:"recording"`
	// OthersCPUs is what the rest of the host used meanwhile, in CPUs.
	OthersCPUs *float64 `json:"others_cpus"`
	// Resident memory in bytes, at the end without a recording and at most during one.
	Resident          int64  `json:"resident"`
	ResidentRecording *int64 `json:"resident_recording"`
}

// perMinute is the whole: the process, the probe's programs, and recordings as many as the agent allows itself.
func (c agentCost) perMinute() float64 {
	sum := c.Process
	if c.Programs != nil {
		sum += *c.Programs
	}
	if c.Recording != nil {
		sum += *c.Recording * recordingsPerHour / 60
	}
	return sum
}

// per100 converts seconds per minute to those per 100 containers.
func (c agentCost) per100(perMinute float64) float64 { return perMinute * 100 / float64(c.Cgroups) }

// bound is the most CPU-seconds per 100 containers per minute.
func (c agentCost) bound() float64 {
	if c.Stopped*10 <= c.Cgroups {
		return 0.5
	}
	return 1
}

// residentBound is the most resident memory in bytes, 0 where there is none.
func (c agentCost) residentBound() int64 {
	switch c.Cgroups {
	case 200:
		return 25e6
	case 1000:
		return 60e6
	}
	return 0
}

// measureAgent measures the agent alone over one scenario: first without recordings, then with them.
func measureAgent(ctx context.Context, s scenario, p plan, program string) (c agentCost, err error) {
	c = agentCost{Cgroups: s.cgroups, Stopped: s.stopped}
	life := 2*(p.warm+p.agentWindow()) + p.programs + 6*recordFor + 2*time.Minute
	b, load, err := loaded(s, life)
	defer func() {
		stopAll(load)
		err = errors.Join(err, b.remove())
	}()
	if err != nil {
		return c, err
	}
	if err := b.withAgent(ctx, program, "flight: {record_above: 100%}\n", func(a *child) error { return c.steady(ctx, a, p) }); err != nil {
		return c, err
	}
	if !p.recordings {
		return c, nil
	}
	return c, b.withAgent(ctx, program, "", func(a *child) error { return c.recording(ctx, a) })
}

// agentWindow is a plan's window in whole scrape intervals.
func (p plan) agentWindow() time.Duration {
	return max(1, (p.window+p.scrape-1)/p.scrape) * p.scrape
}

// withAgent runs the agent, with more lines of its rules, for a measurement.
func (b *testbed) withAgent(ctx context.Context, program, rules string, measure func(*child) error) error {
	config := filepath.Join(b.dir, "agent.yaml")
	text := "version: 1\nmode: observe\nlisten: 127.0.0.1:0\nscope: " + b.top + "\n" + rules
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	state := filepath.Join(b.dir, "state")
	a, err := start(variantAgent, program, "agent", "--config", config, "--state-dir", state)
	if err != nil {
		return err
	}
	defer func() {
		stopAll([]*child{a})
		_ = os.RemoveAll(state)
	}()
	if err := a.says(ctx, watching, 1, time.Minute); err != nil {
		return err
	}
	return measure(a)
}

// says waits until a child has said something n times.
func (c *child) says(ctx context.Context, what string, n int, atMost time.Duration) error {
	for end := time.Now().Add(atMost); strings.Count(c.stderr.String(), what) < n; {
		if time.Now().After(end) {
			return fmt.Errorf("%s has not said %q %d times within %v: %s", c.name, what, n, atMost, c.stderr.String())
		}
		if err := clock.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// cpu is a child's CPU time so far, in s.
func (c *child) cpu() (float64, error) {
	if t := cpuTimes([]*child{c})[0]; t != nil {
		return t.Seconds(), nil
	}
	return 0, fmt.Errorf("%s has ended before its time: %s", c.name, c.stderr.String())
}

// over measures CPU time per minute over a time during which f runs.
func (c *child) over(f func() error) (perMinute float64, err error) {
	begin := time.Now()
	before, err := c.cpu()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := c.cpu()
	return (after - before) / time.Since(begin).Minutes(), err
}

// steady measures the agent while it records nothing.
func (c *agentCost) steady(ctx context.Context, a *child, p plan) (err error) {
	if err := clock.Sleep(ctx, p.start); err != nil {
		return err
	}
	if c.Start, err = a.cpu(); err != nil {
		return err
	}
	if err := clock.Sleep(ctx, p.warm); err != nil {
		return err
	}
	// The first scrape belongs to no window, the last one to this.
	if err := a.scrape(); err != nil {
		return err
	}
	begin, busy := time.Now(), hostUsed()
	c.Process, err = a.over(func() error {
		for range p.agentWindow() / p.scrape {
			if err := clock.Sleep(ctx, p.scrape); err != nil {
				return err
			}
			if err := a.scrape(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.OthersCPUs = usedBetween(busy, hostUsed(), time.Since(begin).Minutes(), c.Process)
	c.Resident = residentBytes(a.cmd.Process.Pid)
	return c.programs(ctx, a, p.programs)
}

// hostUsed is the CPU time that the host's tasks used so far; nil where it cannot be read.
func hostUsed() *time.Duration {
	stat, err := procfs.ReadStat(os.DirFS("/proc"))
	if err != nil {
		return nil
	}
	return new(stat.Total.Used())
}

// usedBetween is how many CPUs others than an agent used.
func usedBetween(was, is *time.Duration, minutes, agentPerMinute float64) *float64 {
	if was == nil || is == nil {
		return nil
	}
	return new(max(0, (*is-*was).Minutes()/minutes-agentPerMinute/60))
}

// scrape collects the agent's metrics.
func (c *child) scrape() error {
	_, rest, _ := strings.Cut(c.stderr.String(), "http://")
	address, _, _ := strings.Cut(rest, ";")
	answer, err := http.Get("http://" + strings.TrimSpace(address))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

// programs measures the BPF programs that the agent holds. The kernel measures all programs of the host meanwhile, which
// costs each run some 20 ns; it ends with the descriptor.
func (c *agentCost) programs(ctx context.Context, a *child, d time.Duration) error {
	attr := struct{ kind uint32 }{unix.BPF_STATS_RUN_TIME}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_ENABLE_STATS, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return nil // not measured
	}
	defer unix.Close(int(fd))
	pid := a.cmd.Process.Pid
	begin := time.Now()
	wasNS, wasRuns := programTimes(pid)
	if err := clock.Sleep(ctx, d); err != nil {
		return err
	}
	ns, runs := programTimes(pid)
	wall := time.Since(begin)
	c.Programs = new(time.Duration(ns-wasNS).Seconds() / wall.Minutes())
	c.Runs = new(float64(runs-wasRuns) / wall.Seconds())
	return nil
}

// programTimes adds up run_time_ns and run_cnt of the BPF programs whose descriptors a process holds
// (bpf_prog_show_fdinfo, kernel/bpf/syscall.c).
func programTimes(pid int) (ns, runs uint64) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), "prog_id:") || strings.Contains(string(text), "link_id:") {
			continue
		}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			switch key {
			case "run_time_ns":
				ns += n
			case "run_cnt":
				runs += n
			}
		}
	}
	return ns, runs
}

// recording measures what a recording costs beyond the steady agent: the CPU time from the end of one to the end of the
// next. Where too little is stopped for two recordings the figures stay nil.
func (c *agentCost) recording(ctx context.Context, a *child) error {
	if a.says(ctx, recorded, 1, 4*recordFor) != nil {
		return ctx.Err()
	}
	begin := time.Now()
	var resident int64
	perMinute, err := a.over(func() error {
		for end := begin.Add(2 * recordFor); strings.Count(a.stderr.String(), recorded) < 2; {
			if time.Now().After(end) {
				return errNoRecording
			}
			resident = max(resident, residentBytes(a.cmd.Process.Pid))
			if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errNoRecording) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Recording = new(max(0, (perMinute-c.Process)*time.Since(begin).Minutes()))
	c.ResidentRecording = &resident
	return nil
}

var errNoRecording = errors.New("no second recording")
