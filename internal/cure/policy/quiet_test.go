package policy

import (
	"strings"
	"testing"
	"time"
)

func TestQuiet(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, c := range []struct{ quiet, from, until string }{
		{"08:00-20:00", "2026-05-03 07:49:59", ""},
		{"08:00-20:00", "2026-05-03 07:50:01", "2026-05-03 20:00:00"}, // it would last into it
		{"08:00-20:00", "2026-05-03 19:59:59", "2026-05-03 20:00:00"},
		{"08:00-20:00", "2026-05-03 20:00:00", ""},
		{"22:30-06:00", "2026-05-03 05:59:00", "2026-05-03 06:00:00"},
		{"22:30-06:00", "2026-05-03 06:00:00", ""},
		{"22:30-06:00", "2026-05-03 22:25:00", "2026-05-04 06:00:00"},
		{"00:00-00:01", "2026-05-03 23:55:00", "2026-05-04 00:01:00"},
	} {
		q, err := ParseQuiet(c.quiet)
		if err != nil || q.String() != c.quiet {
			t.Fatalf("%s: %v, %v", c.quiet, q, err)
		}
		got := q.Until(at(c.from), 10*time.Minute)
		if c.until == "" && !got.IsZero() || c.until != "" && !got.Equal(at(c.until)) {
			t.Errorf("%s at %s: until %v, want %s", c.quiet, c.from, got, c.until)
		}
	}
	// By the clock of a zone, also on the day on which it goes from summer to winter: 06:00 is 05:00 UTC then.
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err) // this host has no time zones
	}
	for _, c := range []struct{ from, until string }{
		{"2026-10-24 20:45:00", "2026-10-25 05:00:00"}, {"2026-10-25 20:45:00", ""}, {"2026-10-25 21:45:00", "2026-10-26 05:00:00"},
		{"2026-07-01 03:59:00", "2026-07-01 04:00:00"},
	} {
		q, err := ParseQuiet("22:30-06:00")
		if q.Zone = zone; err != nil {
			t.Fatal(err)
		}
		if got := q.Until(at(c.from), 10*time.Minute); c.until == "" && !got.IsZero() || c.until != "" && !got.Equal(at(c.until)) {
			t.Errorf("in Berlin at %s: until %v, want %s", c.from, got.UTC(), c.until)
		}
	}
	if until := (Quiet{}).Until(at("2026-05-03 12:00:00"), time.Hour); !until.IsZero() {
		t.Errorf("no quiet time: %v", until)
	}
	for _, bad := range []string{"", "8-20", "08:00", "24:00-25:00", "08:00-08:00", "08:00-20:00 CET", "08:60-20:00"} {
		if q, err := ParseQuiet(bad); err == nil {
			t.Errorf("%q: %v", bad, q)
		}
	}
}

// An A/A test is a trial whose turns are spread.
func TestAATests(t *testing.T) {
	const rule = "version: 1\nrules:\n- remedy: auto\n  verify: probe\n  trial: "
	rules, err := ParseRules([]byte(rule + "{most: 5m, over: 1h, aa: true}\n"))
	if err != nil || !rules.Rules[0].Trial.AA {
		t.Errorf("%+v, %v", rules, err)
	}
	if _, err := ParseRules([]byte(rule + "{most: 5m, aa: true}\n")); err == nil || !strings.Contains(err.Error(), "aa goes with over") {
		t.Error(err)
	}
}
