package cgroup

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestLimitCPUs(t *testing.T) {
	for _, c := range []struct {
		limit   Limit
		cpus    float64
		limited bool
	}{
		{Limit{Quota: 50 * ms, Period: 100 * ms}, 0.5, true},
		{Limit{Quota: 400 * ms, Period: 100 * ms}, 4, true},
		{Limit{Quota: -1, Period: 100 * ms}, 0, false},
		{Limit{Quota: 50 * ms}, 0, false},
	} {
		if cpus, limited := c.limit.Bound(); cpus != c.cpus || limited != c.limited {
			t.Errorf("%+v: %v %v, want %v %v", c.limit, cpus, limited, c.cpus, c.limited)
		}
	}
}

func TestParseMax(t *testing.T) {
	for text, want := range map[string]Limit{
		"max 100000":     {Quota: -1, Period: 100 * ms},
		"50000 100000\n": {Quota: 50 * ms, Period: 100 * ms},
		"20000":          {Quota: 20 * ms, Period: 100 * ms},
	} {
		if got, err := ParseMax(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "max", "a b", "1 2 3", "-5 100000", "99999999999999999999 1", "9223372036854775807 1"} {
		if got, err := ParseMax(text); text != "max" && !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %+v, %v; want ErrFormat", text, got, err)
		}
	}
}

func TestEffectiveNamesTheLeast(t *testing.T) {
	levels := []Level{
		{Path: "/a/b/c", Limit: Unlimited()},
		{Path: "/a/b", Limit: Limit{Quota: 50 * ms, Period: 100 * ms}},
		{Path: "/a", Limit: Limit{Quota: 20 * ms, Period: 40 * ms}},
		{Path: "/", Limit: Unlimited()},
	}
	if cpus, limited, at := Effective(levels); cpus != 0.5 || !limited || at != "/a/b" {
		t.Errorf("got %v %v %q; of equals the nearest to the leaf counts", cpus, limited, at)
	}
	if _, limited, at := Effective(levels[:1]); limited || at != "" {
		t.Errorf("no quota at all must be unlimited, got %q", at)
	}
}

func TestLimitWrites(t *testing.T) {
	lim := func(q, p, b int) Limit {
		return Limit{Quota: time.Duration(q) * ms, Period: time.Duration(p) * ms, Burst: time.Duration(b) * ms}
	}
	none := Unlimited()
	for _, c := range []struct {
		name      string
		v         Version
		cur, want Limit
		writes    []FileValue
	}{
		{"nothing", V1, lim(50, 100, 10), lim(50, 100, 10), nil},
		{"nothing", V2, none, none, nil},
		{"off", V1, lim(50, 100, 0), none, []FileValue{{fileQuota, "-1"}}},
		{"off", V2, lim(50, 100, 0), none, []FileValue{{fileMax, "max 100000"}}},
		{"raise with burst", V1, lim(50, 100, 0), lim(80, 100, 80), []FileValue{{fileQuota, "80000"}, {fileBurst, "80000"}}},
		{"fall with burst", V1, lim(80, 100, 80), lim(50, 100, 20), []FileValue{{fileBurst, "20000"}, {fileQuota, "50000"}}},
		{"fall with burst", V2, lim(80, 100, 80), lim(50, 100, 20), []FileValue{{fileMaxBurst, "20000"}, {fileMax, "50000 100000"}}},
		{"on", V1, none, lim(10, 50, 0), []FileValue{{filePeriod, "50000"}, {fileQuota, "10000"}}},
		{"off, period too", V1, lim(10, 50, 0), none, []FileValue{{fileQuota, "-1"}, {filePeriod, "100000"}}},
		{"ratio below both by period", V1, lim(50, 100, 0), lim(60, 200, 0), []FileValue{{filePeriod, "200000"}, {fileQuota, "60000"}}},
		{"ratio below both by quota", V1, lim(500, 1000, 0), lim(60, 100, 0), []FileValue{{fileQuota, "60000"}, {filePeriod, "100000"}}},
		{"ratio between by quota", V1, lim(50, 100, 0), lim(60, 50, 0), []FileValue{{fileQuota, "60000"}, {filePeriod, "50000"}}},
		{"same ratio, other period", V1, lim(50, 100, 0), lim(100, 200, 0), []FileValue{{filePeriod, "200000"}, {fileQuota, "100000"}}},
		{"and a burst", V1, lim(50, 100, 0), lim(500, 1000, 500),
			[]FileValue{{filePeriod, "1000000"}, {fileQuota, "500000"}, {fileBurst, "500000"}}},
		{"and back", V1, lim(500, 1000, 500), lim(50, 100, 0), []FileValue{{fileBurst, "0"}, {fileQuota, "50000"}, {filePeriod, "100000"}}},
	} {
		if got := LimitWrites(c.v, c.cur, c.want, false); !slices.Equal(got, c.writes) {
			t.Errorf("%s %v: %+v -> %+v:\n got %v\nwant %v", c.v, c.name, c.cur, c.want, got, c.writes)
		}
	}
}

func genLimit(t *rapid.T, name string) Limit {
	l := Limit{Quota: -1, Period: time.Duration(rapid.IntRange(1000, 1000000).Draw(t, name+" period")) * time.Microsecond}
	l.Burst = time.Duration(rapid.IntRange(0, 1000).Draw(t, name+" burst")) * ms
	if rapid.Bool().Draw(t, name+" limited") {
		l.Quota = time.Duration(rapid.IntRange(1000, 4000000).Draw(t, name+" quota")) * time.Microsecond
		l.Burst = min(l.Burst, l.Quota)
	}
	return l
}

// Every step is within the kernel's bounds, and the last is the wanted one. No step grants more than the larger of the limits before and
// after. With a quota below it none grants less than the smaller one: there the quota is lifted instead.
func TestLimitWritesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]Version{V1, V2}).Draw(t, "version")
		cur, want := genLimit(t, "cur"), genLimit(t, "want")
		at, below := cur, rapid.Bool().Draw(t, "limited below")
		for _, w := range LimitWrites(v, cur, want, below) {
			next, err := applied(at, w)
			if err != nil {
				t.Fatalf("%v: %v", w, err)
			}
			if err := next.CheckBounds(); err != nil {
				t.Fatalf("after %v: %+v: %v", w, next, err)
			}
			if cur.Limited() && want.Limited() {
				is, limited := next.Bound()
				was, _ := cur.Bound()
				will, _ := want.Bound()
				if !limited && !below || limited && is > max(was, will) || limited && below && is < min(was, will) {
					t.Fatalf("after %v: %+v, between %+v and %+v", w, next, cur, want)
				}
			}
			at = next
		}
		if at != want {
			t.Fatalf("ends at %+v, want %+v", at, want)
		}
	})
}
