package report

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/demand"
)

// ansi are the functions that the questions may call: SQL's own, which every engine has.
var ansi = []string{"SUM", "MIN", "MAX", "COUNT", "CAST", "COALESCE", "MOD", "ROW_NUMBER", "FLOOR", "LAG"}

// words that stand before a parenthesis and are no functions.
var words = []string{"OVER", "AS", "FROM", "JOIN", "AND", "OR", "NOT", "IN", "WHERE", "ON", "SELECT"}

// The questions call nothing that only one engine has, and say in a comment what they are.
func TestQuestionsAreANSI(t *testing.T) {
	files, err := fs.Glob(questionFiles, "sql/*.sql")
	if err != nil || len(files) < 10 {
		t.Fatalf("%q, %v", files, err)
	}
	comment, call := regexp.MustCompile(`(?m)--.*$`), regexp.MustCompile(`([A-Za-z_]+)\s*\(`)
	for _, name := range files {
		text := question(strings.TrimSuffix(path.Base(name), ".sql"), noon, noon)
		if !strings.HasPrefix(text, "-- ") {
			t.Errorf("%s does not say what it asks", name)
		}
		text = comment.ReplaceAllString(text, "")
		for _, c := range call.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(ansi, c[1]) && !slices.Contains(words, c[1]) {
				t.Errorf("%s calls %s", name, c[1])
			}
		}
		for _, never := range []string{"::", "EXCLUDE", "QUALIFY", "ILIKE", "{", "[", "`", `"`, "FILTER"} {
			if strings.Contains(text, never) {
				t.Errorf("%s has %s", name, never)
			}
		}
	}
}

// The sums are those of plain code over the same rows, for rows as chance has them.
func TestSumsOfPlainCode(t *testing.T) {
	const seed = 7
	chance := rand.New(rand.NewPCG(seed, 0))
	type key struct {
		service string
		no      int
	}
	type sums struct {
		seconds, stopped, used, threads, busy, cores float64
		usedSeconds                                  float64
		containers                                   map[key]bool
	}
	want := map[string]*sums{}
	var rows []demand.Row
	for slot := range 4 {
		for no := range 40 {
			service := string(rune('a' + no%5))
			limit := float64(1 + no%3)
			r := rowOf(service, no, noon.Add(time.Duration(slot)*demand.SlotLength), limit, int32(2+chance.IntN(6)))
			r.Service = service
			r.StoppedHighSeconds = new(chance.Float64() * 30)
			r.StoppedLowSeconds = new(*r.StoppedHighSeconds / 2)
			r.ThrottledOwnSeconds = new(chance.Float64())
			switch chance.IntN(6) {
			case 0:
				r.StoppedHighSeconds, r.StoppedLowSeconds = nil, nil
			case 1:
				r.UsedCPUSeconds = nil
			}
			rows = append(rows, r)
			s := want[service]
			if s == nil {
				s = &sums{containers: map[key]bool{}}
				want[service] = s
			}
			if !s.containers[key{service, no}] {
				s.containers[key{service, no}] = true
				s.cores += limit
			}
			if r.StoppedHighSeconds != nil {
				s.seconds, s.stopped = s.seconds+r.Seconds, s.stopped+*r.StoppedHighSeconds
			}
			if r.UsedCPUSeconds != nil {
				s.usedSeconds, s.used = s.usedSeconds+r.Seconds, s.used+*r.UsedCPUSeconds
			}
			for _, l := range r.Wanted {
				if l.CPUs > 0 {
					s.threads += float64(l.CPUs) * float64(l.Microseconds) / limit
					s.busy += float64(l.Microseconds)
				}
			}
		}
	}
	d, _ := written(t, rows...)
	if len(d.Services) != len(want) || d.Containers != 40 {
		t.Fatalf("%d services, %d containers", len(d.Services), d.Containers)
	}
	for name, s := range want {
		got := serviceOf(t, d, name)
		near(t, name+": stopped", got.StoppedShare, s.stopped/s.seconds)
		near(t, name+": at least", got.StoppedShareLow, s.stopped/s.seconds/2)
		near(t, name+": used", got.UsedCPUs, s.used/s.usedSeconds)
		near(t, name+": runnable per core", got.RunnablePerCore, s.threads/s.busy)
		near(t, name+": cores", got.CoresNow, s.cores)
		if got.Containers != len(s.containers) || got.CoresAfter == nil || *got.CoresAfter > s.cores+1e-6 || math.IsNaN(*got.CoresAfter) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Bounds in the tags of a row's columns and of lists' elements are a part of a rule that is asked of each row.
func TestBoundsAreAsked(t *testing.T) {
	text, err := questionFiles.ReadFile("sql/unsound.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range engine.Columns {
		if c.Bounds != nil && !strings.Contains(string(text), `{{outside "`+c.Rule+`"}}`) {
			t.Errorf("%s is under the rule %q, which unsound.sql has not", c.Name, c.Rule)
		}
		if c.Kind == engine.List && !strings.Contains(string(text), `{{outsideElements "`+c.Elements+`"}}`) {
			t.Errorf("unsound.sql does not look at the elements of %s", c.Name)
		}
	}
}
