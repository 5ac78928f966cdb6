package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
)

// narrowRow is what one row of narrow's own table is of: what its scheduler does with burners and sleepers, without a service.
type narrowRow struct {
	name, about string
	// bound is the most that the figure may be, or with least the least.
	bound   float64
	least   bool
	unit    string
	measure func(ctx context.Context, b *narrowBed) (value float64, err error)
}

// narrowLimit is the cap of the rows in CPUs.
const narrowLimit = 2

// narrowFor is how long a row is looked at, in guest time.
const narrowFor = 2 * time.Second

// narrowRows are the rows that need no service. Bounds: docs/concepts/narrow.md, and the 2 % and 5 % that quotas keep to.
var narrowRows = []narrowRow{
	{"widest", "most CPUs that 32 burners under a cap of 2 had at one moment, by the scheduler's count, less threads that joined above it", 2, false, "CPUs", widestMoment},
	{"wider", "share of the time in which the probe saw them wider than the cap", 0.02, false, "", widerThanCap},
	{"stops", "throttled periods of a container with a cap of 2 in place of a quota", 0, false, "periods", stopsUnderCap},
	{"mean-0.5", "mean use of 16 burners under a cap of 0.5, over the cap", 1.02, false, "", meanUse(0.5)},
	{"mean-1", "the same of 1", 1.02, false, "", meanUse(1)},
	{"mean-2", "the same of 2", 1.02, false, "", meanUse(2)},
	{"mean-2.5", "the same of 2.5", 1.02, false, "", meanUse(2.5)},
	{"idle-half", "8 threads idle for half of each second, then all out: mean use over the cap of 2, without credit", math.Inf(1), false, "", idleHalf(0)},
	{"idle-half-credit", "the same with a credit of 1 s: what an idle half saves", 0.95, true, "", idleHalf(time.Second)},
	{"idle-half-credit-2s", "the same with a credit of 2 s", 0.95, true, "", idleHalf(2 * time.Second)},
	{"sleeper", "p99 of sleeps of 10 ms beside 32 burners under a cap of 2, over that on 2 CPUs by a cpuset", 1.5, false, "", sleeperBeside},
	{"many", "threads above the caps of 100 containers whose caps change every 100 ms, and faults of the scheduler", 0, false, "", manyCaps},
	{"killed", "from SIGKILL of the loader until the kernel's own scheduler is back", 1, false, "s", loaderKilled},
	{"neighbour", "CPU time of 8 burners beside a container with a cap of 2, over what 6 CPUs are", 0.95, true, "", neighbourBeside},
}

// narrowFigure is what a row came to.
type narrowFigure struct {
	Value float64 `json:"value"`
	Met   bool    `json:"met"`
}

// narrowPiece is a row on the small host.
func narrowPiece(name string, repeat int) piece {
	return piece{Machine: small.machine(), Kind: narrowed, Edition: edition, Limit: narrowLimit, Scenario: name, Seconds: 4, Repeat: repeat}
}

// measureNarrow measures a row.
func measureNarrow(ctx context.Context, host *cgroup.Host, p piece) (f *narrowFigure, err error) {
	i := slices.IndexFunc(narrowRows, func(r narrowRow) bool { return r.name == p.Scenario })
	if i < 0 {
		return nil, fmt.Errorf("no row %.40q of narrow", p.Scenario)
	}
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-narrow-"})
	if err != nil {
		return nil, err
	}
	b := &narrowBed{host: host, box: box}
	defer func() { err = errors.Join(err, b.end(), box.Remove()) }()
	v, err := narrowRows[i].measure(ctx, b)
	if err != nil {
		return nil, err
	}
	r := narrowRows[i]
	return &narrowFigure{v, r.least && v >= r.bound || !r.least && v <= r.bound}, nil
}

// narrowBed is where a row is measured.
type narrowBed struct {
	host *cgroup.Host
	box  *sandbox.Sandbox
	work []*workload.Process
	held *scx.Scheduler
}

// end stops all that works, and gives every thread back to the kernel's own scheduler.
func (b *narrowBed) end() (err error) {
	for _, p := range b.work {
		err = errors.Join(err, p.Stop())
	}
	if b.held != nil {
		err = errors.Join(err, b.held.Err(), b.held.Close())
	}
	return err
}

// capped is a cgroup.
type capped struct {
	group *sandbox.Group
	id    uint64
}

func (b *narrowBed) make(name string) (c capped, err error) {
	if c.group, err = b.box.Group(name); err != nil {
		return c, err
	}
	c.id, err = b.host.ID(cgroup.CPU, c.group.At().Path)
	return c, err
}

// cap loads the scheduler, once, and caps a cgroup.
func (b *narrowBed) cap(c capped, limit scx.Cap) (err error) {
	if b.held == nil {
		if b.held, err = scx.Load(scx.Options{}); err != nil {
			return err
		}
	}
	return b.held.Set(c.id, limit)
}

// burn runs burners in a cgroup, with a sleeper whose sleeps it returns.
func (b *narrowBed) burn(c capped, burners int, sleep time.Duration) (*workload.Process, error) {
	p, err := workload.Start("", workload.Spec{Burners: burners, Sleep: sleep, Deadline: 5 * time.Minute})
	if err != nil {
		return nil, err
	}
	b.work = append(b.work, p)
	if err := c.group.Attach(p.Pid()); err != nil {
		return nil, err
	}
	return p, p.Go()
}

// seldom is the sleep of a sleeper that hardly counts.
const seldom = time.Second

// burners are so many of them alone.
func (b *narrowBed) burners(c capped, n int) error {
	p, err := b.burn(c, n, seldom)
	if err != nil {
		return err
	}
	go func() {
		for range p.Records() { // until it ends
		}
	}()
	return nil
}

// stopLast ends what was started last.
func (b *narrowBed) stopLast() error {
	last := len(b.work) - 1
	p := b.work[last]
	b.work = b.work[:last]
	return p.Stop()
}

// mean is how many CPUs a cgroup uses on average.
func mean(ctx context.Context, c capped, d time.Duration) (float64, error) {
	return meanWhile(c, func() error { return clock.Sleep(ctx, d) })
}

// meanWhile is the same while something is done.
func meanWhile(c capped, during func() error) (float64, error) {
	before, err := c.group.Stat()
	if err != nil {
		return 0, err
	}
	at := time.Now()
	if err := during(); err != nil {
		return 0, err
	}
	after, err := c.group.Stat()
	if err != nil {
		return 0, err
	}
	if before.Usage == nil || after.Usage == nil {
		return 0, errors.New("the kernel does not count its CPU time")
	}
	return (*after.Usage - *before.Usage).Seconds() / time.Since(at).Seconds(), nil
}

// burning is a cgroup under a cap in which burners run.
func (b *narrowBed) burning(limit scx.Cap, burners int) (c capped, err error) {
	if c, err = b.make("capped"); err != nil {
		return c, err
	}
	if err := b.cap(c, limit); err != nil {
		return c, err
	}
	return c, b.burners(c, burners)
}

func widestMoment(ctx context.Context, b *narrowBed) (float64, error) {
	c, err := b.burning(scx.Cap{CPUs: narrowLimit}, 32)
	if err != nil {
		return 0, err
	}
	if err := clock.Sleep(ctx, narrowFor); err != nil {
		return 0, err
	}
	stats, err := b.held.Stats(c.id)
	return float64(stats.Widest) - min(float64(stats.Joined), float64(stats.Widest-narrowLimit)), err
}

func widerThanCap(ctx context.Context, b *narrowBed) (float64, error) {
	c, err := b.burning(scx.Cap{CPUs: narrowLimit}, 32)
	if err != nil {
		return 0, err
	}
	if err := clock.Sleep(ctx, narrowFor/4); err != nil { // those that were there before the cap
		return 0, err
	}
	p, err := probe.Open(probe.Options{WidthOnly: true})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	if err := p.Watch(probe.Container{ID: c.id, Path: c.group.At().Path}); err != nil {
		return 0, err
	}
	if err := clock.Sleep(ctx, narrowFor); err != nil {
		return 0, err
	}
	counts, err := p.Read(c.id)
	if err != nil {
		return 0, err
	}
	var wider, all int64
	for level, ns := range counts.WidthNS {
		all += ns
		if level > narrowLimit {
			wider += ns
		}
	}
	if all == 0 {
		return 0, errors.New("the probe saw nothing")
	}
	return float64(wider) / float64(all), nil
}

func stopsUnderCap(ctx context.Context, b *narrowBed) (float64, error) {
	c, err := b.burning(scx.Cap{CPUs: narrowLimit}, 32)
	if err != nil {
		return 0, err
	}
	if err := clock.Sleep(ctx, narrowFor); err != nil {
		return 0, err
	}
	stat, err := c.group.Stat()
	return float64(stat.ThrottledPeriods), err
}

func meanUse(limit float64) func(context.Context, *narrowBed) (float64, error) {
	return func(ctx context.Context, b *narrowBed) (float64, error) {
		c, err := b.burning(scx.Cap{CPUs: limit}, 16)
		if err != nil {
			return 0, err
		}
		if err := clock.Sleep(ctx, narrowFor/4); err != nil {
			return 0, err
		}
		use, err := mean(ctx, c, narrowFor)
		return use / limit, err
	}
}

// idleHalf stops the threads for half of each second: 0.5 s of nothing and 0.5 s of all they can. Without credit what was not used is
// lost, so that the mean is at most half of the cap.
func idleHalf(credit time.Duration) func(context.Context, *narrowBed) (float64, error) {
	return func(ctx context.Context, b *narrowBed) (use float64, err error) {
		const half = 500 * time.Millisecond
		c, err := b.make("capped")
		if err != nil {
			return 0, err
		}
		if err := b.cap(c, scx.Cap{CPUs: narrowLimit, Credit: credit}); err != nil {
			return 0, err
		}
		// All that they use counts, also while they are started and stopped.
		use, err = meanWhile(c, func() error {
			for range 4 {
				if err := clock.Sleep(ctx, half); err != nil {
					return err
				}
				if err := b.burners(c, 8); err != nil {
					return err
				}
				if err := clock.Sleep(ctx, half); err != nil {
					return err
				}
				if err := b.stopLast(); err != nil {
					return err
				}
			}
			return nil
		})
		return use / narrowLimit, err
	}
}

// sleeps is how many sleeps a sleeper's p99 is of.
const sleeps = 200

// sleepsOf are the p99 of a sleeper beside burners in a cgroup.
func (b *narrowBed) sleepsOf(ctx context.Context, c capped) (p99 time.Duration, err error) {
	p, err := b.burn(c, 32, 10*time.Millisecond)
	if err != nil {
		return 0, err
	}
	var took []time.Duration
	for len(took) < sleeps {
		select {
		case r, ok := <-p.Records():
			if !ok {
				return 0, errors.New("the sleeper has ended")
			}
			took = append(took, r.Took)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	slices.Sort(took)
	return took[sleeps*99/100], b.stopLast()
}

func sleeperBeside(ctx context.Context, b *narrowBed) (float64, error) {
	set, err := b.make("cpuset")
	if err != nil {
		return 0, err
	}
	if err := set.group.SetCPUs(lastOf(b.box.CPUs(), narrowLimit)); err != nil {
		return 0, err
	}
	pinned, err := b.sleepsOf(ctx, set)
	if err != nil {
		return 0, err
	}
	c, err := b.make("capped")
	if err != nil {
		return 0, err
	}
	if err := b.cap(c, scx.Cap{CPUs: narrowLimit}); err != nil {
		return 0, err
	}
	narrow, err := b.sleepsOf(ctx, c)
	return narrow.Seconds() / pinned.Seconds(), err
}

// lastOf are the n highest-numbered CPUs of a set.
func lastOf(set cpuset.CPUSet, n int) cpuset.CPUSet {
	list := set.List()
	return cpuset.New(list[max(0, len(list)-n):]...)
}

func manyCaps(ctx context.Context, b *narrowBed) (float64, error) {
	const containers, widest = 100, 3
	all := make([]capped, containers)
	for i := range all {
		var err error
		if all[i], err = b.make(fmt.Sprint("c", i)); err != nil {
			return 0, err
		}
		if err := b.cap(all[i], scx.Cap{CPUs: 1}); err != nil {
			return 0, err
		}
		if i%20 == 0 { // 5 of them want more than they may have
			if err := b.burners(all[i], 4); err != nil {
				return 0, err
			}
		}
	}
	for turn := range int(narrowFor / (100 * time.Millisecond)) {
		for i, c := range all {
			if err := b.held.Set(c.id, scx.Cap{CPUs: 0.5 + float64((turn+i)%widest)}); err != nil {
				return 0, err
			}
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	wrong := 0.0
	for _, c := range all {
		stats, err := b.held.Stats(c.id)
		if err != nil {
			return 0, err
		}
		wrong += max(0, float64(stats.Widest-widest)-float64(stats.Joined))
		for _, n := range stats.Faults {
			wrong += float64(n)
		}
	}
	return wrong, nil
}

// loaderCommand is this program's argument as a loader that is killed: it loads the scheduler, says so, and waits.
const loaderCommand = "load"

func loaderMain() int {
	s, err := scx.Load(scx.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "wide:", err)
		return 1
	}
	fmt.Println("loaded")
	<-s.Done()
	return 1
}

func loaderKilled(ctx context.Context, b *narrowBed) (float64, error) {
	c, err := b.make("burning")
	if err != nil {
		return 0, err
	}
	if err := b.burners(c, 16); err != nil {
		return 0, err
	}
	loader := exec.CommandContext(ctx, "/proc/self/exe", loaderCommand)
	loader.Stderr = os.Stderr
	out, err := loader.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := loader.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "loaded\n" {
		_ = loader.Process.Kill() // it has said why
		return 0, errors.Join(fmt.Errorf("the loader said %q", line), err, loader.Wait())
	}
	at := time.Now()
	if err := loader.Process.Kill(); err != nil {
		return 0, err
	}
	_ = loader.Wait() // it was killed
	for {
		state, err := os.ReadFile("/sys/kernel/sched_ext/state")
		if err != nil {
			return 0, err
		}
		if string(state) == "disabled\n" {
			return time.Since(at).Seconds(), nil
		}
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			return 0, err
		}
	}
}

func neighbourBeside(ctx context.Context, b *narrowBed) (float64, error) {
	if _, err := b.burning(scx.Cap{CPUs: narrowLimit}, 16); err != nil {
		return 0, err
	}
	other, err := b.make("other")
	if err != nil {
		return 0, err
	}
	if err := b.burners(other, 8); err != nil {
		return 0, err
	}
	if err := clock.Sleep(ctx, narrowFor/4); err != nil {
		return 0, err
	}
	use, err := mean(ctx, other, narrowFor)
	return use / float64(small.CPUs-narrowLimit), err
}

// narrow is the page's table of them.
func (p *page) narrow() {
	p.Line("\n## Narrow by itself\n\nOn %d CPUs, in guest time. Met: repeats that keep the bound.", small.CPUs)
	t := p.Table("figure", "bound", "came, each repeat", "met")
	for _, r := range narrowRows {
		bound := fmt.Sprintf("at most %g %s", r.bound, r.unit)
		switch {
		case r.least:
			bound = fmt.Sprintf("at least %g %s", r.bound, r.unit)
		case math.IsInf(r.bound, 1):
			bound = "none"
		}
		came, met, n := "", 0, 0
		for repeat := 1; repeat <= repeats; repeat++ {
			of := p.have.find(narrowPiece(r.name, repeat))
			if of == nil || of.Narrow == nil {
				continue
			}
			if n++; came != "" {
				came += ", "
			}
			came += fmt.Sprintf("%.3g", of.Narrow.Value)
			if of.Narrow.Met {
				met++
			}
		}
		if n == 0 {
			t.Rowf("%s | %s | %s", r.about, bound, notYet)
			continue
		}
		t.Rowf("%s | %s | %s | %d of %d", r.about, bound, came, met, n)
	}
	p.Line("\nWhat a switch costs is not told here: an emulator's instructions cost what its host's do.")
}
