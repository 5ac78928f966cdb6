package main

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/objective"
)

// What a dry run ends with does for real what the dry run showed.
func TestForReal(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"apply", "cart", "--remedy", "pin", "-n", "--cpus", "2", "--state-dir", "/my state"},
			"sudo unthrottle apply cart --cpus 2 --remedy pin --state-dir '/my state'"},
		{[]string{"fix", "/a b", "--dry-run", "--may", "pin,raise", "--yes"}, "sudo unthrottle fix '/a b' --may pin --may raise --yes"},
		{[]string{"restore", "-n"}, "sudo unthrottle restore"},
	} {
		root := newRoot()
		root.SetArgs(c.args)
		got := ""
		cmd, rest, err := root.Find(c.args)
		if err != nil {
			t.Fatal(err)
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error { got = forReal(cmd, args); return nil }
		if err := root.Execute(); err != nil {
			t.Fatalf("%v: %v", rest, err)
		}
		if got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// Too few latencies end with the same command with a longer look, or with a lower percentile.
func TestAfterTooFew(t *testing.T) {
	lower := objective.Objective{Quantile: 0.95, Bound: 20 * time.Millisecond}
	args := []string{"fix", "cart", "--slo", "p99<20ms", "--slo-command", "probe --last", "--for", "5s"}
	for _, c := range []struct {
		few  fix.TooFewLatencies
		want string
	}{
		{fix.TooFewLatencies{Lower: lower, Longer: 21 * time.Second},
			"sudo unthrottle fix cart --slo 'p99<20ms' --slo-command 'probe --last' --for 21s"},
		{fix.TooFewLatencies{Lower: lower, Longer: 21 * time.Second, LooksBack: true},
			"sudo unthrottle fix cart --for 5s --slo-command 'probe --last' --slo 'p95<20ms'"},
		{fix.TooFewLatencies{Longer: 21 * time.Second, LooksBack: true}, ""},
	} {
		root := newRoot()
		root.SetArgs(args)
		got := ""
		cmd, _, err := root.Find(args)
		if err != nil {
			t.Fatal(err)
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error { got = afterTooFew(cmd, args, &c.few); return nil }
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
