package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/text"
)

// sharedFlag is a flag that several commands have: its one meaning and its one letter.
type sharedFlag struct {
	letter, usage string
}

// sharedFlags are all of them. A command adds words of its own after the usage, never instead of it.
var sharedFlags = map[string]sharedFlag{
	"for":       {"", "how long"},
	"output":    {"o", "`FORMAT` of the result: text, json, or wide (text with all columns)"},
	"json":      {"", "short for --output json"},
	"dry-run":   {"n", "show what would be done, and change nothing"},
	"slo":       {"", "the objective for the latency, such as 'p99<20ms'"},
	"bound":     {"", "stopped for more than this `SHARE` of the time is too much"},
	"repeat":    {"", "do it `N` times"},
	"seed":      {"", "random seed"},
	"scope":     {"", "touch nothing outside this cgroup `PREFIX`"},
	"below":     {"", "only containers at or below this cgroup `PREFIX`"},
	"parent":    {"", "make its own cgroups below this `CGROUP`"},
	"state-dir": {"", "`DIR` of the journal and its lock"},
	"yes":       {"y", "do not ask"},
	"html":      {"", "also write a page, all in one file, to `FILE`"},
	"ascii":     {"", "no characters beyond ASCII"},
	"fair":      {"", "leave its cgroups at the ordinary weight: other load then has a say in the figures"},
	"reserve":   {"", "`CPUS` that are never given away, such as 0-1"},
	"max-moves": {"", "at most `N` moves"},
	"cpus":      {"", "how many CPUs to pin to"},
	"explain":   {"", "also show the explanation"},
	"config":    {"", "`FILE` with the rules"},
	"node":      {"", "`NAME` of this node in rows"},
}

// share adds a shared flag. own are the command's own words, "" for none.
func share(cmd *cobra.Command, name string, value pflag.Value, own string) *pflag.Flag {
	flag, ok := sharedFlags[name]
	if !ok {
		panic("--" + name + " is not in the table of shared flags")
	}
	usage := flag.usage
	if own != "" {
		usage += own
	}
	return cmd.Flags().VarPF(value, name, flag.letter, usage)
}

// shareString adds a shared flag that holds text.
func shareString(cmd *cobra.Command, to *string, name, value, own string) {
	*to = value
	share(cmd, name, (*word)(to), own)
}

// shareSwitch adds a shared flag that is on or off.
func shareSwitch(cmd *cobra.Command, to *bool, name, own string) {
	share(cmd, name, (*toggle)(to), own).NoOptDefVal = "true"
}

// shareCount adds a shared flag that is a whole number.
func shareCount(cmd *cobra.Command, to *int, name string, value int, own string) {
	*to = value
	share(cmd, name, (*whole)(to), own)
}

// shareCPUs adds --cpus where a fraction of a CPU may be given too.
func shareCPUs(cmd *cobra.Command, to *float64, own string) {
	share(cmd, "cpus", (*cpus)(to), own)
}

// shareSeed adds --seed.
func shareSeed(cmd *cobra.Command, to *uint64) {
	*to = 1
	share(cmd, "seed", (*seed)(to), "")
}

// lengthVar adds --for, the flag of every length of time that a command looks, measures or runs.
func lengthVar(cmd *cobra.Command, to *time.Duration, value time.Duration, own string) {
	*to = value
	withoutZero(share(cmd, "for", (*length)(to), own))
}

// timeVar adds a flag of a command's own that is a length of time.
func timeVar(cmd *cobra.Command, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	withoutZero(cmd.Flags().VarPF((*length)(to), name, "", usage))
}

// withoutZero hides a default of nothing from the help.
func withoutZero(f *pflag.Flag) {
	if f.DefValue == "0s" {
		f.DefValue = ""
	}
}

// length is the value of a flag that takes a length of time.
type length time.Duration

// Set implements pflag.Value.
func (l *length) Set(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil {
		return errors.New("give a time with its unit, such as 10s or 500ms")
	}
	*l = length(d)
	return nil
}

// String implements pflag.Value.
func (l *length) String() string { return plainTime(time.Duration(*l)) }

// Type implements pflag.Value: the help shows it.
func (l *length) Type() string { return "TIME" }

// plainTime is a duration without the zeros that Go writes: "1h", not "1h0m0s".
func plainTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// word is the value of a flag that takes text.
type word string

// Set implements pflag.Value.
func (w *word) Set(value string) error { *w = word(value); return nil }

// String implements pflag.Value.
func (w *word) String() string { return string(*w) }

// Type implements pflag.Value: the help shows it.
func (w *word) Type() string { return "TEXT" }

// toggle is the value of a flag that is on or off.
type toggle bool

// Set implements pflag.Value.
func (t *toggle) Set(value string) error {
	v, err := strconv.ParseBool(value)
	if err != nil {
		return errors.New("give true or false, or nothing")
	}
	*t = toggle(v)
	return nil
}

// String implements pflag.Value.
func (t *toggle) String() string { return strconv.FormatBool(bool(*t)) }

// Type implements pflag.Value: with "bool" the help shows no value.
func (t *toggle) Type() string { return "bool" }

// whole is the value of a flag that takes a whole number.
type whole int

// Set implements pflag.Value.
func (c *whole) Set(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return errors.New("give a whole number")
	}
	*c = whole(n)
	return nil
}

// String implements pflag.Value.
func (c *whole) String() string { return strconv.Itoa(int(*c)) }

// Type implements pflag.Value: the help shows it.
func (c *whole) Type() string { return "N" }

// seed is the value of --seed.
type seed uint64

// Set implements pflag.Value.
func (s *seed) Set(value string) error {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return errors.New("give a whole number from 0 on")
	}
	*s = seed(n)
	return nil
}

// String implements pflag.Value.
func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }

// Type implements pflag.Value: the help shows it.
func (s *seed) Type() string { return "N" }

// bound is the value of --bound: a share of the time.
type bound struct {
	// share is 0 to 1; below 0: none was given.
	share float64
	// text is as it was given.
	text string
}

// boundVar adds --bound. value is the default, "" for none.
func boundVar(cmd *cobra.Command, to *bound, value, own string) {
	*to = bound{share: -1}
	if value != "" {
		if err := to.Set(value); err != nil {
			panic(err)
		}
	}
	share(cmd, "bound", to, own)
}

// Set implements pflag.Value.
func (b *bound) Set(value string) (err error) {
	b.share, err = parseShare(value)
	b.text = value
	return err
}

// String implements pflag.Value.
func (b *bound) String() string { return b.text }

// Type implements pflag.Value: the help shows it.
func (b *bound) Type() string { return "SHARE" }

// parseShare reads a share of the time: "5%" or "0.05".
func parseShare(value string) (float64, error) {
	number, percent := strings.CutSuffix(value, "%")
	v, err := text.ParseDecimal(number)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, errors.New("give a share of the time from 0% to 100%")
	}
	return v, nil
}

// output is the form of a command's result.
type output struct{ format string }

const (
	formatText = "text"
	formatJSON = "json"
	formatWide = "wide"
)

// add adds -o and --json.
func (o *output) add(cmd *cobra.Command) {
	o.format = formatText
	share(cmd, "output", o, "")
	share(cmd, "json", jsonSwitch{o}, "").NoOptDefVal = "true"
}

func (o *output) json() bool { return o.format == formatJSON }
func (o *output) wide() bool { return o.format == formatWide }

// Set implements pflag.Value.
func (o *output) Set(value string) error {
	switch value {
	case formatText, formatJSON, formatWide:
		o.format = value
		return nil
	}
	return fmt.Errorf("choose %s, %s or %s", formatText, formatJSON, formatWide)
}

// String implements pflag.Value.
func (o *output) String() string { return o.format }

// Type implements pflag.Value: the help shows it.
func (o *output) Type() string { return "FORMAT" }

// jsonSwitch is --json, which sets the output.
type jsonSwitch struct{ of *output }

// Set implements pflag.Value.
func (j jsonSwitch) Set(value string) error {
	on := false
	if err := (*toggle)(&on).Set(value); err != nil {
		return err
	}
	j.of.format = text.Either(on, formatJSON, formatText)
	return nil
}

// String implements pflag.Value.
func (j jsonSwitch) String() string { return strconv.FormatBool(j.of != nil && j.of.json()) }

// Type implements pflag.Value: with "bool" the help shows no value.
func (j jsonSwitch) Type() string { return "bool" }
