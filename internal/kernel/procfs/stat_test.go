package procfs

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

const ms = time.Millisecond

const example = `cpu  300 1 30 4000 5 3 6 7 50 0
cpu0 100 1 10 2000 2 3 4 5 50 0
cpu3 200 0 20 2000 3 0 2 2 0 0
intr 12345 0 0
cpu7 is another file's line
`

func TestRead(t *testing.T) {
	s, err := ReadStat(fstest.MapFS{"stat": &fstest.MapFile{Data: []byte(example)}})
	want := map[int]Times{0: {21250 * ms, 20020 * ms, 50 * ms}, 3: {22270 * ms, 20030 * ms, 20 * ms}}
	if err != nil || s.Total != (Times{43520 * ms, 40050 * ms, 70 * ms}) || len(s.CPUs) != 2 || s.CPUs[0] != want[0] ||
		s.CPUs[3] != want[3] {
		t.Errorf("%+v, %v", s, err)
	}
	if b, u := s.Total.Busy(), s.Total.Used(); b != 3470*ms || u != 3400*ms {
		t.Errorf("busy %v, used %v", b, u)
	}
	if d := s.CPUs[3].Since(s.CPUs[0]); d != (Times{1020 * ms, 10 * ms, -30 * ms}) {
		t.Errorf("%+v", d)
	}
	if _, err := ReadStat(fstest.MapFS{}); err == nil {
		t.Error("read where there is none")
	}
}

// Text that is not of such a file is refused, by its line, without a result.
func TestRefused(t *testing.T) {
	const all, one = "cpu 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7 8\n"
	for name, bad := range map[string]struct{ text, says string }{
		"empty":     {"", "no CPUs"},
		"another":   {"intr 1 2 3 4 5 6 7 8 9\n", "no CPUs"},
		"no sum":    {one + all, `"cpu0": the line of all CPUs comes first`},
		"two sums":  {all + one + all, `"cpu": the line of all CPUs comes first`},
		"sum alone": {all, "no CPUs"},
		"few":       {all + "cpu0 1 2 3\n", `"cpu0": fewer than 8`},
		"word":      {all + "cpu0 1 2 3 4 x 6 7 8\n", `"x" is not a number`},
		"minus":     {"cpu 1 2 3 -4 5 6 7 8\n" + one, `"-4" is not a number`},
		"no CPU":    {all + "cpux 1 2 3 4 5 6 7 8\n", `"cpux" is not a CPU`},
		"number":    {all + "cpu99999999 1 2 3 4 5 6 7 8\n", `"cpu99999999" is not a CPU`},
	} {
		if s, err := parseStat(bad.text); err == nil || !strings.Contains(err.Error(), bad.says) || s.CPUs != nil {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// A host of 1024 CPUs has had 300 years of CPU time after four months.
func TestTimesOfALargeHost(t *testing.T) {
	for _, ticks := range []int{0, 1 << 32, 1 << 40, 1 << 50} {
		at := func(busy int) Times {
			times := " " + strconv.Itoa(ticks+busy) + " 0 0 " + strconv.Itoa(ticks) + " 0 0 0 0\n"
			got, err := parseStat("cpu " + times + "cpu0" + times)
			if err != nil {
				t.Fatal(err)
			}
			return got.Total
		}
		if d := at(700).Since(at(0)).Busy(); d != 7*time.Second {
			t.Errorf("after %d ticks: busy for %v, want 7s", ticks, d)
		}
	}
}

// The kernel's own file.
func TestThisHost(t *testing.T) {
	s, err := ReadStat(os.DirFS("/proc"))
	if err != nil {
		t.Fatal(err)
	}
	for cpu, c := range s.CPUs {
		if c.All <= 0 || c.Idle > c.All || c.All > s.Total.All {
			t.Errorf("CPU %d: %+v of %+v", cpu, c, s.Total)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("cpu  68719476735 68719476735 0 0 0 0 0 1\ncpu0 99999999999999999999 0 0 0 0 0 0 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStat(text)
		if err != nil && (len(err.Error()) > 400 || s.CPUs != nil) {
			t.Errorf("%+v, and at length: %v", s, err)
		}
	})
}
