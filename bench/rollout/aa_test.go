package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/switchback"
)

func aaOf(t *testing.T, blocks int, figure func(i int) float64) switchback.State {
	t.Helper()
	p := switchback.Plan{Variants: 3, Block: 20 * time.Second, Most: 20 * time.Minute, Wrong: 0.05, Seed: 7}
	s, err := switchback.Begin(p, time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	for i := range blocks {
		round, v := s.Next()
		s.Blocks = append(s.Blocks, switchback.Block{Round: round, Variant: v, LogTail: new(figure(i)), Requests: 200})
		s.Used += 20 * time.Second
	}
	return s
}

// Blocks in which nothing was in force keep a remedy in at most 5 of 100 orders, however they are drawn; an order in which one remedy has
// all the low blocks does keep it.
func TestRedrawn(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 1))
	s := aaOf(t, 60, func(int) float64 { return 4 + 0.4*draw.NormFloat64() })
	for _, remedies := range []int{1, 3} {
		if kept, err := redrawn(s, remedies, 400); err != nil || kept > 20 {
			t.Errorf("%d remedies: kept in %d of 400 orders, %v", remedies, kept, err)
		}
	}
	if kept, err := redrawn(switchback.State{}, 3, 10); kept != 0 || err != nil {
		t.Error(kept, err)
	}
}

// A night of A/A tests takes each test's blocks while it lasts, and what would have been kept from the log; a page says it.
func TestANightOfAATests(t *testing.T) {
	n := night{Seconds: 600, Alone: 60, AA: true,
		Services: []serviced{{Name: "app", Limit: 0.5, Restored: true}, {Name: "db", Restored: true}}}
	a := agents{night: &n, dir: t.TempDir(), all: []*staged{{path: "/x/app"}, {path: "/x/db"}}}
	dir := filepath.Join(a.dir, "state", "switchbacks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(map[string]any{"cgroup": "/x/app", "state": aaOf(t, 8, func(int) float64 { return 4 })})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "1.json"), out, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := a.takeAA(); err != nil {
		t.Fatal(err)
	}
	a.takeEndsAA(`time=1 level=INFO msg="an A/A test ended" container=/s.1/app would_have_kept="burst 40ms" blocks=8 why="0.5 times"` + "\n")
	got := page([]night{n})
	for _, want := range []string{"| `app` | 0.5 | 3 | 8 | burst 40ms | 0 | 0 |", "| `db` | 0 | - | - | no test began | - | - |",
		"of 1,000 other orders", "- `db`: no trial began"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
