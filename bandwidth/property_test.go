package bandwidth

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// machine drives a group as a scheduler would, with random runs.
type machine struct {
	g       *Group
	now     time.Duration
	on      []bool // a thread is runnable on that CPU
	refills int
	overrun time.Duration // charged beyond what silos held
}

// advance moves the time, firing the timers that come due.
func (m *machine) advance(to time.Duration) {
	for {
		at, slack := m.g.PeriodAt(), m.g.SlackAt()
		period := at != Never && (slack == Never || at <= slack)
		if !period {
			at = slack
		}
		if at == Never || at > to {
			m.now = to
			return
		}
		m.now = at
		var freed []int
		if period {
			m.refills++
			freed = m.g.PeriodTimer(at, nil)
		} else {
			freed = m.g.SlackTimer(at, nil)
		}
		for _, cpu := range freed {
			m.g.Unthrottle(at, cpu)
		}
	}
}

// TestConservation checks that a group never uses more CPU time than the refills gave, plus the overrun of
// the ticks. Silos and pool account for the rest, to the nanosecond where nothing is lost.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { conserve(t, rapid.IntRange(1, 200).Draw(t, "steps")) })
}

// TestConservationOverAMillionSteps checks the same over long lives, in which errors of a nanosecond would
// add up.
func TestConservationOverAMillionSteps(t *testing.T) {
	done := 0
	for done < 1_000_000 {
		rapid.Check(t, func(t *rapid.T) {
			const steps = 10_000
			conserve(t, steps)
			done += steps
		})
		if t.Failed() {
			return
		}
	}
}

// conserve takes a group with the rules of any kernel through random steps.
func conserve(t *rapid.T, steps int) {
	releases := []string{"4.4", "4.19", "5.4", "5.10", "5.15", "6.3", "6.12", "6.18", "7.2"}
	r, err := For(rapid.SampledFrom(releases).Draw(t, "release"))
	if err != nil {
		t.Fatal(err)
	}
	period := time.Duration(rapid.IntRange(1, 200).Draw(t, "period ms")) * ms
	quota := time.Duration(rapid.IntRange(1, 400).Draw(t, "quota ms")) * ms
	burst := time.Duration(0)
	if r.Has(Since5_14) {
		burst = rapid.SampledFrom([]time.Duration{0, quota / 2, quota}).Draw(t, "burst")
	}
	cpus := rapid.IntRange(1, 16).Draw(t, "cpus")
	g, err := New(&r, cpus, Limit{Quota: quota, Period: period, Burst: burst}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var gone, refilled time.Duration
	refilled = g.Pool()
	for cpu := range cpus {
		refilled += g.Left(cpu) // 1 ns each from 6.18 on
	}
	g.Trace = func(s Step) {
		switch s.Kind {
		case Lost, Expired:
			gone += s.Amount
		case Refilled:
			refilled += s.Amount // with burst 0 a refill may take quota away as well
		}
	}
	m := machine{g: g, on: make([]bool, cpus)}
	for range steps {
		m.step(t)
		m.invariants(t, refilled, gone, quota+burst+time.Duration(cpus)*r.Slice)
	}
	s := g.Stat(m.now)
	bound := time.Duration(m.refills+1)*quota + burst + m.overrun + time.Duration(cpus)
	if s.Usage > bound {
		t.Fatalf("used %v, more than %v: %d refills of %v, overrun %v", s.Usage, bound, m.refills, quota, m.overrun)
	}
	if s.ThrottledPeriods > s.ActivePeriods || s.ActivePeriods > s.Periods {
		t.Fatalf("%+v", s)
	}
	if s.Throttled > m.now*time.Duration(cpus) {
		t.Fatalf("throttled %v in %v on %d CPUs", s.Throttled, m.now, cpus)
	}
}

func (m *machine) step(t *rapid.T) {
	cpu := rapid.IntRange(0, len(m.on)-1).Draw(t, "cpu")
	g := m.g
	switch {
	case !m.on[cpu]:
		m.on[cpu] = true
		g.Enqueue(m.now, cpu)
	case g.Throttled(cpu):
		m.advance(m.now + time.Duration(rapid.Int64Range(0, int64(150*ms)).Draw(t, "wait")))
	default:
		before := max(0, g.Left(cpu))
		ran := time.Duration(rapid.Int64Range(0, int64(10*ms)).Draw(t, "ran"))
		sleeps := rapid.Bool().Draw(t, "sleeps")
		m.advance(m.now + ran)
		if before = max(before, g.Left(cpu)); ran > before {
			m.overrun += ran - before
		}
		g.Charge(m.now, cpu, ran, !sleeps)
		if sleeps {
			m.on[cpu] = false
			g.Dequeue(m.now, cpu)
		}
		g.Check(m.now, cpu, m.on[cpu])
	}
}

func (m *machine) invariants(t *rapid.T, refilled, gone, most time.Duration) {
	g := m.g
	// Slack returns on top of a full pool, until the next refill.
	if g.Pool() < 0 || g.Pool() > most {
		t.Fatalf("pool %v, from 0 to %v", g.Pool(), most)
	}
	sum := g.Pool() + g.Stat(m.now).Usage + gone
	for cpu := range m.on {
		sum += g.Left(cpu)
		if g.Left(cpu) > g.rules.Slice {
			t.Fatalf("CPU %d holds %v, more than a slice", cpu, g.Left(cpu))
		}
		if g.Throttled(cpu) && g.Left(cpu) > 1 {
			t.Fatalf("CPU %d is throttled with %v left", cpu, g.Left(cpu))
		}
	}
	if sum != refilled {
		t.Fatalf("pool, silos, usage and losses are %v, refills were %v", sum, refilled)
	}
	if g.PeriodAt() == Never && len(g.waiting) > 0 {
		t.Fatal("throttled CPUs and no timer")
	}
}

func BenchmarkCharge(b *testing.B) {
	g := group(b, "6.12", 64, Limit{Quota: 200 * ms, Period: 100 * ms})
	freed := make([]int, 0, 64)
	var now time.Duration
	b.ReportAllocs()
	for i := range b.N {
		cpu := i & 63
		now += 100 * time.Microsecond
		for at := g.PeriodAt(); at != Never && at <= now; at = g.PeriodAt() {
			freed = g.PeriodTimer(at, freed[:0])
			for _, c := range freed {
				g.Unthrottle(at, c)
			}
		}
		if !g.Enqueue(now, cpu) {
			g.Charge(now, cpu, ms, false)
			g.Dequeue(now, cpu)
			g.Check(now, cpu, false)
		}
	}
}
