package nodedemand

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// row is one of five minutes in which a container wanted 4 CPUs for a quarter of the time.
func row(pod string, cgroup int64, start time.Time) demand.Row {
	wanted, not := 300.0, 0.0
	return demand.Row{Schema: demand.SchemaVersion, Start: start, Seconds: 300, Namespace: "shop", Pod: pod, Container: "app",
		Service: "shop/cart/app", Cgroup: cgroup, WantedCPUSeconds: &wanted, StoppedHighSeconds: &not,
		Wanted: []demand.Level{{CPUs: 0, Microseconds: 225e6}, {CPUs: 4, Microseconds: 75e6}},
		Width:  []demand.Level{{CPUs: 0, Microseconds: 225e6}, {CPUs: 2, Microseconds: 75e6}}}
}

func partOf(rows ...demand.Row) *Part {
	p := &Part{}
	p.Add(rows)
	return p
}

func TestOf(t *testing.T) {
	stopped := 1.0
	rows := []demand.Row{row("cart-a", 1, noon), row("cart-a", 1, noon.Add(-12*time.Hour)), row("gone", 2, noon.Add(-time.Hour)),
		row("cart-b", 3, noon), row("", 4, noon), row("unmeasured", 5, noon)}
	rows[2].Service = "shop/gone/app"
	rows[3].StoppedHighSeconds = &stopped
	rows[5].WantedCPUSeconds = nil
	s := Of(partOf(rows...))
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if len(s.Containers) != 2 || s.Containers[0].Pod != "cart-a" || s.Containers[1].Pod != "cart-b" ||
		!s.Until.Equal(noon.Add(5*time.Minute)) {
		t.Fatalf("%+v", s)
	}
	a, b := s.Containers[0], s.Containers[1]
	if want := (Phase{5, 1, 3, 6}); a.Phases[4] != want || a.Phases[0] != want || a.Phases[1] != (Phase{}) || a.MostCPUs != 4 {
		t.Errorf("%+v", a)
	}
	if b.MostCPUs != 2 || b.Phases[4][1] != 0.5 {
		t.Errorf("stopped by its quota, it counts as wide as it ran: %+v", b)
	}
	var parts []*Part
	for i := range rows { // in any order and portions
		parts = append(parts, partOf(rows[len(rows)-1-i]))
	}
	if apart := Of(parts...); !reflect.DeepEqual(apart, s) {
		t.Errorf("of parts: %+v, want %+v", apart, s)
	}
	if empty := Of(); len(empty.Containers) != 0 || !empty.Until.IsZero() || empty.Check() != nil {
		t.Errorf("of no rows: %+v", empty)
	}
}

// A pod that was made anew wants in the phases in which it was not seen yet what the one before it wanted.
func TestPlacesTaken(t *testing.T) {
	before := row("cart-a", 1, noon.Add(-24*time.Hour))
	other := row("search-a", 2, noon.Add(-24*time.Hour))
	other.Service, other.Wanted = "shop/search/app", []demand.Level{{CPUs: 64, Microseconds: 300e6}}
	anew := row("cart-b", 3, noon.Add(-10*time.Hour))
	anew.Wanted = []demand.Level{{CPUs: 0, Microseconds: 300e6}}
	nameless := row("run-b", 4, noon.Add(-10*time.Hour))
	nameless.Service = ""
	s := Of(partOf(before, other), partOf(anew, nameless))
	if len(s.Containers) != 2 {
		t.Fatalf("%+v", s.Containers)
	}
	cart, run := s.Containers[0], s.Containers[1]
	if want := (Phase{5, 1, 3, 6}); cart.Phases[4] != want || cart.Phases[0][1] != 0 || cart.Phases[0][0] != 5 || cart.MostCPUs != 4 {
		t.Errorf("made anew: %+v", cart)
	}
	if run.Phases[4] != (Phase{}) {
		t.Errorf("of no service: %+v", run)
	}
}

// What is written is read again, with four digits.
func TestDay(t *testing.T) {
	s := Of(partOf(row("cart-a", 1, noon), row("cart-a", 1, noon.Add(5*time.Minute))))
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read Spec
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	day := read.Containers[0].Day()
	want := phases.Sums{Microseconds: 600e6, CPUs: 600e6, Squares: 2400e6, Cubes: 9600e6, Most: 4}
	got := day[4]
	if math.Abs(got.Microseconds-want.Microseconds)+math.Abs(got.CPUs-want.CPUs)+math.Abs(got.Squares-want.Squares)+
		math.Abs(got.Cubes-want.Cubes) > 1 || got.Most != want.Most {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A node with more containers than an object may have tells of those that want most.
func TestMostContainers(t *testing.T) {
	var rows []demand.Row
	for i := range MostContainers + 10 {
		rows = append(rows, row(fmt.Sprintf("pod-%03d", i), int64(i), noon))
		if i < 10 {
			rows[i].Wanted = []demand.Level{{CPUs: 0, Microseconds: 300e6}}
		}
	}
	s := Of(partOf(rows...))
	if len(s.Containers) != MostContainers || s.Containers[0].Pod != "pod-010" || s.Check() != nil {
		t.Errorf("%d containers from %s on: %v", len(s.Containers), s.Containers[0].Pod, s.Check())
	}
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"version 2":            func(s *Spec) { s.Version = 2 },
		"at most 512":          func(s *Spec) { s.Containers = make([]Container, 513) },
		"longer than":          func(s *Spec) { s.Containers[0].Namespace = strings.Repeat("x", 254) },
		"mostCPUs: -1":         func(s *Spec) { s.Containers[0].MostCPUs = -1 },
		"there must be 8":      func(s *Spec) { s.Containers[0].Phases = s.Containers[0].Phases[:7] },
		"phases[4]: [5 1 3 N":  func(s *Spec) { s.Containers[0].Phases[4][3] = math.NaN() },
		"phases[4]: [5 5 3 6]": func(s *Spec) { s.Containers[0].Phases[4][1] = 5 },
		"phases[4]: [5 1 17 6": func(s *Spec) { s.Containers[0].Phases[4][2] = 17 },
		"phases[4]: [-1 1 3 6": func(s *Spec) { s.Containers[0].Phases[4][0] = -1 },
		`a\nb`:                 func(s *Spec) { s.Containers[0].Pod, s.Containers[0].MostCPUs = "a\nb", -1 },
	} {
		s := Of(partOf(row("cart-a", 1, noon)))
		if change(&s); s.Check() == nil || !strings.Contains(s.Check().Error(), want) {
			t.Errorf("%v does not say %q", s.Check(), want)
		}
	}
}

// A part is bounded, and leaves out what no kernel can have made.
func TestPartLeavesOut(t *testing.T) {
	p := &Part{}
	for i, level := range []demand.Level{{CPUs: -1}, {CPUs: MostCPUs + 1}, {Microseconds: -1}, {Microseconds: 601e6}} {
		r := row("wrong", int64(i), noon)
		r.Wanted = append(r.Wanted, level)
		if p.Add([]demand.Row{r}) != 1 {
			t.Errorf("%+v was taken", level)
		}
	}
	var rows []demand.Row
	for i := range mostSeen + 7 {
		rows = append(rows, row("cart", int64(i), noon))
	}
	if left := p.Add(rows); left != 7 || len(p.seen) != mostSeen {
		t.Errorf("%d left out, %d kept", left, len(p.seen))
	}
}

func TestNewsTo(t *testing.T) {
	at := func(since time.Duration, more ...demand.Row) Spec {
		return Of(partOf(append(more, row("cart-a", 1, noon.Add(since)))...))
	}
	before := at(0)
	other := at(5 * time.Minute)
	other.Containers[0].Phases[4] = Phase{}
	future := at(24 * time.Hour)
	older := before
	older.Version = 0
	for name, c := range map[string]struct {
		now, before Spec
		news        bool
	}{
		"the same slot":               {at(0, row("cart-b", 2, noon)), before, false},
		"the next one, equal":         {at(5 * time.Minute), before, false},
		"the next one, other figures": {other, before, true},
		"the next one, another pod":   {at(5*time.Minute, row("cart-b", 2, noon.Add(5*time.Minute))), before, true},
		"the one after that, equal":   {at(10 * time.Minute), before, true},
		"an older one":                {before, at(5 * time.Minute), false},
		"one of a time to come":       {before, future, true},
		"one of another version":      {before, older, true},
	} {
		if got := c.now.NewsTo(&c.before, noon.Add(10*time.Minute)); got != c.news {
			t.Errorf("%s: %v", name, got)
		}
	}
}
