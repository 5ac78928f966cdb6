package generate

import (
	"math/rand/v2"
	"testing"

	"github.com/unthrottle/unthrottle/internal/demand/recorded"
)

// The recordings of the tree are small, without names, and of services that differ.
func TestRecordings(t *testing.T) {
	const mostBytes = 100_000
	if len(recordedJSON) > mostBytes {
		t.Errorf("%d bytes", len(recordedJSON))
	}
	f, err := recorded.Decode(recordedJSON)
	if err != nil {
		t.Fatal(err)
	}
	all, err := recordings()
	if err != nil || len(all) < 8 || len(all) != len(f.Services) {
		t.Fatalf("%d recordings, %v", len(all), err)
	}
	wide, steady := 0, 0
	for i := range f.Services {
		s := &f.Services[i]
		if len(s.WorkUS) < 150 || s.CPUs() < 0.005 || s.CPUs() > 4 || s.Date == "" || s.Kernel == "" ||
			s.RecordedCPUs < 1 || int(all[i].widest) > f.ReplayedCPUs {
			t.Errorf("%s: %d periods, %.3f CPUs, at most %d wide, of %q on Linux %q", s.Kind, len(s.WorkUS), s.CPUs(),
				all[i].widest, s.Date, s.Kernel)
		}
		if float64(all[i].widest) > 4*s.CPUs() && all[i].widest >= 4 {
			wide++
		}
		if all[i].widest <= 2 {
			steady++
		}
		t.Logf("%-30s %.3f CPUs, at most %d wide, half of its periods %.3f CPUs or less", s.Kind, s.CPUs(),
			all[i].widest, float64(all[i].calm)/float64(period))
	}
	if wide == 0 || steady == 0 {
		t.Errorf("%d recordings run much wider than they use, %d on one CPU or two", wide, steady)
	}
}

// What a service of a drawn size wants: as much as was drawn at the peak, less at less load, never more than its width,
// and no wider than a host.
func TestReplayedDemand(t *testing.T) {
	all, err := recordings()
	if err != nil {
		t.Fatal(err)
	}
	off, n := 0.0, 0
	for no := range uint64(300) {
		chance := rand.New(rand.NewPCG(5, no))
		limit := limits[chance.IntN(len(limits))]
		r := replayOf(chance, all, limit)
		want := 0.0
		for _, p := range r.parts {
			want += p.share * r.size * r.source.cpus
		}
		if want < 0.05*limit*0.99 || want > 0.55*limit*1.01 {
			t.Errorf("%s: %.2f CPUs of a limit of %v", r.source.kind, want, limit)
		}
		var cpus [levels]float64
		for level := range levels {
			d := r.offered(chance, level)
			for i, work := range d.workNS {
				if work < 0 || d.width[i] < 1 || d.width[i] > hostCPUs || work > int64(d.width[i])*int64(period) {
					t.Fatalf("%s: period %d: %d ns on %d CPUs", r.source.kind, i, work, d.width[i])
				}
				cpus[level] += float64(work) / float64(period) / float64(periods)
			}
		}
		off, n = off+cpus[levels-1]/want-1, n+1
		if cpus[0] > 0.7*cpus[levels-1] {
			t.Errorf("%s of %d parts: %.3f CPUs at little load, %.3f at the peak", r.source.kind, len(r.parts), cpus[0], cpus[levels-1])
		}
	}
	if off /= float64(n); off < -0.05 || off > 0.05 {
		t.Errorf("at the peak services use %.1f %% more than was drawn", 100*off)
	}
}
