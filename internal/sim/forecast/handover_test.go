package forecast

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// handOvers is a reader that brings work to a pool of four threads with a CPU each, oldest sleeper first, in the first second
// of four. Within their work they wait for each other: a thread that waits is woken by one that works.
func handOvers(t *rapid.T) recording.Recording {
	const workers = 4
	s := rt.New(workers+1).Limit(60*ms, 100*ms).Process("app")
	io, pool := s.Threads("io", 1)[0], s.Threads("http", workers)
	at := func(d time.Duration, e recording.Event) { e.AtNS = d.Nanoseconds(); s.Add(e) }
	asleep, waiting, left := []int{0, 1, 2, 3}, []int{}, map[int]int{} // left: milliseconds of work
	begin := func(now time.Duration, w int, by uint32) {
		at(now, recording.Event{Kind: recording.Wakeup, Thread: pool[w], CPU: int32(w), Waker: by})
		at(now, recording.Event{Kind: recording.Switch, NextThread: pool[w], CPU: int32(w)})
	}
	sleep := func(now time.Duration, w int) {
		at(now, recording.Event{Kind: recording.Switch, CPU: int32(w), Thread: pool[w]})
	}
	chance := rapid.IntRange(0, 7)
	for now := 10 * ms; now < time.Second || len(left) > 0; now += ms {
		for w := range pool {
			if _, works := left[w]; !works {
				continue
			}
			left[w]--
			last := len(left) == 1
			for len(waiting) > 0 && (last && left[w] <= 0 || chance.Draw(t, "lets go") == 0) {
				begin(now, waiting[0], pool[w])
				left[waiting[0]] = 1 + chance.Draw(t, "then")
				waiting = waiting[1:]
			}
			switch {
			case left[w] <= 0:
				sleep(now, w)
				delete(left, w)
				asleep = append(asleep, w)
			case !last && chance.Draw(t, "waits") == 0:
				sleep(now, w)
				delete(left, w)
				waiting = append(waiting, w)
			}
		}
		if now >= time.Second || len(asleep) == 0 || chance.Draw(t, "comes") > 0 {
			continue
		}
		w := asleep[0]
		asleep = asleep[1:]
		left[w] = 1 + chance.Draw(t, "work")
		at(now, recording.Event{Kind: recording.Wakeup, Thread: io, CPU: workers, Owner: recording.FirstOwner})
		at(now, recording.Event{Kind: recording.Switch, NextThread: io, CPU: workers})
		begin(now, w, io)
		at(now+ms/2, recording.Event{Kind: recording.Switch, Thread: io, CPU: workers})
	}
	return s.Run(4 * time.Second)
}

// Threads that share a queue and wait for each other within their work do all of it, whatever stops them meanwhile: no
// replay waits for work that no thread can begin.
func TestNoReplayStops(t *testing.T) {
	shared := 0
	rapid.Check(t, func(t *rapid.T) {
		r := handOvers(t)
		l := loadOf(t, r)
		for _, order := range l.replay.WakeOrders {
			if order != simulate.NotShared {
				shared++
			}
		}
		for _, r := range []Remedy{{Name: None}, {Name: Pin, CPUs: 1}, {Name: Raise, Factor: 2}, {Name: Weight}} {
			out, err := l.run(trial{remedy: r, load: 1, seed: 1})
			if err != nil || out.refused != nil {
				t.Fatal(err, out.refused)
			}
			if out.unfinished > 0 || out.cpu < l.recorded.cpu-ms || out.cpu > l.recorded.cpu+ms {
				t.Fatalf("%+v: %v of CPU time and %v left, recorded %v", r, out.cpu, out.unfinished, l.recorded.cpu)
			}
		}
	})
	if shared == 0 {
		t.Error("no pool shares a queue")
	}
}

// A wake-up that comes after its waker went to sleep is still of the waker.
func TestLateWakeup(t *testing.T) {
	s := rt.New(2).Limit(100*ms, 100*ms).Process("app")
	tids := s.Threads("w", 2)
	feeder, worker := tids[0], tids[1]
	at := func(d time.Duration, e recording.Event) { e.AtNS = d.Nanoseconds(); s.Add(e) }
	const late = 20 * time.Microsecond
	for now := 10 * ms; now < 200*ms; now += 10 * ms {
		at(now, recording.Event{Kind: recording.Wakeup, Thread: feeder, Owner: recording.FirstOwner})
		at(now, recording.Event{Kind: recording.Switch, NextThread: feeder})
		at(now+2*ms, recording.Event{Kind: recording.Switch, Thread: feeder})
		at(now+2*ms+late, recording.Event{Kind: recording.Wakeup, Thread: worker, CPU: 1, Waker: feeder})
		at(now+2*ms+late, recording.Event{Kind: recording.Switch, NextThread: worker, CPU: 1})
		at(now+3*ms, recording.Event{Kind: recording.Switch, Thread: worker, CPU: 1})
	}
	l := loadOf(t, s.Run(210*ms))
	var kinds [2]map[simulate.StepKind]int
	for i := range kinds {
		kinds[i] = map[simulate.StepKind]int{}
		for _, step := range l.replay.Threads[i+1].Steps {
			kinds[i][step.Kind]++
		}
	}
	if kinds[0][simulate.StepWake] != 19 || kinds[1][simulate.StepAwait] != 19 || kinds[1][simulate.StepUntil] != 0 {
		t.Errorf("the feeder %v, the worker %v", kinds[0], kinds[1])
	}
}
