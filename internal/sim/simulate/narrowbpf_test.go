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

// capped is a cap, and how many threads want to run in each tick.
type capped struct {
	limit  float64
	credit time.Duration
	widest int
	ncpu   int
	wanted []int
}

// TestCreditAsInBPF compares the rule of credit with that of the scheduler, built for this machine from its own source: the same CPUs in
// each tick.
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
				bpf, here := c.inBPF(t, program), c.inSimulator()
				for i := range bpf {
					if bpf[i] != here[i] {
						t.Fatalf("limit %g, credit %v, widest %d, tick %d: %d CPUs in BPF, %d here", limit, c.credit,
							widest, i, bpf[i], here[i])
					}
				}
				for _, width := range []int{int(limit), int(math.Ceil(limit)), int(newCredit(limit, 0, widest, c.ncpu).widest)} {
					if !slices.Contains(here, width) {
						t.Errorf("limit %g, credit %v, widest %d: never %d CPUs", limit, c.credit, widest, width)
					}
				}
			}
		}
	}
}

// buildBucket builds the scheduler's rule of credit for this machine.
func buildBucket(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "bucket")
	build := exec.CommandContext(t.Context(), require.CCompiler(t), "-std=gnu17", "-O1", "-w", "-o", program,
		"../../widthcap/scx/testdata/bucket.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return program
}

// TestIdleHalf is seed 000's counterexample: a group that rests for half of each second, and then uses all it may. Without
// credit it gets half of its limit, with a credit of what half a second saves nearly all of it.
func TestIdleHalf(t *testing.T) {
	const limit, cycles = 2, 4
	for _, most := range []time.Duration{0, time.Second, 2 * time.Second} {
		c := capped{limit, most, 0, 8, nil}
		for range cycles {
			c.wanted = append(append(c.wanted, make([]int, 500)...), slices.Repeat([]int{8}, 500)...)
		}
		got := 0
		for i, slots := range c.inSimulator() {
			got += min(slots, c.wanted[i])
		}
		share := float64(got) / (limit * cycles * 1000)
		if most == 0 && math.Abs(share-0.5) > 0.02 || most > 0 && (share < 0.95 || share > 1.01) {
			t.Errorf("credit %v: %.3f of the limit", most, share)
		}
	}
}

// inBPF is how many CPUs the scheduler's rule gives in each tick.
func (c *capped) inBPF(t *testing.T, program string) []int {
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
	slots := make([]int, len(c.wanted))
	from := bytes.NewReader(out)
	for i := range slots {
		if _, err := fmt.Fscan(from, &slots[i]); err != nil {
			t.Fatal(err)
		}
	}
	return slots
}

func (c *capped) inSimulator() []int {
	bucket := newCredit(c.limit, c.credit, c.widest, c.ncpu)
	slots := make([]int, len(c.wanted))
	for i, wanted := range c.wanted {
		slots[i] = int(bucket.allow)
		bucket.settle(creditTick, min(wanted, slots[i]))
	}
	return slots
}
