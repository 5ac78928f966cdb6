package demand

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// observed is one second of a pod's container that is stopped for a tenth of it.
func observed(at time.Time) observe.Observation {
	pod := "/kubepods/burstable/podx"
	c := container.Container{Name: "shop/cart-7d9c5b8f6-x2x4x/app", Namespace: "shop", Pod: "cart-7d9c5b8f6-x2x4x", ContainerName: "app",
		Runtime: "containerd", Group: cgroup.Group{Path: pod + "/app"}}
	return observe.Observation{
		Container: c, CgroupID: 7, Start: at, Window: time.Second, UsedCPUs: new(0.5), LimitCPUs: new(0.5), LimitAt: pod,
		StoppedLow: new(100 * time.Millisecond), StoppedHigh: new(100 * time.Millisecond), StoppedIntervals: new(uint64(2)),
		Periods: new(uint64(10)), ThrottledPeriods: new(uint64(3)), ThrottledSeconds: new(0.3),
		ThrottledByAll: []observe.Share{{Path: pod + "/app", Seconds: 0.1}, {Path: pod, Seconds: 0.2}},
		Width:          []time.Duration{600 * time.Millisecond, 300 * time.Millisecond, 100 * time.Millisecond},
		Wanted:         []time.Duration{500 * time.Millisecond, 300 * time.Millisecond, 100 * time.Millisecond, 0, 100 * time.Millisecond},
	}
}

// A slot's rounds add up, and the round that begins the next slot returns it.
func TestRowsAddUp(t *testing.T) {
	rows := NewRows(Names{"eu1", "n17"})
	var done []Row
	for i := range 301 {
		done = append(done, rows.Add([]observe.Observation{observed(noon.Add(time.Duration(i) * time.Second))})...)
	}
	if len(done) != 1 {
		t.Fatalf("%d rows of one slot", len(done))
	}
	r := done[0]
	near := func(what string, got *float64, want float64) {
		if got == nil || math.Abs(*got-want) > 1e-6 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("used", r.UsedCPUSeconds, 150)
	near("wanted", r.WantedCPUSeconds, 300*(0.3+0.2+0.4))
	near("stopped", r.StoppedLowSeconds, 30)
	// Wanted less width is 0.9 - 0.5 in each second: at most four threads waited for the pod's quota in its tenth, less
	// the width of none.
	near("waited for its own quota", r.WaitingQuotaSeconds, 300*0.4/3)
	near("for the pod's", r.WaitingAncestorSeconds, 300*0.4*2/3)
	near("for CPUs of others", r.WaitingContentionSeconds, 0)
	near("one of both", r.WaitingUnclearSeconds, 300*0.3)
	near("own", r.ThrottledOwnSeconds, 30)
	near("pod's", r.ThrottledPodSeconds, 60)
	near("further up", r.ThrottledSliceSeconds, 0)
	if r.Samples != 300 || r.Seconds != 300 || *r.Periods != 3000 || *r.ThrottledPeriods != 900 ||
		*r.StoppedIntervals != 600 || !r.Start.Equal(noon) {
		t.Errorf("%+v", r)
	}
	if *r.WantedP50 != 0 || *r.WantedP95 != 4 || *r.WantedP99 != 4 || *r.WantedMax != 4 || *r.WidthMax != 2 || len(r.Wanted) != 4 {
		t.Errorf("wanted %+v", r)
	}
	if r.Service != "shop/cart/app" || r.LimitScope != container.ScopePod || r.Cluster != "eu1" {
		t.Errorf("%+v", r)
	}
	if rest := rows.Finish(); len(rest) != 1 || rest[0].Samples != 1 || !rest[0].Start.Equal(noon.Add(SlotLength)) {
		t.Errorf("the next slot: %+v", rest)
	}
	if again := rows.Finish(); len(again) != 0 {
		t.Errorf("twice: %+v", again)
	}
}

// Rows per period become what other limits would have done. Without them, before they came, and after another period of
// the quota that is not known.
func TestCandidates(t *testing.T) {
	rows := NewRows(Names{}, 300*time.Millisecond, time.Second)
	limited := func(at time.Time) []observe.Observation {
		o := observed(at)
		o.Levels = []cgroup.Level{{Path: o.Container.Group.Path,
			Limit: cgroup.Limit{Quota: 200 * time.Millisecond, Period: 100 * time.Millisecond}}}
		return []observe.Observation{o}
	}
	second := func(i int, feed bool) (done []Row) {
		done = rows.Add(limited(noon.Add(time.Duration(i) * time.Second)))
		if feed { // ten periods, one of which has 150 ms of work, 3 wide
			rows.AddPeriod(counts.PeriodRow{Cgroup: 7, LengthNS: 1e9, MeanWidth: 0.15, MostWidth: 3})
			rows.AddPeriod(counts.PeriodRow{Cgroup: 7, LengthNS: 1e8, MeanWidth: 0.1, MostWidth: 1, StoppedShare: float64(i%2) * 0.6})
			rows.AddPeriod(counts.PeriodRow{Cgroup: 99, LengthNS: 1e9, MeanWidth: 8, MostWidth: 8}) // of another container
		}
		return done
	}
	var done []Row
	for i := range 301 {
		done = append(done, second(i, false)...)
	}
	if len(done) != 1 || done[0].CandidateSeconds != nil || done[0].PeriodMicroseconds != nil || len(done[0].Candidates) != 0 {
		t.Fatalf("without rows per period: %+v", done)
	}
	rows.Feed(true)
	done = nil
	for i := 301; i < 901; i++ {
		done = append(done, second(i, true)...)
	}
	if len(done) != 2 {
		t.Fatalf("%d rows", len(done))
	}
	r := done[1]
	if *r.PeriodMicroseconds != 100_000 || *r.CandidateSeconds != 300 || *r.CandidateFrom != -8 || len(r.Candidates) == 0 {
		t.Fatalf("%+v", r)
	}
	first, last := r.Candidates[0], r.Candidates[len(r.Candidates)-1]
	if first.Step != -8 || last.Step != 2 || last.ThrottledPeriods < 299 || last.StoppedMicroseconds <= 0 ||
		last.BurstStoppedMicroseconds != 0 || first.BurstStoppedMicroseconds == 0 {
		t.Errorf("%+v", r.Candidates)
	}
	of := map[int64]LongBurst{} // the last of each period
	for _, b := range r.LongBursts {
		of[b.BurstPeriodMicroseconds] = b
	}
	if long := of[300_000]; len(of) != 2 || long.Step >= last.Step || long.Step < first.Step-4 || of[1_000_000].Step > long.Step {
		t.Errorf("%+v", r.LongBursts)
	}
	if len(r.Stops) != 1 || r.Stops[0] != (Stop{65_536, 150}) {
		t.Errorf("stops of 60 ms in every other second: %+v", r.Stops)
	}
	if early := done[0]; *early.CandidateSeconds != 298 { // of its first two rounds one was without, and one began
		t.Errorf("known for %v s", *early.CandidateSeconds)
	}
	rows.Feed(false)
	if rest := rows.Finish(); len(rest) != 1 || rest[0].CandidateSeconds != nil {
		t.Errorf("after they ended: %+v", rest)
	}
}

// A clock that was ahead and is set back stops no rows: those of the time to come end where they are, and the slots of
// the time that is begin.
func TestRowsGoOnWhenTheClockIsSetBack(t *testing.T) {
	rows := NewRows(Names{})
	var done []Row
	at := noon.Add(3 * time.Hour)
	for i := range 2 * 300 {
		if i == 100 {
			at = noon.Add(-100 * time.Second)
		}
		done = append(done, rows.Add([]observe.Observation{observed(at.Add(time.Duration(i) * time.Second))})...)
	}
	done = append(done, rows.Finish()...)
	want := []struct {
		start   time.Time
		samples int32
	}{{noon.Add(3 * time.Hour), 100}, {noon, 300}, {noon.Add(SlotLength), 200}}
	if len(done) != len(want) {
		t.Fatalf("%d rows: %+v", len(done), done)
	}
	for i, w := range want {
		if r := done[i]; !r.Start.Equal(w.start) || r.Samples != w.samples || r.Began.Before(r.Start) ||
			!r.Began.Before(r.Start.Add(SlotLength)) {
			t.Errorf("row %d: %d rounds from %v on, want %d from %v on", i, r.Samples, r.Start, w.samples, w.start)
		}
	}
}

// Of a round in which two slots meet, what began in the earlier one counts there, and does not begin it again.
func TestARoundOfTwoSlots(t *testing.T) {
	rows := NewRows(Names{})
	end := noon.Add(SlotLength)
	late, early := observed(end.Add(time.Millisecond)), observed(end.Add(-time.Millisecond))
	early.CgroupID, early.Container.Group.Path = 8, "/kubepods/burstable/podx/other"
	rows.Add([]observe.Observation{observed(noon)})
	for i, round := range [][]observe.Observation{{late, early}, {late, early}} {
		if done := rows.Add(round); len(done) != 2-2*i {
			t.Errorf("round %d: %d rows", i, len(done))
		}
	}
	if rest := rows.Finish(); len(rest) != 1 || rest[0].Samples != 2 {
		t.Errorf("%+v", rest)
	}
}

// Not measured is nil.
func TestRowsOfLittle(t *testing.T) {
	rows := NewRows(Names{})
	bare := observe.Observation{Container: container.Container{Name: "a\x1b[2J", Group: cgroup.Group{Path: "/a"}},
		Start: noon, Window: time.Second}
	rows.Add([]observe.Observation{bare})
	r := rows.Finish()[0]
	if r.UsedCPUSeconds != nil || r.WantedCPUSeconds != nil || r.StoppedLowSeconds != nil || r.Periods != nil ||
		r.WantedP99 != nil || r.LimitCPUs != nil || r.ThrottledOwnSeconds != nil || r.Samples != 1 {
		t.Errorf("%+v", r)
	}
	if r.Container == "a\x1b[2J" {
		t.Error("a stranger's name is as it was")
	}
}

// Without the probe containers of one name, as units of two users' managers, are told apart by their paths, and what a
// recording tells of another one is not theirs.
func TestRowsWithoutTheProbe(t *testing.T) {
	rows := NewRows(Names{})
	var round []observe.Observation
	for _, user := range []string{"1000", "1001"} {
		o := observed(noon)
		o.CgroupID, o.Container = 0, container.Container{Name: "app.service", Unit: "app.service",
			Group: cgroup.Group{Path: "/user.slice/user-" + user + ".slice/app.service"}}
		round = append(round, o)
	}
	rows.Add(round)
	rows.AddRecording(0, Recorded{Seconds: 10})
	rows.AddPools(0, []Pool{{Pool: "tomcat", Threads: 200}})
	rows.AddPriced(0, Pricing{Recorded: noon, Prices: []Price{{Remedy: "burst"}}})
	done := rows.Finish()
	if len(done) != 2 || done[0].Cgroup == done[1].Cgroup || done[0].Cgroup <= 0 || done[1].Cgroup <= 0 {
		t.Fatalf("%+v", done)
	}
	round[0].CgroupID = 7 // the probe has begun
	rows.Add(round)
	for _, r := range rows.Finish() {
		if r.Cgroup != done[0].Cgroup && r.Cgroup != done[1].Cgroup {
			t.Errorf("another number by the probe: %+v", r)
		}
	}
	for _, r := range done {
		if r.RecordedSeconds != nil || len(r.Pools) > 0 || r.PricedAt != nil {
			t.Errorf("a recording of another container: %+v", r)
		}
	}
}

func TestRowsAreBounded(t *testing.T) {
	rows := NewRows(Names{})
	var round []observe.Observation
	for i := range MaxContainers + 5 {
		o := observed(noon)
		o.CgroupID = uint64(i + 1)
		round = append(round, o)
	}
	rows.Add(round)
	if rows.Left != 5 || len(rows.Finish()) != MaxContainers {
		t.Errorf("left %d", rows.Left)
	}
}

// generatedName is a pod's as Kubernetes makes it: the controller's name and a dash cut to 58 bytes, and five
// characters.
func generatedName(controller, random string) string {
	base := controller + "-"
	return base[:min(len(base), 58)] + random
}

// Pods of one Deployment are of one service however long its name is, and pods of two Deployments are not.
func TestLongNamesOfDeployments(t *testing.T) {
	const hash, next = "7d9c5b8f6x", "5f6d8c9bb4"
	long := strings.Repeat("recommendations-", 6)
	for length := 1; length <= 80; length++ {
		deployment := strings.TrimRight(long[:length-1], "-") + "n"
		of := func(template, random, label string) string {
			return ServiceOf(&container.Container{Namespace: "shop",
				Pod: generatedName(deployment+"-"+template, random), ContainerName: "c", TemplateHash: label})
		}
		for _, labels := range []bool{true, false} {
			label := map[string]string{}
			if labels {
				label = map[string]string{hash: hash, next: next}
			}
			one, other, later := of(hash, "x2x4x", label[hash]), of(hash, "bhn8f", label[hash]), of(next, "kx7vd", label[next])
			if one != other {
				t.Errorf("%d, labels %t: %s and %s", len(deployment), labels, one, other)
			}
			if whole := "shop/" + deployment + "/c"; one != whole && (len(deployment) <= 51 || labels && len(deployment) < 57) {
				t.Errorf("labels %t: %s, want %s", labels, one, whole)
			}
			if one != later && (len(deployment) <= 51 || len(deployment) >= 57 || labels) {
				t.Errorf("%d, labels %t: %s, and by its next template %s", len(deployment), labels, one, later)
			}
		}
	}
	cron := strings.Repeat("x", 50)
	if one, next := ServiceOf(&container.Container{Pod: generatedName(cron+"-29415600", "x2x4x")}),
		ServiceOf(&container.Container{Pod: generatedName(cron+"-29415660", "x2x4x")}); one != next || !strings.HasPrefix(one, cron+"/") {
		t.Errorf("a CronJob: %s, %s", one, next)
	}
	for _, pod := range []string{"x2x4x", "", "-x2x4x", strings.Repeat("-", 63), strings.Repeat("b", 63), strings.Repeat("é", 60)} {
		for _, hash := range []string{"", "7d9c5b8f6", "-"} {
			if name, _ := WorkloadOf(pod, hash); name == "" && pod != "" {
				t.Errorf("%q, %q: no name", pod, hash)
			}
		}
	}
	// A hash that the name does not have, as of a pod that was named by hand.
	if name, kind := WorkloadOf("db-0", "7d9c5b8f6"); name != "db" || kind != StatefulSet {
		t.Error(name, kind)
	}
}

func TestServiceOf(t *testing.T) {
	for pod, want := range map[string]string{
		"cart-7d9c5b8f6-x2x4x": "cart/c", "db-0": "db/c", "log-x2x4x": "log/c", "a-b-c": "a-b-c/c",
		"nightly-27893450-kx7vd": "nightly/c", "job-2789-kx7vd": "job-2789/c", "x": "x/c", "-": "-/c", "a-": "a-/c",
		"my-api-v2-5f6d8c9bb-q2w4z": "my-api-v2/c",
	} {
		if got := ServiceOf(&container.Container{Pod: pod, ContainerName: "c"}); got != want {
			t.Errorf("%s: %s, want %s", pod, got, want)
		}
	}
	for want, c := range map[string]container.Container{
		"shop/db/app": {Namespace: "shop", Pod: "db-0", ContainerName: "app"},
		"shop/web":    {Project: "shop", Service: "web", Name: "x"}, "ssh.service": {Unit: "ssh.service", Name: "ssh"},
		"redis": {Name: "redis"}} {
		if got := ServiceOf(&c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
