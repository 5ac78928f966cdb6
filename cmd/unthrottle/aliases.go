package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/text"
)

// olderFlags are spellings of the release before, by command and then by older name. They are taken and not shown; the
// next release drops them.
var olderFlags = map[string]map[string]string{
	"ls":            {"window": "for", "fail-above": "bound", "scope": "below"},
	"top":           {"window": "for", "scope": "below"},
	"explain":       {"fail-above": "bound"},
	"forecast":      {"seeds": "repeat"},
	"demo":          {"scope": "parent"},
	"run":           {"scope": "parent"},
	"bench latency": {"scope": "parent"},
	"bench fibtest": {"scope": "parent"},
	"bench service": {"scope": "parent", "repeats": "repeat", "step": "for"},
	"fix":           {"window": "for", "stays": "immovable"},
	"apply":         {"window": "for", "stays": "immovable"},
	"defrag":        {"plan": "dry-run"},
}

// inSeconds are the commands whose --seconds was a number without a unit.
var inSeconds = []string{"demo", "bench latency", "bench fibtest"}

// takeOlderFlags makes every command below root take its older spellings.
func takeOlderFlags(root *cobra.Command) {
	for _, name := range slices.Sorted(maps.Keys(olderFlags)) {
		older := olderFlags[name]
		cmd := commandOf(root, name)
		cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			if newer, ok := older[name]; ok {
				name = newer
			}
			return pflag.NormalizedName(name)
		})
	}
	for _, name := range inSeconds {
		flags := commandOf(root, name).Flags()
		flags.Var(seconds{flags.Lookup("for").Value.(*length)}, "seconds", "the older form of --for")
		_ = flags.MarkHidden("seconds")
	}
}

// seconds is the value of --seconds: a number without a unit, which sets --for.
type seconds struct{ of *length }

// Set implements pflag.Value.
func (s seconds) Set(value string) error {
	number, err := text.ParseDecimal(value)
	if err == nil {
		*s.of = length(number * float64(time.Second))
	}
	return err
}

// String implements pflag.Value.
func (s seconds) String() string { return "" }

// Type implements pflag.Value.
func (s seconds) Type() string { return "N" }

// commandOf is the command below root that is called by these words.
func commandOf(root *cobra.Command, words string) *cobra.Command {
	cmd, rest, err := root.Find(strings.Fields(words))
	if err != nil || len(rest) > 0 {
		panic("no command " + words)
	}
	return cmd
}
