package forecast

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// Contradicting events make no forecast panic, hang or exceed the CPU time of the host.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte{1, 0, 1, 2, 9, 2, 0, 2, 0, 3, 1, 1, 2, 0, 200})
	f.Add([]byte{2, 0, 1, 0, 1, 1, 0, 0, 1, 50, 4, 0, 1, 0, 1, 1, 3, 1, 0, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := rt.New(2).Limit(20*ms, 100*ms).Process("app")
		s.Threads("w", 2)
		h := s.Header()
		b, err := newBuilder(*h)
		if err != nil {
			t.Fatal(err)
		}
		tids := []uint32{0, h.Threads[0].TID, h.Threads[1].TID, h.Threads[2].TID, 7, 8}
		at := int64(0)
		for ; len(data) >= 5; data = data[5:] {
			at += int64(data[4]) * 100_000
			tid := func(x byte) uint32 { return tids[int(x)%len(tids)] }
			b.add(&recording.Event{
				AtNS: at, Kind: recording.Kind(data[0] % 14), Flags: recording.Flags(data[0] >> 4),
				CPU: int32(data[1] % 3), Thread: tid(data[2]),
				NextThread: tid(data[3]), Waker: tid(data[1] >> 2), Owner: uint32(data[2] >> 5),
				NextOwner: uint32(data[3] >> 5), TGID: tid(data[1]), Text: "x",
			})
		}
		l, err := b.finish(recording.Footer{EndNS: at + 1})
		if err != nil {
			return
		}
		for _, r := range []Remedy{{Name: None}, {Name: Pin, CPUs: 1}, {Name: Pools, CPUs: 1},
			{Name: Pools, CPUs: 1, Pool: AllPools}, {Name: Budget, CPUs: 1}, {Name: Shards, Factor: 0.5}} {
			out, err := l.run(trial{remedy: r, load: 1, hostLoad: 0.5, seed: 1})
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if most := 2*l.window + time.Millisecond; out.cpu < 0 || out.cpu > most || out.stopped > l.window {
				t.Fatalf("%+v: %v of CPU time and %v stopped in %v on 2 CPUs", r, out.cpu, out.stopped, l.window)
			}
		}
	})
}

// The same holds for any load on any small host. All work is done or left over, if no run is endless.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.IntRange(1, 6).Draw(t, "cpus")
		s := rt.New(cpus).Limit(time.Duration(rapid.IntRange(5, 300).Draw(t, "quota"))*ms, 100*ms).Process("app")
		for p := range rapid.IntRange(1, 3).Draw(t, "pools") {
			tids := s.Threads(fmt.Sprintf("pool%c", 'a'+p), rapid.IntRange(1, 5).Draw(t, "threads"))
			every := time.Duration(rapid.IntRange(5, 200).Draw(t, "every")) * ms
			work := time.Duration(rapid.IntRange(1, 60).Draw(t, "work")) * ms
			s.Repeat(int(400*ms/every), every, func(at time.Duration) { s.Work(at, work, tids...) })
		}
		r := s.Run(500 * ms)
		l := loadOf(t, r)
		limit := time.Duration(float64(l.window) * l.limit)
		out, err := l.run(trial{remedy: Remedy{Name: None}, load: 1, seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		// The last period's quota, and a tick and a kept millisecond per CPU.
		if most := limit + l.recordedScenario.Cgroups[l.binding].Limit.Quota + time.Duration(cpus)*5*ms; out.cpu > most {
			t.Fatalf("%v of CPU time under a limit of %v", out.cpu, most)
		}
		free, err := l.run(trial{remedy: Remedy{Name: Weight}, load: 1, seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if free.throttledPeriods != 0 || free.stopped != 0 || free.cpu+ms < out.cpu {
			t.Fatalf("without a quota %d periods throttled, %v stopped, %v of CPU time, and %v with it",
				free.throttledPeriods, free.stopped, free.cpu, out.cpu)
		}
	})
}
