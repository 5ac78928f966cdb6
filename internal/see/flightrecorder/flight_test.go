package flightrecorder

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 3, 4, 3, 0, 0, 0, time.UTC)

func name(i int) Identity {
	return Identity{ID: uint64(i + 1), Path: "/pod/" + string(rune('a'+i)), Name: "c"}
}

// feed adds n periods of 100 ms from then, each stopped for that share.
func feed(r *Recorder, c Identity, from time.Time, n int, stopped float64) time.Time {
	for range n {
		from = from.Add(100 * time.Millisecond)
		r.Add(c, Period{End: from, Length: 100 * time.Millisecond, MeanWidth: 1.5, MostWidth: 4, Stopped: stopped, Flags: Throttled})
	}
	return from
}

func TestRowHoldsWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Period{
			Length:    time.Duration(rapid.IntRange(1, 200_000).Draw(t, "ms")) * time.Millisecond,
			MeanWidth: rapid.Float64Range(0, 2000).Draw(t, "mean"),
			MostWidth: rapid.IntRange(0, maxMost).Draw(t, "most"),
			Stopped:   rapid.Float64Range(0, 1).Draw(t, "stopped"),
			Flags:     Flags(rapid.IntRange(0, maxFlags).Draw(t, "flags")),
		}
		got := pack(p.Length.Milliseconds(), p).period(start)
		if got.Length != p.Length || got.MostWidth != p.MostWidth || got.Flags != p.Flags ||
			math.Abs(got.MeanWidth-p.MeanWidth) > 1./64 || math.Abs(got.Stopped-p.Stopped) > 1./2046+1e-9 {
			t.Fatalf("stored %+v, read %+v", p, got)
		}
	})
}

func TestRowBoundsWhatItCannotHold(t *testing.T) {
	got := pack(1<<40, Period{MeanWidth: 1e9, MostWidth: 1 << 30, Stopped: 7}).period(start)
	if got.Length != maxStepMS*time.Millisecond || got.MostWidth != maxMost || got.Stopped != 1 || got.MeanWidth < 2047 {
		t.Errorf("%+v", got)
	}
	if got := pack(-5, Period{MeanWidth: math.NaN(), MostWidth: -3, Stopped: -1}).period(start); got != (Period{End: start}) {
		t.Errorf("%+v", got)
	}
}

func TestPeriodsComeBackInOrder(t *testing.T) {
	r := NewRecorder()
	end := feed(r, name(0), start, 100, 0.25)
	got := r.Periods(Key{ID: 1}, start.Add(time.Second), start.Add(3*time.Second))
	if len(got) != 20 {
		t.Fatalf("%d periods in 2 s of 100 ms each", len(got))
	}
	for i, p := range got {
		if want := start.Add(time.Second + time.Duration(i+1)*100*time.Millisecond); !p.End.Equal(want) ||
			p.Length != 100*time.Millisecond {
			t.Errorf("period %d ends at %v, length %v; want %v", i, p.End, p.Length, want)
		}
		if p.MeanWidth != 1.5 || p.MostWidth != 4 || math.Abs(p.Stopped-0.25) > 0.001 || p.Flags != Throttled {
			t.Errorf("%+v", p)
		}
	}
	if r.Periods(Key{ID: 99}, start, end) != nil {
		t.Error("periods of a container that was never seen")
	}
}

func TestShortPeriodsAreJoined(t *testing.T) {
	r := NewRecorder()
	at := start
	for i := range 1000 {
		at = at.Add(10 * time.Millisecond)
		r.Add(name(0), Period{End: at, Length: 10 * time.Millisecond, MeanWidth: 1, MostWidth: 1 + i%8, Stopped: 0.5})
	}
	got := r.Periods(Key{ID: 1}, start, at)
	if len(got) == 0 || len(got) > 1000/5 {
		t.Fatalf("%d rows for 10 s", len(got))
	}
	var long time.Duration
	for _, p := range got {
		if p.Flags&Joined == 0 || p.Length < joinBelow || p.MeanWidth != 1 || math.Abs(p.Stopped-0.5) > 0.01 {
			t.Errorf("%+v", p)
		}
		long += p.Length
	}
	if missing := 10*time.Second - long; missing < 0 || missing > 2*joinBelow {
		t.Errorf("%v of 10 s are in no row", missing)
	}
}

func TestPausesAreGapsAndNotPeriods(t *testing.T) {
	r := NewRecorder()
	at := feed(r, name(0), start, 10, 0.5)
	at = feed(r, name(0), at.Add(10*time.Minute), 10, 0.5)
	gap := time.Duration(0)
	for _, p := range r.Periods(Key{ID: 1}, start, at) {
		if p.Flags&Gap != 0 {
			gap += p.Length
			if p.Stopped != 0 || p.MostWidth != 0 {
				t.Errorf("a gap with figures: %+v", p)
			}
		}
	}
	if gap != 10*time.Minute {
		t.Errorf("gaps of %v for a pause of 10m", gap)
	}
	at = feed(r, name(0), at.Add(30*time.Hour), 10, 0.5)
	if got := r.Periods(Key{ID: 1}, start, at); len(got) != 10 {
		t.Errorf("%d rows after a pause of 30 h; what was before is out of date", len(got))
	}
}

// TestIdleTimeIsNoPeriod: the first period after idle time, which the kernel tells with that time, is as long as the
// quota's, and what was before it keeps its time.
func TestIdleTimeIsNoPeriod(t *testing.T) {
	const quota = 100 * time.Millisecond
	for _, idle := range []time.Duration{time.Minute, 10 * time.Minute} {
		for _, busy := range []bool{true, false} { // or told as it came
			r, end := NewRecorder(), start
			for range 20 {
				end = end.Add(quota)
				r.Add(name(0), Period{End: end, Length: quota, MeanWidth: 1, MostWidth: 1, Stopped: 0.1})
			}
			share := quota.Seconds() / idle.Seconds()
			last := Period{End: end.Add(idle), Length: idle, MeanWidth: 0.5 * share, MostWidth: 2, Stopped: 0.9 * share, Flags: Throttled}
			if busy {
				last = last.Busy(quota)
			}
			r.Add(name(0), last)
			got := r.Periods(Key{ID: 1}, start.Add(-time.Hour), end.Add(time.Hour))
			first := got[0].End.Add(-got[0].Length)
			if !first.Equal(start) {
				t.Errorf("%v idle, busy %v: the first period begins at %v", idle, busy, first)
			}
			if p := got[len(got)-1]; busy && (p.Length != quota || math.Abs(p.MeanWidth-0.5) > 0.04 || math.Abs(p.Stopped-0.9) > 0.01) {
				t.Errorf("%v idle: the burst after it is %+v", idle, p)
			}
		}
	}
	// Several periods in one row stay as they are.
	several := Period{Length: time.Second, MeanWidth: 1, MostWidth: 2}
	if got := several.Busy(quota); got.Length != time.Second || got.Flags != Joined {
		t.Errorf("ten periods at once: %+v", got)
	}
	if got := several.Busy(0); got != several {
		t.Errorf("without a known period: %+v", got)
	}
}

// After the clock was set back, the ring takes in what comes, in place of the rows of the time that comes again. So do the
// files.
func TestClockSetBack(t *testing.T) {
	for _, tc := range []struct {
		before int           // periods
		back   time.Duration // from their end
		left   int           // of them
	}{
		{50, 3 * time.Second, 20},
		{50, 24 * time.Hour, 0},
		{50, stepBack / 2, 50}, // no step: they are left out until the time is there again
		{2*ringRows + 77, 3 * time.Second, ringRows - 30},
	} {
		r := NewRecorder()
		end := feed(r, name(0), start, tc.before, 0.5)
		dir := t.TempDir()
		if err := r.Flush(dir); err != nil {
			t.Fatal(err)
		}
		again := end.Add(-tc.back)
		feed(r, name(0), again, 10, 0.25)
		if err := r.Flush(dir); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Recorder{r, loaded} {
			from := start
			if again.Before(from) {
				from = again
			}
			was, is := 0, 0
			for _, p := range r.Periods(Key{ID: 1}, from, end.Add(time.Hour)) {
				if math.Abs(p.Stopped-0.25) < 0.01 {
					is++
				} else {
					was++
				}
			}
			if want := map[bool]int{true: 10, false: 5}[tc.back > stepBack]; was != tc.left || is != want {
				t.Errorf("%d periods, then the clock goes back by %v: %d of them are left, want %d; of 10 after the "+
					"step %d are there, want %d",
					tc.before, tc.back, was, tc.left, is, want)
			}
		}
	}
}

// A container of a time when the clock was ahead gives its slot to one that is stopped now.
func TestClockSetBackFreesSlots(t *testing.T) {
	r := NewRecorder()
	for i := range Slots {
		feed(r, name(i), start.Add(24*time.Hour), 100, 0.9)
	}
	feed(r, name(Slots), start.Add(-time.Minute), 10, 0.1) // the clock is right again
	feed(r, name(Slots), start.Add(6*halfLife), 100, 0.5)
	if r.find(name(Slots).Key()) < 0 {
		t.Error("the slots stay with containers that were stopped while the clock was ahead")
	}
}

func TestRingKeepsAnHourInItsBytes(t *testing.T) {
	r := NewRecorder()
	at := start
	for i := range Slots {
		at = feed(r, name(i), start, 2*ringRows, 0.5)
	}
	if r.Bytes() > MaxBytes {
		t.Errorf("%d bytes, bound %d", r.Bytes(), MaxBytes)
	}
	got := r.Periods(Key{ID: 1}, start, at)
	var kept time.Duration
	for _, p := range got {
		kept += p.Length
	}
	if kept < time.Hour || !got[len(got)-1].End.Equal(at) {
		t.Errorf("kept %v up to %v", kept, got[len(got)-1].End)
	}
}

func TestMostStoppedAreKept(t *testing.T) {
	r := NewRecorder()
	for i := range Slots {
		feed(r, name(i), start, 10, 0.1*float64(i+1)/Slots)
	}
	feed(r, Identity{ID: 500}, start, 10, 0)
	if got := len(r.Containers()); got != Slots {
		t.Fatalf("%d containers", got)
	}
	feed(r, Identity{ID: 501, Name: "worse"}, start, 10, 0.9)
	if r.find(Key{ID: 501}) < 0 || r.find(Key{ID: 1}) >= 0 {
		t.Error("the container that was stopped least should have made room for one that was stopped most of the time")
	}
	dropped, n := r.Dropped()
	if n != 1 || len(dropped) != 1 || dropped[0].Container.ID != 1 || dropped[0].Rows == 0 || dropped[0].Why == "" {
		t.Errorf("dropped: %+v, %d", dropped, n)
	}
}

func TestTwoAlikeDoNotChangePlaces(t *testing.T) {
	r := NewRecorder()
	at := start
	for range 50 {
		for i := range Slots + 4 {
			feed(r, name(i), at, 1, 0.5)
		}
		at = at.Add(100 * time.Millisecond)
	}
	if _, n := r.Dropped(); n != 0 {
		t.Errorf("%d drops among containers that stand still alike", n)
	}
}

func TestScoresAreBounded(t *testing.T) {
	r := NewRecorder()
	for i := range 5 * maxScores {
		feed(r, Identity{ID: uint64(i + 1)}, start.Add(time.Duration(i)*time.Second), 1, 0.5)
	}
	if len(r.scores) > maxScores {
		t.Errorf("%d scores", len(r.scores))
	}
	if d, n := r.Dropped(); len(d) > maxDropped || n < uint64(len(d)) {
		t.Errorf("%d drops told of %d", len(d), n)
	}
}

func TestFlushAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "flight")
	r := NewRecorder()
	at := start
	// Flushes at irregular times, over more than one turn of the ring.
	for i := range 40 {
		at = feed(r, name(0), at, 1700+i*37, 0.5)
		if err := r.Flush(dir); err != nil {
			t.Fatal(err)
		}
	}
	feed(r, name(1), at, 30, 0.2)
	if err := r.Flush(dir); err != nil {
		t.Fatal(err)
	}
	back, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(1); id <= 2; id++ {
		want, got := r.Periods(Key{ID: id}, start, at.Add(time.Hour)), back.Periods(Key{ID: id}, start, at.Add(time.Hour))
		if len(want) == 0 || len(want) != len(got) {
			t.Fatalf("container %d: %d periods flushed, %d read", id, len(want), len(got))
		}
		for i := range want {
			if !want[i].End.Equal(got[i].End) || want[i].Stopped != got[i].Stopped {
				t.Fatalf("period %d: %+v, read %+v", i, want[i], got[i])
			}
		}
	}
	// A restarted agent continues, and a new container that was hardly stopped takes no slot.
	at = feed(back, name(0), at, 100, 0.5)
	if err := back.Flush(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Periods(Key{ID: 1}, at.Add(-time.Second), at); len(got) != 10 {
		t.Errorf("%d periods in the last second", len(got))
	}
}

// The kernel gives cgroup ids anew after a boot: a container with the id of an earlier one has a slot of its own.
func TestContainersOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	r := NewRecorder()
	before, after := Identity{ID: 7, Boot: "a", Name: "cart"}, Identity{ID: 7, Boot: "b", Name: "mail"}
	end := feed(r, before, start, 10, 0.5)
	if err := r.Flush(dir); err != nil {
		t.Fatal(err)
	}
	back, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	end = feed(back, after, end.Add(time.Minute), 20, 0.5)
	if err := back.Flush(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil || len(again.Containers()) != 2 {
		t.Fatalf("containers %+v, %v", again.Containers(), err)
	}
	for i, want := range []Identity{before, after} {
		got := again.Periods(want.Key(), start.Add(-time.Hour), end)
		if again.Containers()[i] != want || len(got) != 10*(i+1) {
			t.Errorf("%+v has %d periods, as %+v", want, len(got), again.Containers()[i])
		}
	}
}

// Files of version 1 do not say of which boot they are: their rows are those of no container of a known boot.
func TestFilesWithoutABoot(t *testing.T) {
	dir := t.TempDir()
	r := NewRecorder()
	c := Identity{ID: 7, Name: "cart"}
	end := feed(r, c, start, 10, 0.5)
	if err := r.Flush(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(slotFile(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	of := &r.slots[0].ring
	head, err := encodeHeader(fileHeader{1, c, of.next, len(of.rows), of.endMS, of.written})
	if err != nil {
		t.Fatal(err)
	}
	copy(b, head)
	if err := os.WriteFile(slotFile(dir, 0), b, 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	known := len(back.Periods(Key{ID: 7, Boot: "b"}, start, end))
	if unknown := len(back.Periods(c.Key(), start, end)); unknown != 10 || known != 0 {
		t.Errorf("%d periods of an unknown boot, %d of another one", unknown, known)
	}
}

func TestDamagedFilesAreToldAndLeftOut(t *testing.T) {
	dir := t.TempDir()
	r := NewRecorder()
	feed(r, name(0), start, 100, 0.5)
	feed(r, name(1), start, 100, 0.5)
	if err := r.Flush(dir); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(slotFile(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	for what, damaged := range map[string][]byte{
		"empty": {}, "cut in the header": whole[:100], "cut in the rows": whole[:headerBytes+80],
		"a bit":  append([]byte{whole[0], whole[1], whole[2], whole[3], whole[4] ^ 1}, whole[5:]...),
		"a text": []byte(strings.Repeat("not a ring ", 1000)),
	} {
		if err := os.WriteFile(slotFile(dir, 0), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		back, err := Load(dir)
		if err == nil || !strings.Contains(err.Error(), "periods-00") {
			t.Errorf("%s: error %v", what, err)
		}
		if back.Periods(Key{ID: 2}, start, start.Add(time.Hour)) == nil {
			t.Errorf("%s: the whole file is lost too", what)
		}
	}
	if r, err := Load(filepath.Join(dir, "missing")); err != nil || len(r.Containers()) != 0 {
		t.Errorf("no directory: %v", err)
	}
}

func TestFlushToAFullDiskIsTriedAgain(t *testing.T) {
	r := NewRecorder()
	feed(r, name(0), start, 100, 0.5)
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full: " + err.Error())
	}
	defer f.Close()
	if err := r.slots[0].write(f); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v", err)
	}
	if r.slots[0].flushed != 0 {
		t.Error("counted as flushed")
	}
	dir := t.TempDir()
	if err := r.Flush(dir); err != nil {
		t.Fatal(err)
	}
	if back, err := Load(dir); err != nil || len(back.Periods(Key{ID: 1}, start, start.Add(time.Hour))) != 100 {
		t.Errorf("after the second try: %v", err)
	}
}

func TestNamesOfAnyKindFitTheHeader(t *testing.T) {
	dir := t.TempDir()
	r := NewRecorder()
	c := Identity{ID: 7, Path: "/" + strings.Repeat("\x01", 3000), Name: strings.Repeat("\u202e", 3000)}
	feed(r, c, start, 10, 0.5)
	if err := r.Flush(dir); err != nil {
		t.Fatal(err)
	}
	back, err := Load(dir)
	if err != nil || back.Periods(Key{ID: 7}, start, start.Add(time.Hour)) == nil {
		t.Errorf("%v", err)
	}
}

func FuzzSlot(f *testing.F) {
	r := NewRecorder()
	feed(r, name(0), start, 20, 0.5)
	dir := f.TempDir()
	if err := r.Flush(dir); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(slotFile(dir, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSlot(b)
		if err != nil {
			return
		}
		if n := len(s.ring.periods(time.Time{}, time.Unix(1<<40, 0))); n > ringRows {
			t.Errorf("%d periods", n)
		}
		s.ring.add(Period{End: time.Now(), Length: time.Second})
	})
}
