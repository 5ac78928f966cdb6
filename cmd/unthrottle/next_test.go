package main

import (
	"testing"

	"github.com/spf13/cobra"
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
