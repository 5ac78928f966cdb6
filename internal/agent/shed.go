package agent

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

// shedding is how much is shed; each step includes those before it.
type shedding int

const (
	shedNothing    shedding = iota
	shedRecordings          // no automatic recordings
	shedPeriods             // no period rows
	shedRate                // rounds are slowRounds times as long
)

// slowRounds is by how much rounds are longer with shedRate.
const slowRounds = 5

// dropped names what is shed.
func (s shedding) dropped() []string { return []string{"recordings", "periods", "rate"}[:s] }

const (
	// judgeEvery is how often the agent looks at what it takes.
	judgeEvery = 30 * time.Second
	// After overRounds looks in a row above the budget the next thing is shed; after underRounds looks in a row below
	// comfortable of it the last thing comes back.
	overRounds, underRounds = 2, 10
	comfortable             = 0.6
)

// shedder decides what to shed, in the order of shedding.
type shedder struct {
	own         policy.Own
	level       shedding
	over, under int
}

// judge takes one look in, and returns why the level changed; "": it did not.
func (s *shedder) judge(cpu float64, resident int64) (why string) {
	tooMuch := ""
	switch {
	case s.own.CPU > 0 && cpu > s.own.CPU:
		tooMuch = fmt.Sprintf("%.2f %% of a CPU, of %.2f %%", 100*cpu, 100*s.own.CPU)
	case s.own.MemoryBytes > 0 && resident > s.own.MemoryBytes:
		tooMuch = fmt.Sprintf("%.1f MB resident, of %.1f MB", float64(resident)/1e6, float64(s.own.MemoryBytes)/1e6)
	}
	below := (s.own.CPU == 0 || cpu < comfortable*s.own.CPU) &&
		(s.own.MemoryBytes == 0 || float64(resident) < comfortable*float64(s.own.MemoryBytes))
	switch {
	case tooMuch != "":
		s.over, s.under = s.over+1, 0
	case below:
		s.over, s.under = 0, s.under+1
	default:
		s.over, s.under = 0, 0
	}
	switch {
	case s.over >= overRounds && s.level < shedRate:
		s.level++
		s.over = 0
		return tooMuch
	case s.under >= underRounds && s.level > shedNothing:
		s.level--
		s.under = 0
		return "well below the budget again"
	}
	return ""
}

// budget applies a shedder's decisions.
type budget struct {
	mu      sync.Mutex
	level   shedding
	changed chan struct{} // closed at the next change; nil until one is awaited
}

// now returns what is shed, and a channel that closes when that changes.
func (b *budget) now() (shedding, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.level, b.changed
}

func (b *budget) sheds(s shedding) bool {
	level, _ := b.now()
	return level >= s
}

func (b *budget) set(level shedding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.level = level
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// unless runs work again and again while s is not shed, until ctx ends or work fails. A change that sheds s ends the
// context of work.
func (b *budget) unless(ctx context.Context, s shedding, work func(context.Context) error) error {
	for ctx.Err() == nil {
		level, changed := b.now()
		if level >= s {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		within, end := context.WithCancel(ctx)
		go func() {
			defer end()
			for within.Err() == nil && !b.sheds(s) {
				_, changed := b.now()
				select {
				case <-within.Done():
				case <-changed:
				}
			}
		}()
		err := work(within)
		ended := within.Err() != nil
		end()
		if err != nil || !ended {
			return err
		}
	}
	return nil
}

// keepBudget looks at what the agent takes until ctx ends.
func (a *agent) keepBudget(ctx context.Context) error {
	if a.Rules.Own == (policy.Own{}) {
		return nil
	}
	defer a.tellDropped(shedNothing, "")
	s := shedder{own: a.Rules.Own}
	for at, used := time.Now(), spent.Clock(unix.CLOCK_PROCESS_CPUTIME_ID); clock.Sleep(ctx, judgeEvery) == nil; {
		now, nowUsed := time.Now(), spent.Clock(unix.CLOCK_PROCESS_CPUTIME_ID)
		share := (nowUsed - used).Seconds() / now.Sub(at).Seconds()
		at, used = now, nowUsed
		why := s.judge(share, resident())
		if why == "" {
			continue
		}
		a.budget.set(s.level)
		a.Log.Warn("the agent keeps to its own budget", "dropped", strings.Join(s.level.dropped(), ","), "why", why)
		a.tellDropped(s.level, why)
	}
	return nil
}

// resident is the process's resident memory in bytes (proc_pid_statm(5)); 0 where it cannot be read.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// interval is how long the next round is.
func (a *agent) interval() time.Duration {
	if a.budget.sheds(shedRate) {
		return a.Rules.Interval * slowRounds
	}
	return a.Rules.Interval
}

// Dropped is what a running agent has shed to keep to its own budget.
type Dropped struct {
	Process int       `json:"process"`
	Since   time.Time `json:"since"`
	What    []string  `json:"what"` // recordings, periods, rate
	Why     string    `json:"why"`
}

// droppedFile is where below the state directory an agent says what it has shed.
const droppedFile = "dropped.json"

// tellDropped tells `status` what is shed.
func (a *agent) tellDropped(s shedding, why string) {
	if s == shedNothing {
		a.tellStatus(droppedFile, nil)
		return
	}
	a.tellStatus(droppedFile, Dropped{os.Getpid(), time.Now().UTC().Truncate(time.Second), s.dropped(), why})
}

// ReadDropped returns what the agent of a state directory has shed; nil: nothing, or it has ended.
func ReadDropped(stateDir string) (*Dropped, error) {
	return readTold(stateDir, droppedFile, func(d *Dropped) int { return d.Process })
}

var shedDesc = prometheus.NewDesc("unthrottle_agent_dropped",
	"1 if the agent has dropped this to keep to its own budget, else 0.", []string{"what"}, nil)

// Describe implements prometheus.Collector.
func (b *budget) Describe(ch chan<- *prometheus.Desc) { ch <- shedDesc }

// Collect implements prometheus.Collector.
func (b *budget) Collect(ch chan<- prometheus.Metric) {
	level, _ := b.now()
	for i, what := range shedRate.dropped() {
		v := 0.0
		if shedding(i) < level {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(shedDesc, prometheus.GaugeValue, v, what)
	}
}
