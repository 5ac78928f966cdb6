package simulate

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// bpfTick is how often the scheduler in BPF looks at its credit.
const bpfTick = time.Millisecond

// capped is a cap, and how many threads want to run in each tick.
type capped struct {
	limit  float64
	credit time.Duration
	widest int
	ncpu   int
	wanted []int
}

// granted is what a rule gave in each tick.
type granted struct {
	cpuMS  float64
	widths []int // at which it was
}

// TestCreditAsInBPF compares the rule of credit with that of the scheduler, built for this machine from its own source: the
// same widths, the same CPU time. They differ in when credit is used, by two choices of the scheduler that this simulator
// does not have. It looks once a tick, and so ends a turn, or the use of credit, up to a tick late or early. And it begins
// to use credit that lasts for four ticks at the full width, or fills three quarters of the bucket; here 8 ms, or a half,
// are enough.
func TestCreditAsInBPF(t *testing.T) {
	program := buildBucket(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []float64{0.3, 0.5, 1, 1.5, 2, 2.5, 4, 7.25} {
		for _, perCPU := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond} {
			for _, widest := range []int{0, 10} {
				c := capped{limit, time.Duration(limit * float64(perCPU)), widest, 16, nil}
				for _, w := range []int{32, 1, 0, 8} { // each at least once, and for long
					c.wanted = append(c.wanted, slices.Repeat([]int{w}, 800)...)
				}
				for len(c.wanted) < 8000 {
					c.wanted = append(c.wanted, slices.Repeat([]int{[]int{0, 0, 1, 3, 8, 32}[rng.IntN(6)]}, 1+rng.IntN(300))...)
				}
				c.compare(t, c.inBPF(t, program), c.inSimulator())
			}
		}
	}
}

// buildBucket builds the scheduler's rule of credit for this machine.
func buildBucket(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "bucket")
	build := exec.CommandContext(t.Context(), require.CCompiler(t), "-std=gnu17", "-O1", "-w", "-o", program, "../../widthcap/scx/testdata/bucket.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return program
}

// TestIdleHalf is seed 000's counterexample: a group that rests for half of each second, and then uses all it may. Without
// credit it gets half of its limit, with a credit of what half a second saves nearly all of it.
func TestIdleHalf(t *testing.T) {
	program := buildBucket(t)
	const limit, cycles = 2, 4
	for _, credit := range []time.Duration{0, time.Second, 2 * time.Second} {
		c := capped{limit, credit, 0, 8, nil}
		for range cycles {
			c.wanted = append(append(c.wanted, make([]int, 500)...), slices.Repeat([]int{8}, 500)...)
		}
		rules := map[string][]granted{"in BPF": c.inBPF(t, program)}
		if credit > 0 { // the simulator has a rule of credit only where there is some
			rules["here"] = c.inSimulator()
		}
		for where, got := range rules {
			var sum float64
			for _, g := range got {
				sum += g.cpuMS
			}
			share := sum / (limit * cycles * 1000)
			if credit == 0 && math.Abs(share-0.5) > 0.02 || credit > 0 && (share < 0.95 || share > 1.01) {
				t.Errorf("credit %v: %.3f of the limit %s", credit, share, where)
			}
		}
	}
}

func (c *capped) widestCPUs() int {
	if c.widest > 0 {
		return min(c.widest, c.ncpu)
	}
	return c.ncpu
}

func (c *capped) compare(t *testing.T, bpf, simulated []granted) {
	t.Helper()
	name := fmt.Sprintf("limit %g, credit %v, widest %d", c.limit, c.credit, c.widest)
	widths := []int{int(c.limit), int(math.Ceil(c.limit)), c.widestCPUs()}
	// What the choices named above come to, once, and the share by which they differ each time that the bucket was full.
	once := math.Min(4*(float64(c.widestCPUs())-c.limit), 0.75*c.credit.Seconds()*1000) + float64(c.widestCPUs()) + turn.Seconds()*1000
	const again = 0.02
	var sumBPF, sumSimulated float64
	var seenBPF, seenSimulated []int
	for i := range c.wanted {
		sumBPF += bpf[i].cpuMS
		sumSimulated += simulated[i].cpuMS
		seenBPF, seenSimulated = append(seenBPF, bpf[i].widths...), append(seenSimulated, simulated[i].widths...)
		if most := c.limit*float64(i+1) + c.credit.Seconds()*1000 + float64(c.widestCPUs()) + turn.Seconds()*1000; sumBPF > most || sumSimulated > most {
			t.Fatalf("%s: after %d ms %.1f ms in BPF and %.1f ms here, above %.1f", name, i+1, sumBPF, sumSimulated, most)
		}
		if off := math.Abs(sumBPF - sumSimulated); off > once+again*sumBPF {
			t.Fatalf("%s: after %d ms %.1f ms of CPU time in BPF, and %.1f ms here", name, i+1, sumBPF, sumSimulated)
		}
	}
	for where, seen := range map[string][]int{"in BPF": seenBPF, "here": seenSimulated} {
		slices.Sort(seen)
		seen = slices.Compact(seen)
		if slices.ContainsFunc(seen, func(w int) bool { return !slices.Contains(widths, w) }) || !slices.Contains(seen, widths[0]) ||
			!slices.Contains(seen, widths[1]) || !slices.Contains(seen, widths[2]) {
			t.Errorf("%s: widths %d %s, want all of %d", name, seen, where, widths)
		}
	}
}

func (c *capped) inBPF(t *testing.T, program string) []granted {
	t.Helper()
	var in bytes.Buffer
	fmt.Fprintln(&in, int64(math.Round(c.limit*1e6)), c.credit.Nanoseconds(), c.widest, c.ncpu)
	for _, w := range c.wanted {
		fmt.Fprintln(&in, w)
	}
	run := exec.CommandContext(t.Context(), program)
	run.Stdin = &in
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]granted, len(c.wanted))
	from := bytes.NewReader(out)
	for i := range all {
		var slots int
		if _, err := fmt.Fscan(from, &slots); err != nil {
			t.Fatal(err)
		}
		all[i] = granted{float64(min(slots, c.wanted[i])) * bpfTick.Seconds() * 1000, []int{slots}}
	}
	return all
}

func (c *capped) inSimulator() []granted {
	of := credit{limit: c.limit, most: float64(c.credit), widest: c.widestCPUs()}
	var all []granted
	for _, wanted := range c.wanted {
		var g granted
		for left := bpfTick; left > 0; {
			running, d := min(wanted, of.width()), left
			if after, ok := of.next(running); ok {
				d = min(d, after)
			}
			g.widths = append(g.widths, of.width())
			of.spend(float64(d), running)
			of.settle()
			g.cpuMS += float64(running) * d.Seconds() * 1000
			left -= d
		}
		all = append(all, g)
	}
	return all
}
