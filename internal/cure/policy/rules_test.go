package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
)

const full = `# what the agent may do
version: 1
mode: apply
listen: 127.0.0.1:9000
interval: 2s
scope: /kubepods.slice
state_dir: /var/lib/unthrottle
bound: 5%
budget:
  containers: 3
  moves_per_minute: 1
  cpu_share: 25%
own_budget: {cpu: 1.5%, memory: 64MiB}
rules:
  - match: {namespace: kube-system}
    remedy: none
  - match:
      name: "web-*"
      labels: {tier: front}
    remedy: pin
    cpus: 4
    slo:
      objective: p99<20ms
      command: /usr/local/bin/latencies --last 10s
      interval: 30s
      look_back: 20s
  - match: {cgroup: "/kubepods.slice/**"}
`

func TestParseRules(t *testing.T) {
	got, err := ParseRules([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := Rules{Mode: Apply, Listen: "127.0.0.1:9000", Interval: 2 * time.Second, Scope: "/kubepods.slice",
		StateDir: "/var/lib/unthrottle", Bound: 0.05, Budget: Budget{3, 1, 0.25}, Flight: DefaultFlight(),
		Export: DefaultExport(), Own: Own{0.015, 64 << 20}, Startup: DefaultStartup,
		Rules: []Rule{
			{Line: 15, Match: Match{Namespace: "kube-system"}, Leave: true, SLOInterval: 10 * time.Second},
			{Line: 17, Match: Match{Name: "web-*", Labels: map[string]string{"tier": "front"}}, Remedy: remedy.Pin, CPUs: 4,
				Objective:   objective.Objective{Quantile: 0.99, Bound: 20 * time.Millisecond},
				SLOCommand:  "/usr/local/bin/latencies --last 10s",
				SLOInterval: 30 * time.Second, SLOLookBack: 20 * time.Second},
			{Line: 27, Match: Match{Cgroup: "/kubepods.slice/**"}, Auto: true, SLOInterval: 10 * time.Second},
		}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Rules{}, "Lines"), cmpopts.IgnoreFields(Rule{}, "Lines")); diff != "" {
		t.Error(diff)
	}
	if pin := got.Rules[1].Lines; got.Lines["bound"] != 8 || got.Lines["budget.cpu_share"] != 12 ||
		pin["remedy"] != 20 || pin["slo.objective"] != 23 || pin["stays"] != 0 {
		t.Errorf("lines: %v, %v", got.Lines, pin)
	}
	got, err = ParseRules([]byte("version: 1\n"))
	if err != nil || got.Mode != Observe || got.Listen != defaultListen || got.Budget != DefaultBudget() || got.Bound != DefaultBound {
		t.Errorf("the least: %+v, %v", got, err)
	}
}

func TestParseRulesRefuses(t *testing.T) {
	rule := func(lines string) string { return "version: 1\nrules:\n  - " + lines }
	for name, c := range map[string]struct {
		text string
		line int
		want string
	}{
		"empty":               {"", 0, "it is empty"},
		"only a comment":      {"# nothing\n", 0, "it is empty"},
		"no version":          {"mode: observe\n", 1, `"version" is missing`},
		"another version":     {"version: 2\n", 1, "from 1 to 1"},
		"unknown key":         {"version: 1\nmoed: apply\n", 2, `unknown key "moed": choose from bound, budget`},
		"unknown inner key":   {rule("match: {nmae: x}"), 3, `unknown key "nmae"`},
		"twice":               {"version: 1\nmode: apply\nmode: observe\n", 3, "twice"},
		"no mode":             {"version: 1\nmode: destroy\n", 2, `"destroy": choose from observe, apply`},
		"negative CPUs":       {rule("remedy: pin\n    cpus: -2"), 4, `"-2": give a whole number from 1`},
		"half a CPU":          {rule("remedy: pin\n    cpus: 1.5"), 4, `"1.5": give a whole number`},
		"negative budget":     {"version: 1\nbudget:\n  containers: -1\n", 3, "whole number from 0"},
		"share above one":     {"version: 1\nbudget: {cpu_share: 150%}\n", 2, "not a share"},
		"own CPU":             {"version: 1\nown_budget: {cpu: 1}\n", 2, "percent sign, for example 1%"},
		"own CPU of nothing":  {"version: 1\nown_budget: {cpu: 0%}\n", 2, "not a share of one CPU"},
		"own memory":          {"version: 1\nown_budget: {memory: 64}\n", 2, "for example, 64MiB"},
		"share of nothing":    {"version: 1\nbound: .nan\n", 2, "not a share"},
		"share in base 16":    {"version: 1\nbound: 0x1p-4\n", 2, "not a share"},
		"no remedy":           {rule("remedy: pray"), 3, "choose from auto, none, pin"},
		"cpus of burst":       {rule("remedy: burst\n    cpus: 2"), 4, "cpus is a setting of pin"},
		"lends of narrow":     {rule("remedy: narrow\n    lends: true"), 4, "lends is a setting of pin"},
		"strict of pin":       {rule("remedy: pin\n    strict: true"), 4, "strict is a setting of secondary"},
		"none that lends":     {rule("remedy: none\n    lends: true"), 3, "no settings"},
		"none with a class":   {rule("class: hybrid\n    remedy: none"), 3, "no settings"},
		"no class":            {rule("class: first"), 3, `"first": choose from exclusive, hybrid, floating, secondary`},
		"class of another":    {rule("remedy: pin\n    class: floating"), 4, "class: floating is what remedy: narrow gives, not pin"},
		"class of weight":     {rule("remedy: weight\n    class: hybrid"), 4, "class: hybrid is what remedy: pin gives, not weight"},
		"irqs of auto":        {rule("irqs: true"), 3, "irqs is a setting of pin"},
		"irqs of floating":    {rule("class: floating\n    irqs: true"), 4, "irqs is a setting of pin"},
		"irqs and a scope":    {"version: 1\nscope: /a\nrules:\n  - class: exclusive\n    irqs: true\n", 4, "belong to the whole host"},
		"period of pin":       {rule("remedy: pin\n    period: 1s"), 4, "period is a setting of narrow and burst and period, not of pin"},
		"burst of auto":       {rule("burst: 100ms"), 3, "burst is a setting of narrow and burst: name the remedy"},
		"period of 2 s":       {rule("remedy: burst\n    period: 2s"), 4, "1s"},
		"none with a period":  {rule("remedy: none\n    period: 1s"), 3, "no settings"},
		"factor of pin":       {rule("remedy: pin\n    factor: 2"), 4, "a setting of raise"},
		"factor and to":       {rule("remedy: raise\n    factor: 2\n    to: 3"), 4, "not both"},
		"factor below one":    {rule("remedy: raise\n    factor: 0.5"), 4, "above 1"},
		"none with settings":  {rule("remedy: none\n    cpus: 2"), 3, "no settings"},
		"slo without command": {rule("slo: {objective: p99<20ms}"), 3, "needs objective and command"},
		"probe of pin":        {rule("remedy: pin\n    verify: probe"), 4, "needs remedy: auto"},
		"both without slo":    {rule("verify: both"), 3, "needs an slo with a command"},
		"probe with command":  {rule("verify: probe\n    slo: {objective: p99<20ms, command: x}"), 3, "asks no slo command"},
		"verify what":         {rule("verify: hope"), 3, "slo"},
		"may burst":           {rule("may: [burst]"), 3, "grants no more CPU than the limit"},
		"may nothing":         {rule("may: []"), 3, "list of remedies"},
		"may of pin":          {rule("remedy: pin\n    may: [raise]"), 4, "goes with remedy: auto"},
		"looks back too far":  {rule("slo: {objective: p99<20ms, command: x, look_back: 1h}"), 3, "10m"},
		"bad objective":       {rule("slo: {objective: fast, command: x}"), 3, "write it as p99<20ms"},
		"bad pattern":         {rule(`match: {name: "[a"}`), 3, "not a pattern"},
		"rules no list":       {"version: 1\nrules: {}\n", 2, "must be a list"},
		"rule no mapping":     {rule("pin"), 3, "must be a mapping of keys to values"},
		"listen":              {"version: 1\nlisten: everywhere\n", 2, "not an address with a port"},
		"interval":            {"version: 1\ninterval: 1ms\n", 2, "give a time from 100ms"},
		"scope":               {"version: 1\nscope: /a/../b\n", 2, "not a cgroup path"},
		"state dir":           {"version: 1\nstate_dir: here\n", 2, "not an absolute path"},
		"null":                {"version: 1\nmode:\n", 2, "choose from observe, apply"},
		"two documents":       {"version: 1\n---\nversion: 1\n", 2, "more than one document"},
		"not YAML":            {"version: 1\n\tmode: apply\n", 2, ""},
		"alias":               {"version: 1\nrules: &x\n  - match: *x\n", 0, ""},
		"huge":                {strings.Repeat("#", MaxConfigBytes+1), 0, "larger than"},
		"too many rules":      {"version: 1\nrules:\n" + strings.Repeat("  - {}\n", maxRules+1), 3, "rules, more than"},
	} {
		_, err := ParseRules([]byte(c.text))
		var wrong *ConfigError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: got %v, want a *ConfigError", name, err)
			continue
		}
		if wrong.Line != c.line && name != "alias" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q (line %d), want line %d and %q", name, err, wrong.Line, c.line, c.want)
		}
	}
}

// Every mistake is named, by line, up to a bound.
func TestEveryMistakeIsNamed(t *testing.T) {
	_, err := ParseRules([]byte("mode: destroy\nbudget: {containers: -1, moves: 3}\nrules:\n- remedy: pray\n- match: " +
		"{nmae: x}\n  cpus: 0\n"))
	var mistakes Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("%v", err)
	}
	var lines []int
	for _, m := range mistakes {
		lines = append(lines, m.Line)
	}
	if d := cmp.Diff([]int{1, 1, 2, 2, 4, 5, 6}, lines); d != "" {
		t.Errorf("%s\n%v", d, err)
	}
	_, err = ParseRules([]byte("version: 1\nrules:\n" + strings.Repeat("- remedy: pray\n", maxRules)))
	if said := strings.Split(err.Error(), "\n"); len(said) != maxMistakes+1 || !strings.Contains(said[maxMistakes], "and more") {
		t.Errorf("%d lines: %v", len(said), err)
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("version: 1\nrules: &x\n  - match: *x\n"))
	f.Add([]byte("a: &a [x]\nb: &b [*a,*a]\n"))
	f.Add([]byte("version: 1\nrules:\n  - remedy: pin\n    cpus: -2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseRules(text)
		if err != nil {
			var wrong *ConfigError
			if !errors.As(err, &wrong) || len(err.Error()) > 16_000 {
				t.Fatalf("error of another kind, or too long: %v", err)
			}
			return
		}
		if len(r.Rules) > maxRules || r.Interval < 100*time.Millisecond || r.Bound < 0 || r.Bound > 1 ||
			r.Mode != Observe && r.Mode != Apply {
			t.Fatalf("out of bounds: %+v", r)
		}
		for _, rule := range r.Rules {
			if rule.CPUs < 0 || !rule.Auto && !rule.Leave && rule.Remedy == "" {
				t.Fatalf("makes no sense: %+v", rule)
			}
		}
	})
}

func TestFor(t *testing.T) {
	r, err := ParseRules([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	web := container.Container{Name: "web-1/app", Pod: "web-1", Namespace: "shop", Group: cgroup.Group{Path: "/kubepods.slice/x/y"}}
	system := container.Container{Name: "web-2", Namespace: "kube-system", Group: cgroup.Group{Path: "/kubepods.slice/z"}}
	for name, c := range map[string]struct {
		c      container.Container
		labels map[string]string
		line   int
	}{
		"name and label":         {web, map[string]string{"tier": "front", "x": "y"}, 17},
		"another label":          {web, map[string]string{"tier": "back"}, 27},
		"labels not known":       {web, nil, 27},
		"the first that fits":    {system, map[string]string{"tier": "front"}, 15},
		"nothing fits":           {container.Container{Name: "sshd", Group: cgroup.Group{Path: "/system.slice/sshd"}}, nil, 0},
		"unknown is no wild *":   {container.Container{Name: "x", Group: cgroup.Group{Path: "/"}}, nil, 0},
		"the top of the subtree": {container.Container{Name: "x", Group: cgroup.Group{Path: "/kubepods.slice"}}, nil, 27},
	} {
		rule, line := r.For(c.c, c.labels), 0
		if rule != nil {
			line = rule.Line
		}
		if line != c.line {
			t.Errorf("%s: the rule of line %d, want %d", name, line, c.line)
		}
	}
}

// file is an fs.FileInfo made by hand.
type file struct {
	fs.FileInfo
	mode     fs.FileMode
	uid, gid uint32
}

func (f file) Name() string      { return "name" }
func (f file) Mode() fs.FileMode { return f.mode }
func (f file) Sys() any          { return &syscall.Stat_t{Uid: f.uid, Gid: f.gid} }

func TestUntrusted(t *testing.T) {
	good, dir := file{mode: 0o644}, file{mode: 0o755 | fs.ModeDir}
	for name, c := range map[string]struct {
		info []fs.FileInfo
		want string
	}{
		"root's":               {[]fs.FileInfo{good, dir, dir}, ""},
		"in a sticky folder":   {[]fs.FileInfo{good, file{mode: 0o777 | fs.ModeDir | fs.ModeSticky}}, ""},
		"nothing":              {nil, "not looked at"},
		"another's":            {[]fs.FileInfo{file{mode: 0o600, uid: 1000}}, "belongs to user 1000"},
		"everybody's":          {[]fs.FileInfo{file{mode: 0o666}}, "every user"},
		"a group's":            {[]fs.FileInfo{file{mode: 0o664, gid: 50}}, "group 50"},
		"a link":               {[]fs.FileInfo{file{mode: 0o777 | fs.ModeSymlink}}, "symbolic link"},
		"a pipe":               {[]fs.FileInfo{file{mode: 0o600 | fs.ModeNamedPipe}}, "not a regular file"},
		"in everybody's place": {[]fs.FileInfo{good, file{mode: 0o777 | fs.ModeDir}}, "the directory name above"},
		"in another's place":   {[]fs.FileInfo{good, dir, file{mode: 0o755 | fs.ModeDir, uid: 7}}, "user 7"},
	} {
		got := Untrusted("/etc/x", c.info...)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q in it", name, got, c.want)
		}
	}
	name := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := Untrusted(name, info); (got == "") != (os.Getuid() == 0) {
		t.Errorf("a file of user %d: %q", os.Getuid(), got)
	}
}

func TestParseTiers(t *testing.T) {
	got, err := ParseRules([]byte("version: 1\nrules:\n  - remedy: pin\n    lends: true\n  - remedy: secondary\n    strict: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	if w := got.Rules[0].Wish(0); !w.Request.Shares || w.Request.Kind != remedy.Pin {
		t.Errorf("got %+v", w)
	}
	if w := got.Rules[1].Wish(0); !w.Request.Strict || w.Request.Kind != remedy.Secondary || w.Auto {
		t.Errorf("got %+v", w)
	}
}

// A class says which CPUs, and with that the remedy, in the words of place.
func TestParseClasses(t *testing.T) {
	for text, want := range map[string]remedy.Request{
		"class: exclusive":                              {Kind: remedy.Pin, Class: remedy.ClassExclusive},
		"{class: hybrid, strict: true}":                 {Kind: remedy.Pin, Class: remedy.ClassHybrid, Strict: true},
		"{class: floating, cpus: 3}":                    {Kind: remedy.Narrow, CPUs: 3},
		"class: secondary":                              {Kind: remedy.Secondary},
		"{remedy: burst, burst: 400ms, period: 1s}":     {Kind: remedy.Burst, Burst: 400 * time.Millisecond, Period: time.Second},
		"{class: hybrid, remedy: pin}":                  {Kind: remedy.Pin, Class: remedy.ClassHybrid},
		"{class: floating, remedy: narrow}":             {Kind: remedy.Narrow},
		"{class: exclusive, remedy: auto, lends: true}": {Kind: remedy.Pin, Class: remedy.ClassExclusive, Shares: true},
	} {
		r, err := ParseRules([]byte("version: 1\nrules:\n  - " + text + "\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := r.Rules[0].Wish(0); got.Auto || !cmp.Equal(got.Request, want, cmp.AllowUnexported(remedy.Request{})) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	r, err := ParseRules([]byte("version: 1\nrules:\n  - {class: exclusive, irqs: true}\n"))
	if err != nil || !r.Rules[0].IRQs {
		t.Errorf("%+v, %v", r, err)
	}
}

// What a container gets while it starts.
func TestParseStartup(t *testing.T) {
	for text, want := range map[string]Startup{
		"{remedy: raise}":            {Remedy: remedy.Raise, Most: time.Minute},
		"{remedy: burst, most: 20s}": {Remedy: remedy.Burst, Most: 20 * time.Second},
	} {
		r, err := ParseRules([]byte("version: 1\nrules:\n- {startup: " + text + "}\n"))
		if err != nil || r.Rules[0].Startup != want {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
		if got := r.Values(Effective{Rule: &r.Rules[0]}); !slices.ContainsFunc(got,
			func(v Value) bool {
				return v.Name == "startup.remedy" && v.Value == string(want.Remedy) && v.From == FromRule
			}) {
			t.Errorf("%s: shown %+v", text, got)
		}
	}
	for text, want := range map[string]string{
		"{startup: {most: 20s}}":                      "startup needs a remedy: burst or raise",
		"{startup: {remedy: pin}}":                    "pin",
		"{startup: {remedy: raise, most: 1h}}":        "give a time from 1s",
		"{remedy: none, startup: {remedy: burst}}":    "a rule with remedy none has no settings",
		"{startup: {remedy: raise, until: tomorrow}}": "until",
		"{startup: raise}":                            "mapping",
	} {
		if _, err := ParseRules([]byte("version: 1\nrules:\n- " + text + "\n")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
